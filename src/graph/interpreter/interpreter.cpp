#include "graph/interpreter/interpreter.h"

#include <optional>

#include "base/float_environment.h"
#include "graph/interpreter/bind.h"
#include "graph/interpreter/evaluate.h"
#include "graph/interpreter/liveness.h"

namespace fusewise::graph {

std::vector<Tensor> interpret(const Graph& graph, std::span<const Tensor> inputs,
                              const InterpretOptions& options) {
  const DefaultFloatEnvironment environment;
  SymbolValues symbols = bind_symbols(graph, inputs);
  Requirements requirements(graph);
  requirements.check(symbols);
  const std::vector<Value> wanted = wanted_values(graph, options.also);
  const std::vector<NodeId> last = last_uses(graph, wanted);
  std::optional<ThreadPool> pool;
  if (options.threads > 1) pool.emplace(options.threads);

  std::vector<std::vector<Tensor>> values(graph.size());  // the results of each node
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs[i].node] = {inputs[i].aligned()};
  std::vector<Tensor> operands;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (last[id] == no_node || node.op == Op::input) continue;
    if (options.progress) options.progress(id, graph.size());
    operands.clear();
    for (const Value& operand : node.operands) operands.push_back(values[operand.node][operand.result]);
    if (is_opaque(graph, id)) {
      values[id] = evaluate_opaque(graph, id, operands, symbols);
      requirements.check(symbols);
    } else {
      values[id] = {evaluate_node(graph, id, operands, symbols, pool ? &*pool : nullptr)};
    }
    for (const Value& operand : node.operands) {
      if (last[operand.node] == id) values[operand.node].clear();
    }
  }
  if (options.symbols) *options.symbols = symbols;
  std::vector<Tensor> results;
  for (const Value& value : wanted) results.push_back(values[value.node][value.result]);
  return results;
}

}  // namespace fusewise::graph

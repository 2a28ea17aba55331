#include "graph/interpreter/interpreter.h"

#include <optional>
#include <utility>

#include "base/float_environment.h"
#include "graph/interpreter/bind.h"
#include "graph/interpreter/control.h"
#include "graph/interpreter/evaluate.h"
#include "graph/interpreter/liveness.h"
#include "graph/interpreter/slices.h"

namespace fusewise::graph {

namespace {

class Interpreter {
 public:
  // What bodies require is checked with the node that has them.
  Interpreter(const Graph& graph, SymbolValues symbols, ThreadPool* pool, bool is_body = false)
      : graph_(graph), symbols_(std::move(symbols)), pool_(pool), values_(graph.size()) {
    if (!is_body) requirements_.emplace(graph);
    check_requirements();
  }

  std::vector<Tensor> run(std::span<const Tensor> inputs, const InterpretOptions& options) {
    const std::vector<Value> wanted = wanted_values(graph_, options.also);
    const std::vector<NodeId> last = last_uses(graph_, wanted);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (last[graph_.inputs[i].node] != no_node) values_[graph_.inputs[i].node] = {inputs[i].aligned()};
    evaluate_in_order(graph_, last, options.progress, values_, [this](NodeId id) { return evaluate(id); });
    if (options.symbols) *options.symbols = symbols_;
    std::vector<Tensor> results;
    for (const Value& value : wanted) results.push_back(at(value));
    return results;
  }

 private:
  void check_requirements() {
    if (requirements_) requirements_->check(symbols_);
  }
  const Tensor& at(const Value& value) const { return values_[value.node].at(value.result); }

  std::vector<Tensor> evaluate(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<Tensor> operands;
    for (const Value& operand : node.operands) operands.push_back(at(operand));
    if (is_opaque(graph_, id)) {
      std::vector<Tensor> results = evaluate_opaque(graph_, id, operands, symbols_);
      check_requirements();
      return results;
    }
    if (kind_of(node.op) != Kind::control) return {evaluate_node(graph_, id, operands, symbols_, pool_)};
    Bodies bodies{symbols_, pool_};
    try {
      return run_control(node, operands, symbols_, bodies);
    } catch (const UserError& error) {
      throw UserError(describe(graph_, id) + ": " + error.what(), error.context);
    }
  }

  // What control.h asks for. Bodies are nested no deeper than deepest_body.
  struct Bodies {
    using Value = Tensor;
    const SymbolValues& symbols;
    ThreadPool* pool;

    std::vector<Tensor> run(const Graph& body, const std::vector<Tensor>& inputs) const {
      return Interpreter(body, symbols, pool, true).run(inputs, {});
    }
    static bool truth(const Tensor& value) { return value.as<uint8_t>()[0] != 0; }
    static int64_t count(const Tensor& value) { return value.as<int64_t>()[0]; }
    static Tensor number(int64_t value) { return Tensor::from<int64_t>(DataType::int64, {}, {value}); }
    static Tensor slice(const Tensor& value, int64_t index) { return slice_of(value, index); }
    Tensor stack(std::span<const Tensor> slices, const TensorType& type) const {
      return stack_of(slices, type.element, evaluate_shape(type.shape, symbols));
    }
  };

  const Graph& graph_;
  SymbolValues symbols_;
  std::optional<Requirements> requirements_;
  ThreadPool* pool_;
  std::vector<std::vector<Tensor>> values_;  // by node and result
};

}  // namespace

std::vector<Tensor> interpret(const Graph& graph, std::span<const Tensor> inputs,
                              const InterpretOptions& options) {
  const DefaultFloatEnvironment environment;
  SymbolValues symbols = bind_symbols(graph, inputs);
  std::optional<ThreadPool> pool;
  if (options.threads > 1) pool.emplace(options.threads);
  return Interpreter(graph, std::move(symbols), pool ? &*pool : nullptr).run(inputs, options);
}

}  // namespace fusewise::graph

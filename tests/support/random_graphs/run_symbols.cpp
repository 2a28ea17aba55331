#include "support/random_graphs/run_symbols.h"

#include "graph/interpreter/bind.h"
#include "graph/interpreter/interpreter.h"

namespace fusewise::test {

SymbolValues run_symbols(const graph::Graph& graph, std::span<const graph::Tensor> inputs,
                         std::vector<graph::Value> also) {
  if (graph::symbol_binders(graph).empty()) return graph::bind_symbols(graph, inputs);
  SymbolValues symbols;
  graph::InterpretOptions options;
  options.also = std::move(also);
  options.symbols = &symbols;
  graph::interpret(graph, inputs, options);
  return symbols;
}

}  // namespace fusewise::test

// The reference interpreter: the oracle of every differential test. Evaluates a graph node by node in strict
// order and in the model's types: every contraction and reduction adds in its one order, and storage
// roundings are kept, so the result is defined bit for bit (NaN payloads aside) and depends on no option.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/interpreter/tensor.h"

namespace fusewise::graph {

struct InterpretOptions {
  int threads = 1;                                          // only splits the work
  std::vector<Value> also;                                  // values to return beside the outputs
  std::function<void(NodeId node, size_t nodes)> progress;  // before each node that is evaluated
  SymbolValues* symbols = nullptr;  // receives the symbols' values, also of those that nodes bind
};

// Inputs in the order of Graph::inputs. Returns the outputs in order, then the values `also` names. Only what
// these need is computed, and every other tensor is freed after its last use. UserError when the inputs do
// not fit the graph (bind.h) or an operation refuses their values.
std::vector<Tensor> interpret(const Graph& graph, std::span<const Tensor> inputs,
                              const InterpretOptions& options = {});

}  // namespace fusewise::graph

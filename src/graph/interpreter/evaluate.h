// The reference evaluation of one node, and the families of operations that it is made of. Direct loops: the
// iteration forms (form.h) are checked against this and so are not used here.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "graph/graph.h"
#include "graph/interpreter/tensor.h"

namespace fusewise::graph {

// The result of a node for these operands, in strict order. The node is no input and no control flow. A pool only splits the
// work; the result does not depend on it. Also what constant folding runs.
Tensor evaluate_node(const Graph& graph, NodeId node, std::span<const Tensor> operands,
                     const SymbolValues& symbols, ThreadPool* pool = nullptr);

// The same for a node of kind opaque: all of its results. Adds the symbols that it binds.
std::vector<Tensor> evaluate_opaque(const Graph& graph, NodeId node, std::span<const Tensor> operands,
                                    SymbolValues& symbols);

std::vector<int64_t> evaluate_shape(const Shape& shape, const SymbolValues& symbols);
// "node 12 (dot, from 'encoder/MatMul')", for messages.
std::string describe(const Graph& graph, NodeId node);

// What the families need to know about the node in hand.
struct Evaluation {
  const Node& node;
  std::vector<int64_t> shape;              // of the result
  DataType element = DataType::undefined;  // of the result
  std::span<const Tensor> operands;
  const SymbolValues& symbols;
  ThreadPool* pool = nullptr;
};

// Views and gathers move elements of any type: the result has the first operand's element type.
Tensor evaluate_view(const Evaluation& evaluation);
Tensor evaluate_gather(const Evaluation& evaluation);
Tensor evaluate_iota(const Evaluation& evaluation);
Tensor evaluate_map(const Evaluation& evaluation);
Tensor evaluate_reduce(const Evaluation& evaluation);
Tensor evaluate_window_reduce(const Evaluation& evaluation);
Tensor evaluate_dot(const Evaluation& evaluation);
Tensor evaluate_convolution(const Evaluation& evaluation);
Tensor evaluate_sweep(const Evaluation& evaluation);

// body(begin, end) over pieces of [0, count), on the pool when there is one.
void run_in_pieces(ThreadPool* pool, int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> body);

}  // namespace fusewise::graph

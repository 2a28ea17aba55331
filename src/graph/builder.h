// Appends checked nodes to a graph. Every method infers the result type and throws UserError where the shape
// rule refuses; operations that would change nothing return their operand. Operand order, defaults and
// broadcasting follow the operations of ops.def, not a model format.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "numerics/scalar_op.h"

namespace fusewise::graph {

class GraphBuilder {
 public:
  explicit GraphBuilder(Graph& graph) : graph_(graph) {}
  Graph& graph() { return graph_; }
  const TensorType& type(Value value) const { return graph_.type(value); }
  const Shape& shape(Value value) const { return graph_.type(value).shape; }

  // What the nodes appended from here on come from: indices into Graph::model_nodes, the owner first.
  void set_source(uint32_t model_node) { sources_ = {model_node}; }
  void set_sources(std::span<const uint32_t> sources) { sources_.assign(sources.begin(), sources.end()); }

  // Any operation; `stated` as in shape_rules.h.
  Value append(Op op, std::vector<Value> operands, Attributes attributes,
               const std::optional<TensorType>& stated = {});

  // A loop or a branch with its finished bodies; a `result` node for each of its results.
  std::vector<Value> control(Op op, std::vector<Value> operands, Attributes attributes,
                             std::vector<Body> bodies);

  Value input(std::string name, TensorType type);
  void output(Value value, std::string name);

  // `owner` keeps the bytes alive; they are not copied.
  Value constant(TensorType type, std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                 std::string name = {});
  Value constant(TensorType type, std::vector<std::byte> bytes, std::string name = {});
  // A rank-0 constant, converted to `type`; equal ones (bit by bit) are one node.
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Value scalar(DataType type, Number value) {
    if constexpr (std::is_floating_point_v<Number>)
      return scalar_of(Scalar{DataType::float64, static_cast<double>(value), 0}, type);
    else
      return scalar_of(Scalar{DataType::int64, 0, static_cast<int64_t>(value)}, type);
  }
  Value scalar_of(const Scalar& value, DataType type);

  // An int64 vector of dimensions, and an int64 scalar of one.
  Value dims(std::vector<Dim> dims);
  Value dim(Dim dim);
  // 0, 1, 2, ... along an axis.
  Value iota(TensorType type, int axis);

  // Operands of equal shape.
  Value map(ScalarOp op, std::vector<Value> operands);
  // Operands that broadcast as in NumPy; the result's dimensions are those of broadcast_dim (shape_rules.h).
  Value map_broadcast(ScalarOp op, std::vector<Value> operands);
  Value cast(Value value, DataType type);

  // Operand dimension d lies along result dimension dims[d].
  Value broadcast(Value value, Shape shape, std::vector<int> dims);
  // Aligned at the last dimension; the result has exactly this shape.
  Value broadcast_to(Value value, const Shape& shape);
  Value reshape(Value value, Shape shape);
  Value transpose(Value value, std::vector<int> permutation);
  Value slice(Value value, std::vector<Dim> starts, std::vector<int64_t> steps, Shape result);
  Value pad(Value value, Value pad_value, std::vector<Dim> low, std::vector<Dim> high);
  Value concat(std::vector<Value> values, int axis);
  Value gather(Value data, Value index, int axis);
  Value scatter(Value data, Value index, Value updates, int axis, Update update);
  Value prefix(Value value, PrefixAttributes attributes);
  // All results.
  std::vector<Value> host(std::vector<Value> operands, HostAttributes attributes);

  // Axes in any order; no axes return the operand. With keepdims a reshape puts dimensions of 1 in their
  // place.
  Value reduce(Value value, Combine combine, std::vector<int> axes, bool keepdims = false);
  Value window_reduce(Value value, WindowReduceAttributes attributes);
  Value dot(Value lhs, Value rhs, DotAttributes attributes);
  // NumPy's matmul: vectors lose their dimension, the others' leading dimensions are broadcast batch
  // dimensions.
  Value matmul(Value lhs, Value rhs);
  Value convolution(Value x, Value weights, ConvolutionAttributes attributes);

 private:
  Value batched_matmul(Value lhs, Value rhs);

  Graph& graph_;
  std::vector<uint32_t> sources_;
  std::map<std::pair<DataType, uint64_t>, Value> scalars_;
};

}  // namespace fusewise::graph

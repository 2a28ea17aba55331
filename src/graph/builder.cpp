#include "graph/builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "graph/shape_rules.h"

namespace fusewise::graph {

namespace {

bool all_are(const std::vector<Dim>& dims, int64_t value) {
  return std::ranges::all_of(dims, [value](const Dim& d) { return d.is(value); });
}

std::vector<int> counting(int first, size_t count) {
  std::vector<int> result(count);
  std::iota(result.begin(), result.end(), first);
  return result;
}

}  // namespace

Value GraphBuilder::append(Op op, std::vector<Value> operands, Attributes attributes,
                           const std::optional<TensorType>& stated) {
  std::vector<TensorType> types;
  types.reserve(operands.size());
  for (const Value& operand : operands) {
    check(operand.node < graph_.size() && operand.result < graph_.node(operand.node).results.size(),
          "an operand is not in the graph");
    types.push_back(graph_.type(operand));
  }
  std::vector<TensorType> results = infer_results(op, types, attributes, stated);
  return {graph_.append({op, std::move(operands), std::move(attributes), std::move(results), sources_}), 0};
}

std::vector<Value> GraphBuilder::control(Op op, std::vector<Value> operands, Attributes attributes,
                                         std::vector<Body> bodies) {
  Node node{op, std::move(operands), std::move(attributes), {}, sources_, std::move(bodies)};
  node.results = infer(graph_, node).results;
  const size_t count = node.results.size();
  const NodeId id = graph_.append(std::move(node));
  std::vector<Value> results;
  for (uint32_t i = 0; i < count; ++i) results.push_back(append(Op::result, {{id, i}}, ResultAttributes{}));
  return results;
}

Value GraphBuilder::input(std::string name, TensorType type) {
  const Value value = append(Op::input, {}, InputAttributes{}, type);
  graph_.inputs.push_back({value.node, std::move(name)});
  return value;
}

void GraphBuilder::output(Value value, std::string name) {
  check(value.node < graph_.size(), "an output is not in the graph");
  graph_.outputs.push_back({value, std::move(name)});
}

Value GraphBuilder::constant(TensorType type, std::span<const std::byte> bytes,
                             std::shared_ptr<const void> owner, std::string name) {
  // Strings have no fixed size; whoever reads such a constant knows its layout.
  if (bits_of(type.element) != 0 && static_bytes(type) != static_cast<int64_t>(bytes.size()))
    throw UserError(fmt::format("constant '{}' of type {} needs {} bytes and has {}", name, to_string(type),
                                static_bytes(type), bytes.size()));
  const ConstantAttributes attributes{static_cast<uint32_t>(graph_.constants.size())};
  const Value value = append(Op::constant, {}, attributes, type);
  graph_.constants.push_back({std::move(type), bytes, std::move(owner), std::move(name)});
  return value;
}

Value GraphBuilder::constant(TensorType type, std::vector<std::byte> bytes, std::string name) {
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return constant(std::move(type), std::span<const std::byte>(*owner), owner, std::move(name));
}

Value GraphBuilder::scalar_of(const Scalar& value, DataType type) {
  if (!is_computable(type)) throw UserError(fmt::format("nothing computes in the type {}", name_of(type)));
  uint64_t bits = 0;
  store_scalar(&bits, convert(value, type));
  const auto found = scalars_.find({type, bits});
  if (found != scalars_.end()) return found->second;
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_of(type)));
  std::memcpy(bytes.data(), &bits, bytes.size());
  const Value result = constant({type, {}}, std::move(bytes));
  scalars_.emplace(std::pair(type, bits), result);
  return result;
}

Value GraphBuilder::dims(std::vector<Dim> dims) {
  return append(Op::dims, {}, DimsAttributes{std::move(dims), false});
}

Value GraphBuilder::dim(Dim dim) { return append(Op::dims, {}, DimsAttributes{{std::move(dim)}, true}); }

Value GraphBuilder::iota(TensorType type, int axis) {
  return append(Op::iota, {}, IotaAttributes{axis}, type);
}

Value GraphBuilder::map(ScalarOp op, std::vector<Value> operands) {
  check(op != ScalarOp::cast, "a cast states its type");
  return append(Op::map, std::move(operands), MapAttributes{op});
}

Value GraphBuilder::map_broadcast(ScalarOp op, std::vector<Value> operands) {
  Shape common;
  for (const Value& operand : operands) common = broadcast_shapes(common, shape(operand));
  for (Value& operand : operands) operand = broadcast_to(operand, common);
  return map(op, std::move(operands));
}

Value GraphBuilder::cast(Value value, DataType to) {
  if (type(value).element == to) return value;
  return append(Op::map, {value}, MapAttributes{ScalarOp::cast}, TensorType{to, shape(value)});
}

Value GraphBuilder::broadcast(Value value, Shape result, std::vector<int> dims) {
  if (shape(value) == result && dims == counting(0, result.size())) return value;
  return append(Op::broadcast, {value}, BroadcastAttributes{std::move(result), std::move(dims)});
}

Value GraphBuilder::broadcast_to(Value value, const Shape& result) {
  const size_t rank = shape(value).size();
  if (rank > result.size())
    throw UserError(
        fmt::format("{} does not broadcast to the shape {}", to_string(type(value)), to_string(result)));
  return broadcast(value, result, counting(static_cast<int>(result.size() - rank), rank));
}

Value GraphBuilder::reshape(Value value, Shape result) {
  if (shape(value) == result) return value;
  return append(Op::reshape, {value}, ReshapeAttributes{std::move(result)});
}

Value GraphBuilder::transpose(Value value, std::vector<int> permutation) {
  if (permutation == counting(0, shape(value).size())) return value;
  return append(Op::transpose, {value}, TransposeAttributes{std::move(permutation)});
}

Value GraphBuilder::slice(Value value, std::vector<Dim> starts, std::vector<int64_t> steps, Shape result) {
  const bool ones = std::ranges::all_of(steps, [](int64_t step) { return step == 1; });
  if (shape(value) == result && starts.size() == result.size() && steps.size() == result.size() && ones &&
      all_are(starts, 0))
    return value;
  return append(Op::slice, {value}, SliceAttributes{std::move(starts), std::move(steps), std::move(result)});
}

Value GraphBuilder::pad(Value value, Value pad_value, std::vector<Dim> low, std::vector<Dim> high) {
  const size_t rank = shape(value).size();
  if (low.size() == rank && high.size() == rank && all_are(low, 0) && all_are(high, 0)) return value;
  return append(Op::pad, {value, pad_value}, PadAttributes{std::move(low), std::move(high)});
}

Value GraphBuilder::concat(std::vector<Value> values, int axis) {
  if (values.size() == 1 && axis >= 0 && axis < type(values[0]).rank()) return values[0];
  return append(Op::concat, std::move(values), ConcatAttributes{axis});
}

Value GraphBuilder::gather(Value data, Value index, int axis) {
  return append(Op::gather, {data, index}, GatherAttributes{axis});
}

Value GraphBuilder::scatter(Value data, Value index, Value updates, int axis, Update update) {
  return append(Op::scatter, {data, index, updates}, ScatterAttributes{axis, update});
}

Value GraphBuilder::prefix(Value value, PrefixAttributes attributes) {
  return append(Op::prefix, {value}, attributes);
}

std::vector<Value> GraphBuilder::host(std::vector<Value> operands, HostAttributes attributes) {
  const NodeId node = append(Op::host, std::move(operands), std::move(attributes)).node;
  std::vector<Value> results;
  for (uint32_t i = 0; i < graph_.node(node).results.size(); ++i) results.push_back({node, i});
  return results;
}

Value GraphBuilder::reduce(Value value, Combine combine, std::vector<int> axes, bool keepdims) {
  if (axes.empty()) return value;
  std::ranges::sort(axes);
  Shape kept = shape(value);
  const Value reduced = append(Op::reduce, {value}, ReduceAttributes{combine, axes});
  if (!keepdims) return reduced;
  for (int axis : axes) kept[static_cast<size_t>(axis)] = 1;
  return reshape(reduced, std::move(kept));
}

Value GraphBuilder::window_reduce(Value value, WindowReduceAttributes attributes) {
  return append(Op::window_reduce, {value}, std::move(attributes));
}

Value GraphBuilder::dot(Value lhs, Value rhs, DotAttributes attributes) {
  return append(Op::dot, {lhs, rhs}, std::move(attributes));
}

Value GraphBuilder::matmul(Value lhs, Value rhs) {
  const int left = type(lhs).rank(), right = type(rhs).rank();
  if (left == 0 || right == 0)
    throw UserError(fmt::format("matmul of {} and {}: a scalar is no matrix", to_string(type(lhs)),
                                to_string(type(rhs))));
  if (left >= 2 && right >= 3) return batched_matmul(lhs, rhs);
  // The leading dimensions of one side are free dimensions.
  return dot(lhs, rhs, {{}, {}, {left - 1}, {right == 1 ? 0 : right - 2}});
}

Value GraphBuilder::batched_matmul(Value lhs, Value rhs) {
  Shape left = shape(lhs), right = shape(rhs);
  const Shape left_matrix(left.end() - 2, left.end()), right_matrix(right.end() - 2, right.end());
  left.resize(left.size() - 2);
  right.resize(right.size() - 2);
  Shape batch = broadcast_shapes(left, right);
  if (all_are(right, 1)) {  // one right matrix: the batch dimensions are further rows
    Value result = dot(lhs, reshape(rhs, right_matrix), {{}, {}, {static_cast<int>(left.size()) + 1}, {0}});
    batch.push_back(left_matrix[0]);
    batch.push_back(right_matrix[1]);
    return reshape(result, std::move(batch));
  }
  const auto broadcast_batch = [&](Value value, const Shape& matrix) {
    Shape full = batch;
    full.insert(full.end(), matrix.begin(), matrix.end());
    return broadcast_to(value, full);
  };
  const int count = static_cast<int>(batch.size());
  const std::vector<int> leading = counting(0, batch.size());
  return dot(broadcast_batch(lhs, left_matrix), broadcast_batch(rhs, right_matrix),
             {leading, leading, {count + 1}, {count}});
}

Value GraphBuilder::convolution(Value x, Value weights, ConvolutionAttributes attributes) {
  return append(Op::convolution, {x, weights}, std::move(attributes));
}

}  // namespace fusewise::graph

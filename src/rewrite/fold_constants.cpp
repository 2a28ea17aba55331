#include "rewrite/fold_constants.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>

#include "base/error.h"
#include "graph/interpreter/evaluate.h"
#include "graph/shape_rules.h"
#include "graph/statistics.h"
#include "rewrite/rebuilder.h"

namespace fusewise::rewrite {

namespace {

using graph::ConstantData;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Tensor;
using graph::TensorType;
using graph::Value;

// A counting vector this small is worth its bytes: shape arithmetic continues from it.
constexpr int64_t most_iota_bytes = 1024;

bool is_static(const TensorType& type) {
  return std::ranges::all_of(type.shape, [](const Dim& d) { return d.is_constant(); });
}

// The constant that an operand is or repeats.
const ConstantData* constant_behind(const Graph& graph, Value value) {
  const Node& node = graph.node(value.node);
  return constant_of(graph, node.op == Op::broadcast ? node.operands[0] : value);
}

Tensor tensor_of(const ConstantData& data) {
  return Tensor::borrow(data.type.element, graph::evaluate_shape(data.type.shape, {}), data.bytes, data.owner)
      .aligned();
}

class Folder {
 public:
  Folder(Rebuilder& rebuilder, const RewriteContext& context) : r_(rebuilder), context_(context) {}

  // The constant in place of a node of the new graph, or nothing.
  std::optional<Value> fold(NodeId id) {
    const Node& node = r_.result().node(id);
    if (node.op == Op::input || node.op == Op::constant || node.op == Op::result ||
        graph::is_opaque(r_.result(), id) || graph::kind_of(node.op) == graph::Kind::control ||
        !is_static(node.results[0]))
      return std::nullopt;
    if (const std::optional<Value> same = same_bytes(node)) return same;
    if (!may_fold(id)) return std::nullopt;
    try {
      std::vector<Tensor> operands;
      for (const Value& operand : node.operands) operands.push_back(tensor_at(operand));
      return constant(graph::evaluate_node(r_.result(), id, operands, {}, context_.pool));
    } catch (const UserError&) {
      return std::nullopt;  // stays for whoever runs it to report
    }
  }

 private:
  // reshape(c), broadcast(c) that repeats nothing, and slice(c) without gaps: bytes that are there, under another type.
  std::optional<Value> same_bytes(const Node& node) {
    if (node.op != Op::reshape && node.op != Op::broadcast && node.op != Op::slice) return std::nullopt;
    const ConstantData* found = constant_of(r_.result(), node.operands[0]);
    if (!found) return std::nullopt;
    ConstantData data = *found;
    if (node.op == Op::slice) {
      const std::optional<std::span<const std::byte>> run = run_of(node, data);
      if (!run) return std::nullopt;
      data.bytes = *run;
    } else if (product(data.type.shape) != product(node.results[0].shape)) {
      return std::nullopt;
    }
    return r_.builder().constant(node.results[0], data.bytes, data.owner, data.name);
  }

  // The bytes of a slice that are one run: whole behind the first dimension of which it takes several elements.
  static std::optional<std::span<const std::byte>> run_of(const Node& node, const ConstantData& data) {
    const auto& slice = graph::attributes<graph::SliceAttributes>(node);
    const int bits = bits_of(data.type.element);
    if (bits < 8) return std::nullopt;
    int64_t first = 0, count = 1;
    bool is_whole = true;  // what was looked at so far, from the last dimension on
    for (size_t d = slice.shape.size(); d-- > 0;) {
      const int64_t extent = data.type.shape[d].value(), taken = slice.shape[d].value();
      if (!slice.starts[d].is_constant() || (taken > 1 && slice.steps[d] != 1)) return std::nullopt;
      if (taken != 1 && !is_whole) return std::nullopt;
      first += slice.starts[d].value() * element_stride(data.type.shape, d);
      count *= taken;
      is_whole = is_whole && taken == extent;
    }
    if (count == 0) return data.bytes.first(0);
    const size_t size = static_cast<size_t>(bits / 8);
    return data.bytes.subspan(static_cast<size_t>(first) * size, static_cast<size_t>(count) * size);
  }
  static int64_t element_stride(const Shape& shape, size_t dimension) {
    int64_t stride = 1;
    for (size_t d = dimension + 1; d < shape.size(); ++d) stride *= shape[d].value();
    return stride;
  }

  bool may_fold(NodeId id) const {
    const Graph& graph = r_.result();
    const Node& node = graph.node(id);
    if (!is_computable(node.results[0].element)) return false;
    if (node.op == Op::broadcast) return false;
    if (node.op == Op::iota) return graph::static_bytes(node.results[0]) <= most_iota_bytes;
    if (node.op == Op::dims)
      return std::ranges::all_of(graph::attributes<graph::DimsAttributes>(node).dims,
                                 [](const Dim& d) { return d.is_constant(); });
    const bool moves = graph::kind_of(node.op) == graph::Kind::view;
    if (moves && graph::static_bytes(node.results[0]) > context_.most_moved_bytes) return false;
    int64_t bytes = 0;
    bool whole = false;  // some operand is a constant itself
    for (const Value& operand : node.operands) {
      const ConstantData* data = constant_behind(graph, operand);
      if (!data || !is_computable(data->type.element)) return false;
      const bool repeats = graph.node(operand.node).op == Op::broadcast;
      if (repeats && node.op != Op::map) return false;
      whole = whole || !repeats;
      bytes += static_cast<int64_t>(data->bytes.size());
    }
    if (!whole || graph::static_bytes(node.results[0]) > bytes + context_.most_growth_bytes) return false;
    const Dim operations = graph::flops_of(graph, id);
    return operations.is_constant() && operations.value() <= context_.most_fold_operations;
  }

  Tensor tensor_at(Value value) const {
    const Graph& graph = r_.result();
    Tensor tensor = tensor_of(*constant_behind(graph, value));
    if (graph.node(value.node).op != Op::broadcast) return tensor;
    return graph::evaluate_node(graph, value.node, std::span<const Tensor>(&tensor, 1), {}, context_.pool);
  }

  Value constant(Tensor tensor) {
    const TensorType type{tensor.element, {tensor.shape.begin(), tensor.shape.end()}};
    const auto owner = std::make_shared<const Tensor>(std::move(tensor));
    return r_.builder().constant(type, owner->bytes(), owner);
  }

  Rebuilder& r_;
  const RewriteContext& context_;
};

}  // namespace

Rewritten fold_constants(Graph graph, const RewriteContext& context) {
  Rebuilder rebuilder(std::move(graph));
  Folder folder(rebuilder, context);
  for (NodeId id = 0; id < rebuilder.size(); ++id) {
    rebuilder.begin(id);
    const Value kept = rebuilder.keep(id);
    if (const std::optional<Value> folded = folder.fold(kept.node)) rebuilder.replace(id, *folded);
  }
  return rebuilder.finish();
}

}  // namespace fusewise::rewrite

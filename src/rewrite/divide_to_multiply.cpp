#include "rewrite/divide_to_multiply.h"

#include <cmath>
#include <optional>
#include <vector>

#include "numerics/error_bound.h"
#include "rewrite/match.h"
#include "rewrite/rebuilder.h"

namespace fusewise::rewrite {

namespace {

using graph::ConstantData;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Value;

// The reciprocals of a constant's elements, each rounded once, or nothing when one is no normal number.
std::optional<std::vector<std::byte>> reciprocals(const ConstantData& data) {
  const DataType type = data.type.element;
  const size_t bytes = static_cast<size_t>(bytes_of(type));
  std::vector<std::byte> result(data.bytes.size());
  for (size_t i = 0; i < data.bytes.size(); i += bytes) {
    const double divisor = load_scalar(data.bytes.data() + i, type).f;
    const Scalar inverse = convert({DataType::float64, 1 / divisor, 0}, type);
    if (!std::isfinite(divisor) || !std::isfinite(inverse.f) || std::abs(inverse.f) < least_normal(type))
      return std::nullopt;
    store_scalar(result.data() + i, inverse);
  }
  return result;
}

std::optional<Value> multiplied(Rebuilder& r, const Node& node) {
  if (!is_map(node, ScalarOp::div) || !is_float(node.results[0].element)) return std::nullopt;
  const Graph& graph = r.result();
  const Node divisor = graph.node(node.operands[1].node);
  const Value source = divisor.op == Op::broadcast ? divisor.operands[0] : node.operands[1];
  const ConstantData* found = constant_of(graph, source);
  if (!found) return std::nullopt;
  const ConstantData data = *found;
  std::optional<std::vector<std::byte>> bytes = reciprocals(data);
  if (!bytes) return std::nullopt;
  Value factor = r.builder().constant(data.type, std::move(*bytes));
  if (divisor.op == Op::broadcast) {
    const auto& a = graph::attributes<graph::BroadcastAttributes>(divisor);
    factor = r.builder().broadcast(factor, a.shape, a.dims);
  }
  return r.builder().map(ScalarOp::mul, {node.operands[0], factor});
}

}  // namespace

Rewritten divide_to_multiply(Graph graph, const RewriteContext&) {
  Rebuilder rebuilder(std::move(graph));
  for (NodeId id = 0; id < rebuilder.size(); ++id) {
    const Node& node = rebuilder.begin(id);
    if (const std::optional<Value> value = multiplied(rebuilder, node)) {
      rebuilder.replace(id, *value);
    } else {
      rebuilder.keep(id);
    }
  }
  return rebuilder.finish();
}

}  // namespace fusewise::rewrite

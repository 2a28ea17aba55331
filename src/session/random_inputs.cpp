#include "session/random_inputs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/hash.h"
#include "numerics/error_bound.h"
#include "numerics/scalar_op.h"

namespace fusewise::session {
namespace {

using graph::Graph;
using graph::Kind;
using graph::Node;
using graph::NodeId;

// Whether the integers of the node's operands live on in its result.
bool passes_integers_on(const Node& node) {
  const Kind kind = graph::kind_of(node.op);
  return (kind == Kind::gather || kind == Kind::view || kind == Kind::map) &&
         is_integer(node.results[0].element);
}

// A sequence of 64-bit numbers that its start determines.
class Numbers {
 public:
  explicit Numbers(uint64_t start) : state_(start) {}
  uint64_t next() {
    uint64_t x = state_ += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
  }
  // In [0, 1) with `bits` random bits, so that rounding to a type of that precision cannot give 1.
  double fraction(int bits) { return std::ldexp(static_cast<double>(next() >> (64 - bits)), -bits); }
  // In [low, high].
  int64_t integer(int64_t low, int64_t high) {
    const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
    return static_cast<int64_t>(static_cast<uint64_t>(low) + (span == 0 ? next() : next() % span));
  }

 private:
  uint64_t state_;
};

struct IntegerLimits {
  int64_t low, high;
};
IntegerLimits limits_of(DataType type) {
  if (type == DataType::boolean) return {0, 1};
  const int bits = std::min(bits_of(type), 64);
  if (is_signed(type))
    return {bits == 64 ? INT64_MIN : -(int64_t{1} << (bits - 1)),
            bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1};
  return {0, bits == 64 ? INT64_MAX : (int64_t{1} << bits) - 1};
}

int64_t to_integer(double value) {
  if (value <= -0x1p63) return INT64_MIN;
  if (value >= 0x1p63) return INT64_MAX;
  return static_cast<int64_t>(value);
}

void fill_floats(graph::Tensor& tensor, Numbers& numbers, ValueRange range) {
  const int bits = significand_bits(tensor.element);
  const int size = bytes_of(tensor.element);
  std::byte* target = tensor.mutable_bytes().data();
  for (int64_t i = 0, n = tensor.count(); i < n; ++i) {
    const double value = range.low + (range.high - range.low) * numbers.fraction(bits);
    store_scalar(target + i * size, convert(Scalar{DataType::float64, value, 0}, tensor.element));
  }
}

void fill_integers(graph::Tensor& tensor, Numbers& numbers, int64_t low, int64_t high) {
  const int size = bytes_of(tensor.element);
  std::byte* target = tensor.mutable_bytes().data();
  for (int64_t i = 0, n = tensor.count(); i < n; ++i) {
    const int64_t value = numbers.integer(low, high);  // little-endian: the low bytes are the narrower number
    std::memcpy(target + i * size, &value, static_cast<size_t>(size));
  }
}

}  // namespace

std::vector<std::optional<Dim>> index_extents(const Graph& graph) {
  // Backwards: what the elements of each node index at least.
  std::vector<std::optional<Dim>> extents(graph.size());
  const auto note = [&](NodeId node, const Dim& extent) {
    std::optional<Dim>& known = extents[node];
    known = known ? min(*known, extent) : extent;
  };
  for (size_t i = graph.size(); i-- > 0;) {
    const auto id = static_cast<NodeId>(i);
    const Node& node = graph.node(id);
    if (node.op == graph::Op::gather) {
      const int axis = graph::attributes<graph::GatherAttributes>(node).axis;
      note(node.operands[1].node, graph.type(node.operands[0]).shape[static_cast<size_t>(axis)]);
    }
    if (node.op == graph::Op::scatter) {
      const int axis = graph::attributes<graph::ScatterAttributes>(node).axis;
      note(node.operands[1].node, graph.type(node.operands[0]).shape[static_cast<size_t>(axis)]);
    }
    if (!extents[id] || !passes_integers_on(node)) continue;
    const size_t operands = graph::kind_of(node.op) == Kind::gather ? 1 : node.operands.size();
    for (size_t k = 0; k < operands; ++k)
      if (is_integer(graph.type(node.operands[k]).element)) note(node.operands[k].node, Dim(*extents[id]));
  }
  std::vector<std::optional<Dim>> result;
  for (const graph::GraphInput& input : graph.inputs)
    result.push_back(is_integer(graph.type({input.node, 0}).element) ? extents[input.node] : std::nullopt);
  return result;
}

graph::Tensor random_tensor(const std::string& name, DataType type, const std::vector<int64_t>& shape,
                            uint64_t seed, std::optional<ValueRange> range,
                            std::optional<int64_t> index_extent) {
  graph::Tensor tensor(type, shape);
  Hasher hasher;
  hasher.add(std::string_view(name)).add(seed);
  Numbers numbers(hasher.finish().low);
  if (is_float(type)) {
    fill_floats(tensor, numbers, range.value_or(ValueRange{}));
    return tensor;
  }
  const IntegerLimits limits = limits_of(type);
  IntegerLimits chosen{0, 1};
  if (range) {
    chosen = {to_integer(range->low), to_integer(range->high)};
    if (chosen.low < limits.low || chosen.high > limits.high)
      throw UserError(fmt::format("the values {} to {} for input '{}' do not fit {}", range->low, range->high,
                                  name, name_of(type)));
  } else if (index_extent) {
    chosen = {0, std::clamp<int64_t>(*index_extent - 1, 0, limits.high)};
  }
  fill_integers(tensor, numbers, chosen.low, chosen.high);
  return tensor;
}

}  // namespace fusewise::session

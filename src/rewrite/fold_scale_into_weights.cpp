#include "rewrite/fold_scale_into_weights.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

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

// Where the weights of a contraction are, and which of their dimensions each result dimension runs along (-1:
// none, or one that no factor can be moved along).
struct Weights {
  size_t operand = 1;
  std::vector<int> dim_of_result;
};

std::vector<int> free_dims(int rank, const std::vector<int>& batch, const std::vector<int>& contract) {
  std::vector<int> free;
  for (int d = 0; d < rank; ++d)
    if (std::ranges::find(batch, d) == batch.end() && std::ranges::find(contract, d) == contract.end())
      free.push_back(d);
  return free;
}

std::optional<Weights> weights_of(const Graph& graph, const Node& node) {
  if (!is_float(node.results[0].element)) return std::nullopt;
  Weights weights;
  weights.dim_of_result.assign(node.results[0].shape.size(), -1);
  if (node.op == Op::convolution) {
    if (!constant_of(graph, node.operands[1])) return std::nullopt;
    weights.dim_of_result[1] = 0;
    return weights;
  }
  if (node.op != Op::dot) return std::nullopt;
  const bool right = constant_of(graph, node.operands[1]) != nullptr;
  if (!right && !constant_of(graph, node.operands[0])) return std::nullopt;
  weights.operand = right ? 1 : 0;
  const auto& a = graph::attributes<graph::DotAttributes>(node);
  const auto& batch = right ? a.rhs_batch : a.lhs_batch;
  const std::vector<int> free = free_dims(graph.type(node.operands[weights.operand]).rank(), batch,
                                          right ? a.rhs_contract : a.lhs_contract);
  const size_t first = right ? weights.dim_of_result.size() - free.size() : batch.size();
  for (size_t i = 0; i < free.size(); ++i) weights.dim_of_result[first + i] = free[i];
  return weights;
}

// value * scale + shift, both along one axis of the result; one number each until an axis is known.
struct Affine {
  int axis = -1;
  std::vector<double> scale{1}, shift{0};
  int shifts = 0;
  bool scales = false;

  // False when the constant runs along another axis.
  bool widen(const AxisConstant& constant) {
    if (constant.axis < 0) return true;
    if (axis >= 0) return axis == constant.axis;
    axis = constant.axis;
    scale.assign(constant.values.size(), scale[0]);
    shift.assign(constant.values.size(), shift[0]);
    return true;
  }
  bool worthwhile() const { return scales || shifts > 1; }
};

double at(const AxisConstant& constant, size_t i) { return constant.values[constant.axis < 0 ? 0 : i]; }

// Takes one more map over the value as its operand `through`; false when it is no step of this kind.
bool extend(Affine& affine, const Graph& graph, const Node& node, size_t through,
            const std::vector<int>& dim_of_result) {
  if (node.op != Op::map || node.operands.size() != 2) return false;
  const ScalarOp op = graph::attributes<graph::MapAttributes>(node).op;
  const std::optional<AxisConstant> constant = axis_constant(graph, node.operands[1 - through]);
  if (!constant || (constant->axis >= 0 && dim_of_result[static_cast<size_t>(constant->axis)] < 0))
    return false;
  const bool known = op == ScalarOp::add || op == ScalarOp::sub || op == ScalarOp::mul;
  if (!known || !affine.widen(*constant)) return false;
  for (size_t i = 0; i < affine.scale.size(); ++i) {
    const double c = at(*constant, i);
    if (op == ScalarOp::mul) {
      affine.scale[i] *= c;
      affine.shift[i] *= c;
    } else if (op == ScalarOp::add) {
      affine.shift[i] += c;
    } else if (through == 0) {  // v - c
      affine.shift[i] -= c;
    } else {  // c - v
      affine.scale[i] = -affine.scale[i];
      affine.shift[i] = c - affine.shift[i];
    }
  }
  affine.scales = affine.scales || op == ScalarOp::mul || (op == ScalarOp::sub && through == 1);
  affine.shifts += op == ScalarOp::mul ? 0 : 1;
  return true;
}

double rounded(double value, DataType type) { return convert({DataType::float64, value, 0}, type).f; }

// What scales and scaled weights of a type may be: of at most this exponent, so that sums of their products with
// ordinary numbers stay finite where those behind the sum would; and scaled weights not below the least normal number,
// where they would lose digits. Nothing for types that are narrower than what sums are kept in: a weight would be
// rounded more coarsely than a product.
struct Exponents {
  int least_normal, most;
};

std::optional<Exponents> exponents_of(DataType type) {
  if (type == DataType::float32) return Exponents{-126, 63};
  if (type == DataType::float64) return Exponents{-1022, 511};
  return std::nullopt;
}

bool fits_scale(double scale, const Exponents& exponents) {
  return scale == 0 || (std::isfinite(scale) && std::abs(std::ilogb(scale)) <= exponents.most);
}

// Whether the product stands for weight times scale as well as the weight stands for itself: a subnormal weight may lose
// digits (numerics/error_bound.cpp counts with it), and nothing becomes 0.
bool fits_product(double weight, double scale, double product, const Exponents& exponents) {
  if (!std::isfinite(product)) return false;
  if (product == 0) return weight == 0 || scale == 0;
  const int exponent = std::ilogb(product);
  return exponent <= exponents.most &&
         (exponent >= exponents.least_normal || std::ilogb(weight) < exponents.least_normal);
}

// The weights times the scale along one of their dimensions; nothing when a number does not fit then.
std::optional<std::vector<std::byte>> scaled(const ConstantData& data, const std::vector<double>& scale,
                                             int dim) {
  const DataType type = data.type.element;
  const std::optional<Exponents> exponents = exponents_of(type);
  if (!exponents) return std::nullopt;
  for (const double s : scale)
    if (!fits_scale(s, *exponents)) return std::nullopt;
  const size_t bytes = static_cast<size_t>(bytes_of(type)), count = data.bytes.size() / bytes;
  size_t inner = 1;
  for (size_t d = data.type.shape.size(); d-- > static_cast<size_t>(dim) + 1;)
    inner *= static_cast<size_t>(data.type.shape[d].value());
  std::vector<std::byte> result(data.bytes.size());
  for (size_t begin = 0, channel = 0; begin < count; begin += inner, channel = (channel + 1) % scale.size()) {
    for (size_t i = begin; i < begin + inner; ++i) {
      const double weight = load_scalar(data.bytes.data() + i * bytes, type).f;
      const Scalar product{type, rounded(weight * scale[channel], type), 0};
      if (!fits_product(weight, scale[channel], product.f, *exponents)) return std::nullopt;
      store_scalar(result.data() + i * bytes, product);
    }
  }
  return result;
}

// What becomes of a contraction and the maps that end in `last`.
struct Chain {
  Node contraction;
  NodeId last = graph::no_node;
  std::vector<uint32_t> sources;  // of the maps
  Weights weights;
  Affine affine;
};

class Finder {
 public:
  explicit Finder(const Graph& graph)
      : graph_(graph), uses_(count_uses(graph)), user_(graph.size(), graph::no_node) {
    for (NodeId id = 0; id < graph.size(); ++id)
      for (const Value& operand : graph.node(id).operands) user_[operand.node] = id;
  }

  // The chain that begins with this contraction.
  std::optional<Chain> chain_of(NodeId id) const {
    const Node& node = graph_.node(id);
    const std::optional<Weights> weights = weights_of(graph_, node);
    if (!weights || uses_[node.operands[weights->operand].node] != 1) return std::nullopt;
    Chain chain{{}, graph::no_node, {}, *weights, {}};
    for (NodeId at = id; uses_[at] == 1 && user_[at] != graph::no_node;) {
      const NodeId next = user_[at];
      const Node& map = graph_.node(next);
      if (map.op != Op::map || map.operands.size() != 2) break;
      Affine affine = chain.affine;
      if (!extend(affine, graph_, map, map.operands[0].node == at ? 0 : 1, weights->dim_of_result)) break;
      chain.affine = std::move(affine);
      chain.sources.insert(chain.sources.end(), map.sources.begin(), map.sources.end());
      at = chain.last = next;
    }
    if (!chain.affine.worthwhile()) return std::nullopt;
    chain.contraction = node;
    return chain;
  }

 private:
  const Graph& graph_;
  std::vector<int> uses_;
  std::vector<NodeId> user_;  // the last one; graph::no_node where only an output is
};

Value constant_vector(Rebuilder& r, DataType type, const std::vector<double>& values) {
  if (values.size() == 1) return r.builder().scalar(type, values[0]);
  const size_t bytes = static_cast<size_t>(bytes_of(type));
  std::vector<std::byte> data(values.size() * bytes);
  for (size_t i = 0; i < values.size(); ++i)
    store_scalar(data.data() + i * bytes, convert({DataType::float64, values[i], 0}, type));
  return r.builder().constant({type, {static_cast<int64_t>(values.size())}}, std::move(data));
}

// conv(x, W * s) + t, or nothing when the numbers do not allow it.
std::optional<Value> folded(Rebuilder& r, const Chain& chain) {
  const DataType type = chain.contraction.results[0].element;
  const Affine& affine = chain.affine;
  for (double t : affine.shift)
    if (!std::isfinite(rounded(t, type))) return std::nullopt;
  Node node = r.begin_copy(chain.contraction);
  r.also_from(chain.sources);
  Value& weights = node.operands[chain.weights.operand];
  if (affine.scales) {
    const ConstantData data = *constant_of(r.result(), weights);
    const int dim = affine.axis < 0 ? 0 : chain.weights.dim_of_result[static_cast<size_t>(affine.axis)];
    std::optional<std::vector<std::byte>> bytes = scaled(data, affine.scale, dim);
    if (!bytes) return std::nullopt;
    weights = r.builder().constant(data.type, std::move(*bytes), data.name);
  }
  const Value product = r.builder().append(node.op, node.operands, node.attributes);
  if (affine.shifts == 0) return product;
  const Value shift = constant_vector(r, type, affine.shift);
  const Shape shape = node.results[0].shape;
  std::vector<int> dims;
  if (affine.shift.size() > 1) dims.push_back(affine.axis);
  return r.builder().map(ScalarOp::add, {product, r.builder().broadcast(shift, shape, dims)});
}

}  // namespace

Rewritten fold_scale_into_weights(Graph graph, const RewriteContext&) {
  const Finder finder(graph);
  std::map<NodeId, Chain> chains;  // by the last map
  for (NodeId id = 0; id < graph.size(); ++id)
    if (std::optional<Chain> chain = finder.chain_of(id)) {
      const NodeId last = chain->last;
      chains.emplace(last, std::move(*chain));
    }
  Rebuilder rebuilder(std::move(graph));
  for (NodeId id = 0; id < rebuilder.size(); ++id) {
    const auto found = chains.find(id);
    std::optional<Value> value;
    if (found != chains.end()) value = folded(rebuilder, found->second);
    if (value) {
      rebuilder.replace(id, *value);
    } else {
      rebuilder.keep(id);
    }
  }
  return rebuilder.finish();
}

}  // namespace fusewise::rewrite

// The operators that exporters compute shapes with, on tensors whose elements are known as dimensions. What
// cannot be decided here (a comparison that depends on a symbol, a result outside its type) is left to the
// graph.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "graph/shape_rules.h"
#include "import/onnx/known_ops.h"
#include "import/onnx/op_table.h"
#include "import/onnx/tensor_data.h"

namespace fusewise::onnx {

namespace {

using known::count_of;
using known::one;
using known::Results;
using Result = std::optional<KnownTensor>;

// A value that the type can hold, so that what is known is what the graph would compute.
bool fits(const Dim& value, DataType type) {
  if (!value.is_constant()) return type == DataType::int64 || type == DataType::int32 || is_float(type);
  const int64_t v = value.value();
  if (is_float(type)) return v > -(1 << 24) && v < (1 << 24);
  if (type == DataType::boolean) return v == 0 || v == 1;
  const int bits = bits_of(type);
  if (bits == 64) return is_signed(type) || v >= 0;
  if (is_signed(type)) return v >= -(int64_t{1} << (bits - 1)) && v < (int64_t{1} << (bits - 1));
  return v >= 0 && v < (int64_t{1} << bits);
}

std::optional<std::vector<int64_t>> broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  if (count_of(result) > KnownTensor::max_elements) return std::nullopt;
  return result;
}

// The element of `t` that lies at row-major position `at` of a result of `shape`, which t broadcasts to.
const Dim& element(const KnownTensor& t, const std::vector<int64_t>& shape, int64_t at) {
  int64_t index = 0, stride = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t extent = shape[shape.size() - 1 - i];
    const int64_t coordinate = at % extent;
    at /= extent;
    if (i >= t.shape.size()) continue;
    const int64_t own = t.shape[t.shape.size() - 1 - i];
    index += own == 1 ? 0 : coordinate * stride;
    stride *= own;
  }
  return t.values[static_cast<size_t>(index)];
}

using Binary = std::optional<Dim> (*)(const Dim&, const Dim&, DataType);

Result zip(const KnownTensor& a, const KnownTensor& b, DataType result_type, Binary function) {
  const auto shape = broadcast(a.shape, b.shape);
  if (!shape) return std::nullopt;
  KnownTensor result{result_type, *shape, {}};
  const int64_t count = count_of(*shape);
  for (int64_t i = 0; i < count; ++i) {
    const std::optional<Dim> value = function(element(a, *shape, i), element(b, *shape, i), a.type);
    if (!value || !fits(*value, result_type)) return std::nullopt;
    // A float result of zero may be a negative zero.
    if (is_float(result_type) && value->is(0)) return std::nullopt;
    result.values.push_back(*value);
  }
  return result;
}

// floor(a / b) where it equals C's division.
std::optional<Dim> divide(const Dim& a, const Dim& b, DataType type) {
  if (is_float(type)) {
    if (!b.is_constant() || b.is(0)) return std::nullopt;
    const Dim quotient = floor_div(a, b);
    return quotient * b == a ? std::optional(quotient) : std::nullopt;
  }
  if (a.is_constant() && b.is_constant()) {
    if (b.is(0) || (b.is(-1) && a.is(INT64_MIN))) return std::nullopt;
    return Dim(a.value() / b.value());
  }
  const auto low_a = a.lower_bound(), low_b = b.lower_bound();
  if (!low_a || *low_a < 0 || !low_b || *low_b < 1) return std::nullopt;
  return floor_div(a, b);
}

std::optional<Dim> less(const Dim& a, const Dim& b, DataType) {
  const Dim difference = a - b;
  if (const auto high = difference.upper_bound(); high && *high < 0) return Dim(1);
  if (const auto low = difference.lower_bound(); low && *low >= 0) return Dim(0);
  return std::nullopt;
}
std::optional<Dim> negated(const std::optional<Dim>& truth) {
  if (!truth) return std::nullopt;
  return Dim(1 - truth->value());
}

struct BinaryRow {
  std::string_view op_type;
  bool compares;
  Binary function;
};
constexpr BinaryRow binary_rows[] = {
    {"Add", false, [](const Dim& a, const Dim& b, DataType) -> std::optional<Dim> { return a + b; }},
    {"And", false, [](const Dim& a, const Dim& b, DataType) -> std::optional<Dim> { return a * b; }},
    {"Div", false, divide},
    {"Equal", true,
     [](const Dim& a, const Dim& b, DataType) -> std::optional<Dim> {
       if (a == b) return Dim(1);
       return graph::provably_different(a, b) ? std::optional(Dim(0)) : std::nullopt;
     }},
    {"Greater", true, [](const Dim& a, const Dim& b, DataType type) { return less(b, a, type); }},
    {"GreaterOrEqual", true,
     [](const Dim& a, const Dim& b, DataType type) { return negated(less(a, b, type)); }},
    {"Less", true, less},
    {"LessOrEqual", true,
     [](const Dim& a, const Dim& b, DataType type) { return negated(less(b, a, type)); }},
    {"Max", false, [](const Dim& a, const Dim& b, DataType) -> std::optional<Dim> { return max(a, b); }},
    {"Min", false, [](const Dim& a, const Dim& b, DataType) -> std::optional<Dim> { return min(a, b); }},
    {"Mod", false,
     [](const Dim& a, const Dim& b, DataType) -> std::optional<Dim> {
       if (!b.is_constant() || b.is(0)) return std::nullopt;
       return modulo(a, b);
     }},
    {"Mul", false, [](const Dim& a, const Dim& b, DataType) -> std::optional<Dim> { return a * b; }},
    {"Or", false, [](const Dim& a, const Dim& b, DataType) -> std::optional<Dim> { return a + b - a * b; }},
    {"Sub", false, [](const Dim& a, const Dim& b, DataType) -> std::optional<Dim> { return a - b; }},
};

Results known_binary(Call& call, const BinaryRow& row) {
  const KnownTensor* first = call.known(0);
  if (!first) return std::nullopt;
  const bool logical = row.op_type == "And" || row.op_type == "Or";
  if (logical != (first->type == DataType::boolean) && row.op_type != "Equal") return std::nullopt;
  if (row.op_type == "Mod" && (call.integer("fmod", 0) != 0 || is_float(first->type))) return std::nullopt;
  KnownTensor result = *first;
  for (size_t i = 1; i < call.inputs(); ++i) {
    const KnownTensor* next = call.known(i);
    if (!next || next->type != first->type) return std::nullopt;
    Result combined = zip(result, *next, row.compares ? DataType::boolean : first->type, row.function);
    if (!combined) return std::nullopt;
    result = std::move(*combined);
  }
  return one(std::move(result));
}

Results known_shape(Call& call) {
  const graph::TensorType type = call.type(0);
  const int64_t rank = type.rank();
  int64_t start = call.integer("start", 0), end = call.integer("end", rank);
  start = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
  end = std::clamp<int64_t>(end < 0 ? end + rank : end, 0, rank);
  KnownTensor result{DataType::int64, {std::max<int64_t>(end - start, 0)}, {}};
  for (int64_t i = start; i < end; ++i) result.values.push_back(type.shape[static_cast<size_t>(i)]);
  return one(std::move(result));
}

Results known_size(Call& call) {
  return one(KnownTensor{DataType::int64, {}, {product(call.type(0).shape)}});
}

Results known_identity(Call& call) {
  const KnownTensor* data = call.known(0);
  return data ? one(*data) : std::nullopt;
}

Results known_cast(Call& call) {
  const KnownTensor* data = call.known(0);
  if (!data) return std::nullopt;
  DataType to;
  switch (call.required_integer("to")) {
    case 7:
      to = DataType::int64;
      break;
    case 6:
      to = DataType::int32;
      break;
    case 1:
      to = DataType::float32;
      break;
    case 11:
      to = DataType::float64;
      break;
    case 9:
      to = DataType::boolean;
      break;
    default:
      return std::nullopt;
  }
  KnownTensor result{to, data->shape, data->values};
  for (Dim& value : result.values) {
    if (to == DataType::boolean && !value.is_constant()) return std::nullopt;
    if (to == DataType::boolean) value = value.is(0) ? 0 : 1;
    if (!fits(value, to)) return std::nullopt;
  }
  return one(std::move(result));
}

Results known_not(Call& call) {
  const KnownTensor* data = call.known(0);
  if (!data || data->type != DataType::boolean) return std::nullopt;
  KnownTensor result = *data;
  for (Dim& value : result.values) value = Dim(1) - value;
  return one(std::move(result));
}

Results known_neg(Call& call) {
  const KnownTensor* data = call.known(0);
  if (!data || is_float(data->type)) return std::nullopt;
  KnownTensor result = *data;
  for (Dim& value : result.values) {
    value = Dim(0) - value;
    if (!fits(value, data->type)) return std::nullopt;
  }
  return one(std::move(result));
}

// Values that are whole already.
Results known_rounding(Call& call) {
  const KnownTensor* data = call.known(0);
  if (!data || !is_float(data->type)) return std::nullopt;
  return one(*data);
}

Results known_where(Call& call) {
  const KnownTensor* condition = call.known(0);
  const KnownTensor* yes = condition ? call.known(1) : nullptr;
  const KnownTensor* no = yes ? call.known(2) : nullptr;
  if (!no || yes->type != no->type) return std::nullopt;
  const auto both = broadcast(yes->shape, no->shape);
  const auto shape = both ? broadcast(condition->shape, *both) : std::nullopt;
  if (!shape) return std::nullopt;
  KnownTensor result{yes->type, *shape, {}};
  for (int64_t i = 0, count = count_of(*shape); i < count; ++i)
    result.values.push_back(element(element(*condition, *shape, i).is(0) ? *no : *yes, *shape, i));
  return one(std::move(result));
}

Results known_expand(Call& call) {
  const KnownTensor* data = call.known(0);
  const KnownTensor* target = data ? call.known(1) : nullptr;
  const auto wanted = target ? target->constants() : std::nullopt;
  if (!wanted || count_of(*wanted) > KnownTensor::max_elements) return std::nullopt;
  const auto shape = broadcast(data->shape, *wanted);
  if (!shape) return std::nullopt;
  KnownTensor result{data->type, *shape, {}};
  for (int64_t i = 0, count = count_of(*shape); i < count; ++i)
    result.values.push_back(element(*data, *shape, i));
  return one(std::move(result));
}

Results known_constant_of_shape(Call& call) {
  const KnownTensor* target = call.known(0);
  const auto shape = target ? target->constants() : std::nullopt;
  if (!shape || count_of(*shape) > KnownTensor::max_elements) return std::nullopt;
  const Attribute* value = call.attribute("value");
  if (!value || value->tensors.size() != 1) return std::nullopt;  // the default is a float
  const Tensor& tensor = value->tensors[0];
  if (tensor.element_type != 7 && tensor.element_type != 6 && tensor.element_type != 9) return std::nullopt;
  // Read through a constant of its own, which nothing keeps.
  KnownTensor result{DataType::int64, *shape, {}};
  const auto filled = known_elements(call.loader().load(tensor));
  if (!filled || filled->values.size() != 1) return std::nullopt;
  result.type = filled->type;
  result.values.assign(static_cast<size_t>(count_of(*shape)), filled->values[0]);
  return one(std::move(result));
}

Results known_range(Call& call) {
  const KnownTensor* start = call.known(0);
  const KnownTensor* limit = start ? call.known(1) : nullptr;
  const KnownTensor* delta = limit ? call.known(2) : nullptr;
  if (!delta || is_float(start->type)) return std::nullopt;
  const auto a = start->constants(), b = limit->constants(), c = delta->constants();
  if (!a || !b || !c || a->size() != 1 || b->size() != 1 || c->size() != 1 || (*c)[0] == 0)
    return std::nullopt;
  const Dim count = max(ceil_div(Dim((*b)[0]) - Dim((*a)[0]), (*c)[0]), 0);
  if (count.value() > KnownTensor::max_elements) return std::nullopt;
  KnownTensor result{start->type, {count.value()}, {}};
  for (int64_t i = 0; i < count.value(); ++i) result.values.push_back((*a)[0] + i * (*c)[0]);
  return one(std::move(result));
}

template <bool product>
Results known_reduce(Call& call) {
  const KnownTensor* data = call.known(0);
  if (!data || is_float(data->type) || data->rank() != 1 || data->type == DataType::boolean)
    return std::nullopt;
  if (call.integer("noop_with_empty_axes", 0) != 0) return std::nullopt;
  Dim total = product ? 1 : 0;
  for (const Dim& value : data->values) total = product ? total * value : total + value;
  if (!fits(total, data->type)) return std::nullopt;
  const bool keep = call.integer("keepdims", 1) != 0;
  return one(KnownTensor{data->type, keep ? std::vector<int64_t>{1} : std::vector<int64_t>{}, {total}});
}

using Function = Results (*)(Call&);
const std::map<std::string_view, Function>& functions() {
  static const std::map<std::string_view, Function> table = {
      {"Cast", known_cast},
      {"Ceil", known_rounding},
      {"Concat", known::concat},
      {"ConstantOfShape", known_constant_of_shape},
      {"Expand", known_expand},
      {"Floor", known_rounding},
      {"Gather", known::gather},
      {"Identity", known_identity},
      {"Neg", known_neg},
      {"Not", known_not},
      {"Range", known_range},
      {"ReduceProd", known_reduce<true>},
      {"ReduceSum", known_reduce<false>},
      {"Reshape", known::reshape},
      {"Round", known_rounding},
      {"Shape", known_shape},
      {"Size", known_size},
      {"Slice", known::slice},
      {"Squeeze", known::squeeze},
      {"Transpose", known::transpose},
      {"Unsqueeze", known::unsqueeze},
      {"Where", known_where},
  };
  return table;
}

}  // namespace

std::optional<std::vector<KnownTensor>> known_results(Call& call) {
  if (!call.node().domain.empty() && call.node().domain != "ai.onnx") return std::nullopt;
  if (call.outputs() != 1) return std::nullopt;
  // What is wrong or too large here is wrong in the graph, too, and is said there.
  try {
    for (const BinaryRow& row : binary_rows)
      if (row.op_type == call.node().op_type) return known_binary(call, row);
    const auto found = functions().find(call.node().op_type);
    return found == functions().end() ? std::nullopt : found->second(call);
  } catch (const UserError&) {
    return std::nullopt;
  } catch (const UnsupportedError&) {
    return std::nullopt;
  }
}

}  // namespace fusewise::onnx

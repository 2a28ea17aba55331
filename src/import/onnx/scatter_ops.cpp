// Scatters. Where the indices are constants, every element of the result comes from a known place: a gather
// in the data with the updates behind it. Otherwise each element of the result looks for the last update that
// is meant for it, or, where updates are combined, reduces over those that are.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "import/onnx/compose.h"
#include "import/onnx/importer.h"
#include "import/onnx/op_table.h"

namespace fusewise::onnx {

namespace {

using graph::Value;

// More pairs of an element and an update are not compared.
constexpr int64_t most_pairs = int64_t{1} << 26;

int64_t static_product(Call& c, const Shape& shape) {
  const Dim count = product(shape);
  if (!count.is_constant()) c.unsupported("a scatter whose size depends on the shapes");
  return count.value();
}

// Rows of data, updates and the row that each update goes to.
struct Scatter {
  Value data;     // [rows, row...]
  Value updates;  // [updates, row...]
  Value targets;  // [updates], int64, in [0, rows)
  Shape result;
};

Value by_gather(Call& c, const Scatter& s, const graph::ConstantData& targets) {
  const int64_t rows = c.builder().shape(s.data)[0].value();
  std::vector<int64_t> sources(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) sources[static_cast<size_t>(r)] = r;
  const size_t count = targets.bytes.size() / sizeof(int64_t);
  for (size_t i = 0; i < count; ++i) {
    const int64_t row = load_scalar(targets.bytes.data() + i * sizeof(int64_t), DataType::int64).i;
    if (row < 0 || row >= rows) c.fail("an index lies outside of the data");
    sources[static_cast<size_t>(row)] = rows + static_cast<int64_t>(i);
  }
  std::vector<std::byte> bytes(sources.size() * sizeof(int64_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), sources.data(), bytes.size());
  const Value index = c.builder().constant({DataType::int64, {rows}}, std::move(bytes));
  return c.builder().gather(c.builder().concat({s.data, s.updates}, 0), index, 0);
}

// [rows, updates]: whether the update goes to the row.
Value hits(Call& c, const Scatter& s) {
  const Dim rows = c.builder().shape(s.data)[0], updates = c.builder().shape(s.updates)[0];
  if (rows.value() * std::max<int64_t>(updates.value(), 1) > most_pairs)
    c.unsupported("a scatter this large");
  const Shape pairs{rows, updates};
  const Value targets = c.builder().broadcast(s.targets, pairs, {1});
  return Compose(c.builder()).map(ScalarOp::equal, targets, c.builder().iota({DataType::int64, pairs}, 0));
}

Value by_search(Call& c, const Scatter& s) {
  Compose m(c.builder());
  const Dim rows = c.builder().shape(s.data)[0], updates = c.builder().shape(s.updates)[0];
  if (updates.is(0)) return s.data;
  const Value hit = hits(c, s);
  const Value number = c.builder().iota({DataType::int64, {rows, updates}}, 1);
  const Value last = c.builder().reduce(m.select(hit, number, m.like(number, -1)), Combine::max, {1});
  // Rows in the joined tensor: behind the data if there is an update, else the row itself.
  const Value own = c.builder().iota({DataType::int64, {rows}}, 0);
  const Value source = m.select(m.less(last, 0), own, m.add(last, m.dim_as(rows, DataType::int64)));
  return c.builder().gather(c.builder().concat({s.data, s.updates}, 0), source, 0);
}

Value combined(Call& c, const Scatter& s, std::string_view how) {
  Compose m(c.builder());
  const Shape data = c.builder().shape(s.data), updates = c.builder().shape(s.updates);
  if (updates[0].is(0)) return s.data;
  Shape spread{data[0]};
  spread.insert(spread.end(), updates.begin(), updates.end());
  const int rank = static_cast<int>(spread.size());
  if (static_product(c, spread) > most_pairs) c.unsupported("a scatter this large");
  const Value values = c.builder().broadcast(s.updates, spread, counting(1, rank));
  const Value hit = c.builder().broadcast(hits(c, s), spread, {0, 1});
  if (how == "add" || how == "mul") {
    const bool adds = how == "add";
    const Value kept = m.select(hit, values, m.like(values, adds ? 0 : 1));
    const Value total = c.builder().reduce(kept, adds ? Combine::sum : Combine::product, {1});
    return adds ? m.add(s.data, total) : m.mul(s.data, total);
  }
  // The data itself takes the place of updates that are not meant.
  const Value base = c.builder().broadcast(s.data, spread, [&] {
    std::vector<int> dims = counting(0, rank);
    dims.erase(dims.begin() + 1);
    return dims;
  }());
  const Combine combine = how == "max" ? Combine::max : Combine::min;
  const Value best = c.builder().reduce(m.select(hit, values, base), combine, {1});
  return m.map(how == "max" ? ScalarOp::max : ScalarOp::min, s.data, best);
}

void scatter(Call& c, const Scatter& s) {
  const std::string_view how = c.string("reduction", "none");
  if (how != "none" && how != "add" && how != "mul" && how != "max" && how != "min")
    c.fail(fmt::format("attribute 'reduction' is '{}'", how));
  static_product(c, c.builder().shape(s.data));
  static_product(c, c.builder().shape(s.updates));
  Value result;
  if (how != "none") {
    result = combined(c, s, how);
  } else if (const auto targets = c.importer().folder().fold(s.targets)) {
    result = by_gather(c, s, *targets);
  } else {
    result = by_search(c, s);
  }
  c.set(c.builder().reshape(result, s.result));
}

Value wrapped(Compose& m, Value index, const Dim& extent) {
  index = m.builder().cast(index, DataType::int64);
  return m.select(m.less(index, 0), m.add(index, m.dim_as(extent, DataType::int64)), index);
}

std::vector<Dim> strides_of(const Shape& shape) {
  std::vector<Dim> strides(shape.size(), Dim(1));
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

// Every element is a row of one element in the flattened data.
void scatter_elements(Call& c) {
  const Shape data = c.type(0).shape, shape = c.type(1).shape;
  if (data.size() != shape.size() || c.type(2).shape != shape) c.fail("the operands' shapes do not fit");
  const int axis = c.axis(c.integer("axis", 0), static_cast<int>(data.size()));
  Compose m(c.builder());
  const std::vector<Dim> strides = strides_of(data);
  Value flat = wrapped(m, c.value(1), data[static_cast<size_t>(axis)]);
  flat = m.mul(flat, m.dim_as(strides[static_cast<size_t>(axis)], DataType::int64));
  for (size_t d = 0; d < shape.size(); ++d) {
    if (static_cast<int>(d) == axis || shape[d].is(1)) continue;
    const Value position = c.builder().iota({DataType::int64, shape}, static_cast<int>(d));
    flat = m.add(flat, m.mul(position, m.dim_as(strides[d], DataType::int64)));
  }
  const Shape updates{product(shape)};
  scatter(c, {c.builder().reshape(c.value(0), {product(data)}), c.builder().reshape(c.value(2), updates),
              c.builder().reshape(flat, updates), data});
}

// The last dimension of the indices addresses the front dimensions of the data.
void scatter_nd(Call& c) {
  const Shape data = c.type(0).shape, shape = c.type(1).shape;
  if (shape.empty() || !shape.back().is_constant()) c.fail("the indices have no constant last dimension");
  const int64_t depth = shape.back().value();
  if (depth < 1 || depth > static_cast<int64_t>(data.size()))
    c.fail(fmt::format("{} indices address a tensor of rank {}", depth, data.size()));
  const Shape front(data.begin(), data.begin() + depth), outer(shape.begin(), shape.end() - 1);
  const std::vector<Dim> strides = strides_of(front);
  Compose m(c.builder());
  Value flat;
  for (int64_t k = 0; k < depth; ++k) {
    std::vector<Dim> starts(shape.size(), Dim(0));
    starts.back() = k;
    Shape one = outer;
    one.push_back(1);
    const std::vector<int64_t> steps(shape.size(), 1);
    Value position = c.builder().reshape(c.builder().slice(c.value(1), starts, steps, one), outer);
    position = m.mul(wrapped(m, position, front[static_cast<size_t>(k)]),
                     m.dim_as(strides[static_cast<size_t>(k)], DataType::int64));
    flat = k == 0 ? position : m.add(flat, position);
  }
  Shape rows{product(front)}, updates{product(outer)};
  rows.insert(rows.end(), data.begin() + depth, data.end());
  updates.insert(updates.end(), data.begin() + depth, data.end());
  scatter(c, {c.builder().reshape(c.value(0), rows), c.builder().reshape(c.value(2), updates),
              c.builder().reshape(flat, {product(outer)}), data});
}

constexpr OpRow rows[] = {
    {"Scatter", 9, 10, scatter_elements},
    {"ScatterElements", 11, newest, scatter_elements},
    {"ScatterND", 11, newest, scatter_nd},
};

}  // namespace

std::span<const OpRow> scatter_ops() { return rows; }

}  // namespace fusewise::onnx

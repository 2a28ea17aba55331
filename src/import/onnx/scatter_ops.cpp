// Scatters: a step for each update, in the order of the file.
#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "import/onnx/compose.h"
#include "import/onnx/op_table.h"

namespace fusewise::onnx {

namespace {

using graph::Update;
using graph::Value;

Update update_of(Call& c) {
  const std::string_view how = c.string("reduction", "none");
  if (how == "none") return Update::replace;
  if (how == "add") return Update::sum;
  if (how == "mul") return Update::product;
  if (how == "max") return Update::max;
  if (how == "min") return Update::min;
  c.fail(fmt::format("attribute 'reduction' is '{}'", how));
}

void check_constant_indices(Call& c, const Dim& extent) {
  const KnownTensor* known = c.known(1);
  const auto values = known && extent.is_constant() ? known->constants() : std::nullopt;
  if (!values) return;
  for (int64_t v : *values)
    if (v < -extent.value() || v >= extent.value())
      c.fail(fmt::format("index {} lies outside of a dimension of {}", v, extent.value()));
}

void scatter_elements(Call& c) {
  const int axis = c.axis(c.integer("axis", 0), c.rank(0));
  check_constant_indices(c, c.type(0).shape[static_cast<size_t>(axis)]);
  c.set(c.builder().scatter(c.value(0), c.value(1), c.value(2), axis, update_of(c)));
}

// The last dimension of the indices addresses the front dimensions of the data, which become one.
void scatter_nd(Call& c) {
  const Shape data = c.type(0).shape, shape = c.type(1).shape;
  if (shape.empty() || !shape.back().is_constant()) c.fail("the indices have no constant last dimension");
  const int64_t depth = shape.back().value();
  if (depth < 0 || depth > static_cast<int64_t>(data.size()))
    c.fail(fmt::format("{} indices address a tensor of rank {}", depth, data.size()));
  const Shape front(data.begin(), data.begin() + depth), inner(data.begin() + depth, data.end());
  const Shape outer(shape.begin(), shape.end() - 1);
  Compose m(c.builder());
  // Row-major position; one that lies outside along any dimension comes to lie behind the last row.
  const Value rows = m.dim_as(product(front), DataType::int64);
  Value flat = c.builder().broadcast(c.builder().scalar(DataType::int64, 0), outer, {}), outside;
  for (int64_t k = 0; k < depth; ++k) {
    std::vector<Dim> starts(shape.size(), Dim(0));
    starts.back() = k;
    Shape one = outer;
    one.push_back(1);
    Value position = c.builder().slice(c.value(1), starts, std::vector<int64_t>(shape.size(), 1), one);
    position = c.builder().cast(c.builder().reshape(position, outer), DataType::int64);
    const Value extent = m.dim_as(front[static_cast<size_t>(k)], DataType::int64);
    position = m.select(m.less(position, 0), m.add(position, extent), position);
    const Value bad =
        m.map(ScalarOp::or_, m.less(position, 0), m.map(ScalarOp::greater_equal, position, extent));
    outside = k == 0 ? bad : m.map(ScalarOp::or_, outside, bad);
    flat = k == 0 ? position : m.add(m.mul(flat, extent), position);
  }
  if (depth > 0) flat = m.select(outside, rows, flat);
  const Dim row = product(inner), updates = product(outer);
  const Value result = c.builder().scatter(c.builder().reshape(c.value(0), {product(front), row}),
                                           c.builder().reshape(flat, {updates, 1}),
                                           c.builder().reshape(c.value(2), {updates, row}), 0, update_of(c));
  c.set(c.builder().reshape(result, data));
}

constexpr OpRow rows[] = {
    {"Scatter", 9, 10, scatter_elements},
    {"ScatterElements", 11, newest, scatter_elements},
    {"ScatterND", 11, newest, scatter_nd},
};

}  // namespace

std::span<const OpRow> scatter_ops() { return rows; }

}  // namespace fusewise::onnx

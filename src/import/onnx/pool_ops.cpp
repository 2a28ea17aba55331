// Pooling.
#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "import/onnx/compose.h"
#include "import/onnx/op_table.h"
#include "import/onnx/spatial.h"

namespace fusewise::onnx {

namespace {

using graph::Value;

graph::WindowReduceAttributes window_of(Combine combine, const Spatial& s) {
  return {combine, s.kernel, s.strides, s.dilations, s.pad_low, s.pad_high};
}

Spatial pool_window(Call& c) {
  const auto kernel = c.integer_list("kernel_shape");
  if (!kernel) c.fail("attribute 'kernel_shape' is missing");
  return spatial_of(c, c.type(0).shape, *kernel);
}

void max_pool(Call& c) {
  if (c.wants(1)) c.unsupported("the indices as a result");
  Spatial s = pool_window(c);
  if (c.integer("ceil_mode", 0) != 0) round_positions_up(c, c.type(0).shape, s);
  c.set(c.builder().window_reduce(c.value(0), window_of(Combine::max, s)));
}

// How many elements each window covers, the padding that counts included: a sum over ones.
Value window_counts(Call& c, const Spatial& s, bool counts_padding, const std::vector<int64_t>& rounding,
                    DataType type) {
  graph::GraphBuilder& b = c.builder();
  const Shape shape = c.type(0).shape;
  Shape spatial(shape.begin() + 2, shape.end());
  Spatial own = s;
  if (counts_padding) {
    // Only what rounding up added does not count.
    for (size_t d = 0; d < s.rank(); ++d) {
      spatial[d] = spatial[d] + Dim(s.pad_low[d] + s.pad_high[d] - rounding[d]);
      own.pad_low[d] = 0;
      own.pad_high[d] = rounding[d];
    }
  }
  const Value ones = b.broadcast(b.scalar(type, 1), spatial, {});
  return b.window_reduce(ones, window_of(Combine::sum, own));
}

void average_pool(Call& c) {
  Compose m(c.builder());
  Spatial s = pool_window(c);
  std::vector<int64_t> rounding(s.rank(), 0);
  if (c.integer("ceil_mode", 0) != 0) rounding = round_positions_up(c, c.type(0).shape, s);
  const bool counts_padding = c.integer("count_include_pad", 0) != 0;
  const Value x = m.widen(c.value(0));
  const DataType type = c.builder().type(x).element;
  const Value total = c.builder().window_reduce(x, window_of(Combine::sum, s));
  const bool rounds = std::ranges::any_of(rounding, [](int64_t r) { return r != 0; });
  double size = 1;
  for (int64_t k : s.kernel) size *= static_cast<double>(k);
  const bool is_constant = !rounds && (counts_padding || !s.is_padded());
  const Value count =
      is_constant ? c.builder().scalar(type, size) : window_counts(c, s, counts_padding, rounding, type);
  c.set(m.narrow(m.div(total, count), c.element(0)));
}

std::vector<int> spatial_axes(Call& c) {
  if (c.rank(0) < 2) c.fail("the operand has less than two dimensions");
  return counting(2, c.rank(0));
}

void global_average_pool(Call& c) { c.set(Compose(c.builder()).mean(c.value(0), spatial_axes(c))); }

void global_max_pool(Call& c) { c.set(c.builder().reduce(c.value(0), Combine::max, spatial_axes(c), true)); }

constexpr OpRow rows[] = {
    {"AveragePool", 1, newest, average_pool},
    {"GlobalAveragePool", 1, newest, global_average_pool},
    {"GlobalMaxPool", 1, newest, global_max_pool},
    {"MaxPool", 1, newest, max_pool},
};

}  // namespace

std::span<const OpRow> pool_ops() { return rows; }

}  // namespace fusewise::onnx

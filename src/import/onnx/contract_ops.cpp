// Matrix products and convolutions.
#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "import/onnx/compose.h"
#include "import/onnx/op_table.h"
#include "import/onnx/spatial.h"

namespace fusewise::onnx {

namespace {

using graph::Value;

void same_types(Call& c) {
  if (c.element(0) != c.element(1)) {
    c.fail(fmt::format("its operands have different types, {} and {}", name_of(c.element(0)),
                       name_of(c.element(1))));
  }
}

void matmul(Call& c) {
  same_types(c);
  c.set(c.builder().matmul(c.value(0), c.value(1)));
}

// alpha A' B' + beta C
void gemm(Call& c) {
  same_types(c);
  if (c.rank(0) != 2 || c.rank(1) != 2) c.fail("an operand is no matrix");
  Compose m(c.builder());
  const int lhs = c.integer("transA", 0) != 0 ? 0 : 1, rhs = c.integer("transB", 0) != 0 ? 1 : 0;
  Value result = c.builder().dot(c.value(0), c.value(1), {{}, {}, {lhs}, {rhs}});
  if (const float alpha = c.number("alpha", 1); alpha != 1) result = m.mul(result, alpha);
  const float beta = c.number("beta", 1);
  if (c.has(2)) {
    const Value bias = beta == 1 ? c.value(2) : m.mul(c.value(2), beta);
    const Shape shape = c.builder().shape(result);
    if (c.rank(2) > 2) c.fail("the third operand has more than two dimensions");
    result = c.builder().map(ScalarOp::add, {result, c.builder().broadcast_to(bias, shape)});
  }
  c.set(result);
}

// The spatial extents of the weights, which must be constant.
std::vector<int64_t> kernel_of(Call& c) {
  const Shape weights = c.type(1).shape;
  if (weights.size() < 3) c.fail("the weights have less than three dimensions");
  std::vector<int64_t> kernel;
  for (size_t d = 2; d < weights.size(); ++d) {
    if (!weights[d].is_constant()) c.unsupported("weights whose size depends on the shapes");
    kernel.push_back(weights[d].value());
  }
  if (const auto given = c.integer_list("kernel_shape"); given && !given->empty() && *given != kernel)
    c.fail("kernel_shape is not the shape of the weights");
  return kernel;
}

Value with_bias(Call& c, Value x) {
  if (!c.has(2)) return x;
  if (c.rank(2) != 1) c.fail("the bias is not a vector");
  const Shape shape = c.builder().shape(x);
  return c.builder().map(ScalarOp::add, {x, c.builder().broadcast(c.value(2), shape, {1})});
}

void conv(Call& c) {
  same_types(c);
  const Spatial s = spatial_of(c, c.type(0).shape, kernel_of(c));
  const int64_t groups = c.integer("group", 1);
  const Value x = c.builder().convolution(c.value(0), c.value(1),
                                          {s.strides, s.dilations, s.pad_low, s.pad_high, groups});
  c.set(with_bias(c, x));
}

// A transposed convolution with stride s computes s results per position of its operand along each dimension:
// s^d ordinary convolutions (phases), whose results are interleaved. Phase a uses the taps a, a + s, a + 2 s,
// ... of the kernel, in reverse.
class TransposedConvolution {
 public:
  explicit TransposedConvolution(Call& c)
      : c_(c),
        b_(c.builder()),
        x_shape_(c.type(0).shape),
        w_shape_(c.type(1).shape),
        s_(spatial_of(c, x_shape_, kernel_of(c))),
        groups_(c.integer("group", 1)) {}

  void import() {
    for (size_t d = 0; d < s_.rank(); ++d) {
      if (s_.dilations[d] != 1 && s_.strides[d] != 1) c_.unsupported("dilations together with strides");
    }
    if (groups_ < 1) c_.fail("there is less than one group");
    Value full = interleaved(weights_by_output());
    c_.set(with_bias(c_, cropped(full)));
  }

 private:
  // [C, O / groups, kernel] -> [O, C / groups, kernel].
  Value weights_by_output() {
    Shape split{groups_, floor_div(w_shape_[0], groups_)};
    split.insert(split.end(), w_shape_.begin() + 1, w_shape_.end());
    std::vector<int> order = counting(0, static_cast<int>(split.size()));
    std::swap(order[1], order[2]);
    const Value w = b_.transpose(b_.reshape(c_.value(1), split), order);
    Shape joined{w_shape_[1] * Dim(groups_), split[1]};
    joined.insert(joined.end(), w_shape_.begin() + 2, w_shape_.end());
    return b_.reshape(w, joined);
  }

  // The taps of phase `phase` in reverse; nothing when it has none.
  std::optional<Value> phase_weights(Value w, const std::vector<int64_t>& phase) {
    Shape shape = b_.shape(w);
    std::vector<Dim> starts(shape.size(), Dim(0));
    std::vector<int64_t> steps(shape.size(), 1);
    for (size_t d = 0; d < s_.rank(); ++d) {
      const int64_t stride = s_.strides[d];
      const int64_t taps = (s_.kernel[d] - phase[d] + stride - 1) / stride;
      if (taps <= 0) return std::nullopt;
      starts[d + 2] = phase[d] + (taps - 1) * stride;
      steps[d + 2] = -stride;
      shape[d + 2] = taps;
    }
    return b_.slice(w, starts, steps, shape);
  }

  // All results of one phase: ceil(full / stride) positions along each dimension, the same for every phase.
  Value phase_result(Value w, const std::vector<int64_t>& phase) {
    const std::optional<Value> taps = phase_weights(w, phase);
    Shape positions{x_shape_[0], w_shape_[1] * Dim(groups_)};
    graph::ConvolutionAttributes a;
    a.groups = groups_;
    for (size_t d = 0; d < s_.rank(); ++d) {
      const int64_t most = (s_.kernel[d] + s_.strides[d] - 1) / s_.strides[d];
      positions.push_back(x_shape_[d + 2] + Dim((most - 1) * s_.dilations[d]));
      if (!taps) continue;
      const int64_t own = b_.shape(*taps)[d + 2].value();
      a.strides.push_back(1);
      a.dilations.push_back(s_.dilations[d]);
      a.pad_low.push_back((own - 1) * s_.dilations[d]);
      a.pad_high.push_back((most - 1) * s_.dilations[d]);
    }
    if (!taps) return b_.broadcast(b_.scalar(c_.element(0), 0), positions, {});
    return b_.convolution(c_.value(0), *taps, a);
  }

  // The phases side by side: [N, O, q0, q1] each -> [N, O, q0 s0, q1 s1].
  Value interleaved(Value w) {
    int64_t count = 1;
    for (int64_t stride : s_.strides) count *= stride;
    if (count > 4096) c_.unsupported("strides this large");
    std::vector<Value> phases;
    for (int64_t p = 0; p < count; ++p) {
      std::vector<int64_t> phase(s_.rank());
      for (size_t d = s_.rank(), rest = static_cast<size_t>(p); d-- > 0;) {
        const size_t stride = static_cast<size_t>(s_.strides[d]);
        phase[d] = static_cast<int64_t>(rest % stride);
        rest /= stride;
      }
      phases.push_back(phase_result(w, phase));
    }
    if (count == 1) return phases[0];
    const Shape positions = b_.shape(phases[0]);
    Shape single = positions;
    single.insert(single.begin() + 2, Dim(1));
    for (Value& p : phases) p = b_.reshape(p, single);
    const Value all = b_.concat(phases, 2);
    // [N, O, s0 s1, q0, q1] -> [N, O, q0, s0, q1, s1]
    const int n = static_cast<int>(s_.rank());
    Shape split(positions.begin(), positions.begin() + 2), joined = split;
    for (int64_t stride : s_.strides) split.push_back(stride);
    split.insert(split.end(), positions.begin() + 2, positions.end());
    std::vector<int> order{0, 1};
    for (int d = 0; d < n; ++d) {
      order.insert(order.end(), {2 + n + d, 2 + d});
      joined.push_back(positions[static_cast<size_t>(d) + 2] * Dim(s_.strides[static_cast<size_t>(d)]));
    }
    return b_.reshape(b_.transpose(b_.reshape(all, split), order), joined);
  }

  // The part of the full result that padding leaves; output padding may reach beyond it.
  Value cropped(Value full) {
    const auto output_padding = c_.integer_list("output_padding");
    const auto output_shape = c_.integer_list("output_shape");
    const std::string_view automatic = c_.string("auto_pad", "NOTSET");
    if (output_padding && output_padding->size() != s_.rank()) c_.fail("output_padding has the wrong length");
    std::vector<Dim> low, high;
    low.assign(2, Dim(0));
    high.assign(2, Dim(0));
    for (size_t d = 0; d < s_.rank(); ++d) {
      const Dim extra = output_padding ? (*output_padding)[d] : 0;
      const Dim unpadded =
          (x_shape_[d + 2] - 1) * Dim(s_.strides[d]) + Dim((s_.kernel[d] - 1) * s_.dilations[d] + 1) + extra;
      Dim begin = s_.pad_low[d], size = unpadded - Dim(s_.pad_low[d] + s_.pad_high[d]);
      const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
      if (output_shape || same) {
        size = output_shape ? requested_size(*output_shape, d) : x_shape_[d + 2] * Dim(s_.strides[d]);
        const Dim total = max(unpadded - size, 0);
        begin = automatic == "SAME_UPPER" ? floor_div(total, 2) : total - floor_div(total, 2);
      }
      low.push_back(Dim(0) - begin);
      high.push_back(size + begin - b_.shape(full)[d + 2]);
    }
    return b_.pad(full, b_.scalar(c_.element(0), 0), low, high);
  }

  Dim requested_size(const std::vector<int64_t>& shape, size_t d) {
    if (shape.size() != s_.rank() && shape.size() != s_.rank() + 2)
      c_.fail("output_shape has the wrong length");
    return shape[shape.size() - s_.rank() + d];
  }

  Call& c_;
  graph::GraphBuilder& b_;
  Shape x_shape_, w_shape_;
  Spatial s_;
  int64_t groups_;
};

void conv_transpose(Call& c) {
  same_types(c);
  TransposedConvolution(c).import();
}

// (A - a_zero) (B - b_zero) in int32.
Value centred(Call& c, size_t input, size_t zero, int zero_axis) {
  Compose m(c.builder());
  const Value x = c.builder().cast(c.value(input), DataType::int32);
  if (!c.has(zero)) return x;
  Value z = c.builder().cast(c.value(zero), DataType::int32);
  // One zero point per row of the left operand.
  if (c.rank(zero) == 1 && zero_axis == -2 && !c.type(zero).shape[0].is(1))
    z = c.builder().reshape(z, {c.type(zero).shape[0], 1});
  return m.sub(x, z);
}

void matmul_integer(Call& c) { c.set(c.builder().matmul(centred(c, 0, 2, -2), centred(c, 1, 3, -1))); }

void conv_integer(Call& c) {
  const Spatial s = spatial_of(c, c.type(0).shape, kernel_of(c));
  const auto scalar_zero = [&](size_t input) { return !c.has(input) || product(c.type(input).shape).is(1); };
  if (!scalar_zero(2) || !scalar_zero(3)) c.unsupported("a zero point for every channel");
  const auto operand = [&](size_t input, size_t zero) {
    const Value x = c.builder().cast(c.value(input), DataType::int32);
    if (!c.has(zero)) return x;
    const Value z = c.builder().reshape(c.builder().cast(c.value(zero), DataType::int32), {});
    return Compose(c.builder()).sub(x, z);
  };
  c.set(c.builder().convolution(operand(0, 2), operand(1, 3),
                                {s.strides, s.dilations, s.pad_low, s.pad_high, c.integer("group", 1)}));
}

constexpr OpRow rows[] = {
    {"Conv", 1, newest, conv},
    {"ConvInteger", 10, newest, conv_integer},
    {"ConvTranspose", 1, newest, conv_transpose},
    {"Gemm", 1, newest, gemm},
    {"MatMul", 1, newest, matmul},
    {"MatMulInteger", 10, newest, matmul_integer},
};

}  // namespace

std::span<const OpRow> contract_ops() { return rows; }

}  // namespace fusewise::onnx

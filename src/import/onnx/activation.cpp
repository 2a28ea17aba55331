// Activation functions, written out in primitives.
#include <fmt/core.h>

#include <cmath>

#include "base/error.h"
#include "import/onnx/compose.h"
#include "import/onnx/op_table.h"

namespace fusewise::onnx {

namespace {

using graph::Value;

// Computes f(x) in the arithmetic type and rounds the result once.
template <class Function>
void composed(Call& c, Function f) {
  Compose m(c.builder());
  c.set(m.narrow(f(m, m.widen(c.value(0))), c.element(0)));
}

void relu(Call& c) {
  Compose m(c.builder());
  c.set(m.max(c.value(0), 0.0));
}

void sigmoid(Call& c) {
  composed(c, [](Compose& m, Value x) { return m.sigmoid(x); });
}

void softplus(Call& c) {
  composed(c, [](Compose& m, Value x) { return m.softplus(x); });
}

void softsign(Call& c) {
  composed(c, [](Compose& m, Value x) { return m.div(x, m.add(m.map(ScalarOp::abs, x), 1.0)); });
}

void mish(Call& c) {
  composed(c, [](Compose& m, Value x) { return m.mul(x, m.tanh(m.softplus(x))); });
}

void swish(Call& c) {
  const double alpha = c.number("alpha", 1);
  composed(c, [&](Compose& m, Value x) { return m.mul(x, m.sigmoid(alpha == 1 ? x : m.mul(x, alpha))); });
}

// 0.5 x (1 + erf(x / sqrt 2))
Value gelu_exact(Compose& m, Value x) {
  return m.mul(m.mul(x, 0.5), m.add(m.map(ScalarOp::erf, m.mul(x, std::sqrt(0.5))), 1.0));
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
Value gelu_tanh(Compose& m, Value x) {
  const Value cube = m.mul(m.mul(x, x), x);
  const Value inner = m.mul(m.add(x, m.mul(cube, 0.044715)), std::sqrt(2.0 / M_PI));
  return m.mul(m.mul(x, 0.5), m.add(m.tanh(inner), 1.0));
}

void gelu(Call& c) {
  const std::string_view how = c.string("approximate", "none");
  if (how != "none" && how != "tanh") c.fail("attribute 'approximate' is neither none nor tanh");
  composed(c, how == "tanh" ? gelu_tanh : gelu_exact);
}

void plain_gelu(Call& c) { composed(c, gelu_exact); }

void fast_gelu(Call& c) {
  composed(c,
           [&](Compose& m, Value x) { return gelu_tanh(m, c.has(1) ? m.add(x, m.widen(c.value(1))) : x); });
}

void bias_gelu(Call& c) {
  composed(c, [&](Compose& m, Value x) { return gelu_exact(m, m.add(x, m.widen(c.value(1)))); });
}

void quick_gelu(Call& c) {
  const double alpha = c.number("alpha", 1.702f);
  composed(c, [&](Compose& m, Value x) { return m.mul(x, m.sigmoid(m.mul(x, alpha))); });
}

// max(0, min(1, alpha x + beta))
Value hard_sigmoid_of(Compose& m, Value x, double alpha, double beta) {
  return m.max(m.min(m.add(m.mul(x, alpha), beta), 1.0), 0.0);
}

void hard_sigmoid(Call& c) {
  const double alpha = c.number("alpha", 0.2f), beta = c.number("beta", 0.5f);
  composed(c, [&](Compose& m, Value x) { return hard_sigmoid_of(m, x, alpha, beta); });
}

void hard_swish(Call& c) {
  composed(c, [](Compose& m, Value x) { return m.mul(x, hard_sigmoid_of(m, x, 1.0f / 6.0f, 0.5)); });
}

void leaky_relu(Call& c) {
  const double alpha = c.number("alpha", 0.01f);
  composed(c, [&](Compose& m, Value x) { return m.select(m.less(x, 0), m.mul(x, alpha), x); });
}

// The slope broadcasts to x; before version 7 a vector of slopes lay along the channels.
void prelu(Call& c) {
  Compose m(c.builder());
  const Value x = c.value(0);
  Value slope = c.value(1);
  if (c.version() < 7 && c.rank(1) == 1 && c.rank(0) > 1) {
    const Dim& extent = c.builder().shape(slope)[0];
    slope = extent.is(1) ? slope : m.along(slope, 1, c.rank(0));
  }
  c.set(m.select(m.less(x, 0), m.mul(x, slope), x));
}

void elu(Call& c) {
  const double alpha = c.number("alpha", 1);
  composed(
      c, [&](Compose& m, Value x) { return m.select(m.less(x, 0), m.mul(m.sub(m.exp(x), 1.0), alpha), x); });
}

void celu(Call& c) {
  const double alpha = c.number("alpha", 1);
  composed(c, [&](Compose& m, Value x) {
    const Value below = m.mul(m.sub(m.exp(m.div(x, alpha)), 1.0), alpha);
    return m.add(m.max(x, 0.0), m.min(below, 0.0));
  });
}

void selu(Call& c) {
  const double alpha = c.number("alpha", 1.67326319217681884765625f);
  const double gamma = c.number("gamma", 1.05070102214813232421875f);
  composed(c, [&](Compose& m, Value x) {
    const Value below = m.sub(m.mul(m.exp(x), alpha), alpha);
    return m.mul(m.select(m.greater(x, 0), x, below), gamma);
  });
}

void thresholded_relu(Call& c) {
  const double alpha = c.number("alpha", 1);
  composed(c, [&](Compose& m, Value x) { return m.select(m.greater(x, alpha), x, m.like(x, 0)); });
}

void shrink(Call& c) {
  const double bias = c.number("bias", 0), lambd = c.number("lambd", 0.5f);
  composed(c, [&](Compose& m, Value x) {
    const Value above = m.select(m.greater(x, lambd), m.sub(x, bias), m.like(x, 0));
    return m.select(m.less(x, -lambd), m.add(x, bias), above);
  });
}

// A bound is a scalar; a tensor of one element is taken for one.
Value bound(Call& c, size_t input) {
  const Value value = c.value(input);
  if (c.element(input) != c.element(0)) c.fail("a bound has another type than the data");
  const Dim count = product(c.builder().shape(value));
  if (!count.is(1)) c.fail(fmt::format("a bound has {} elements instead of one", count.to_string()));
  return c.builder().reshape(value, {});
}

// First the lower bound, then the upper one: where min > max everything becomes max.
void clip(Call& c) {
  Compose m(c.builder());
  Value x = c.value(0);
  if (c.has(1)) x = m.max(x, bound(c, 1));
  if (c.has(2)) x = m.min(x, bound(c, 2));
  c.set(x);
}

void clip_by_attributes(Call& c) {
  Compose m(c.builder());
  Value x = c.value(0);
  if (c.attribute("min")) x = m.max(x, c.number("min", 0));
  if (c.attribute("max")) x = m.min(x, c.number("max", 0));
  c.set(x);
}

constexpr std::string_view microsoft = "com.microsoft";

constexpr OpRow rows[] = {
    {"BiasGelu", 1, newest, bias_gelu, microsoft},
    {"Celu", 12, newest, celu},
    {"Clip", 1, 10, clip_by_attributes},
    {"Clip", 11, newest, clip},
    {"Elu", 1, newest, elu},
    {"FastGelu", 1, newest, fast_gelu, microsoft},
    {"Gelu", 20, newest, gelu},
    {"Gelu", 1, newest, plain_gelu, microsoft},
    {"HardSigmoid", 1, newest, hard_sigmoid},
    {"HardSwish", 14, newest, hard_swish},
    {"LeakyRelu", 1, newest, leaky_relu},
    {"Mish", 18, newest, mish},
    {"PRelu", 1, newest, prelu},
    {"QuickGelu", 1, newest, quick_gelu, microsoft},
    {"Relu", 1, newest, relu},
    {"Selu", 1, newest, selu},
    {"Shrink", 9, newest, shrink},
    {"Sigmoid", 1, newest, sigmoid},
    {"Softplus", 1, newest, softplus},
    {"Softsign", 1, newest, softsign},
    {"Swish", 24, newest, swish},
    {"ThresholdedRelu", 10, newest, thresholded_relu},
};

}  // namespace

std::span<const OpRow> activation_ops() { return rows; }

}  // namespace fusewise::onnx

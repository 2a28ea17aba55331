// What models are made of, and what a value compared with itself must give.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "support/random_graphs/composer.h"

namespace fusewise::test {

Composer::Value Composer::softmax_of(Value x, int axis) {
  const Value shifted =
      builder_.map_broadcast(ScalarOp::sub, {x, builder_.reduce(x, Combine::max, {axis}, true)});
  const Value e = builder_.map(ScalarOp::exp, {shifted});
  return builder_.map_broadcast(ScalarOp::div, {e, builder_.reduce(e, Combine::sum, {axis}, true)});
}

std::optional<Composer::Value> Composer::softmax() {
  Value x = pick();
  if (rank(x) == 0 || !is_float(type(x))) return std::nullopt;
  // Scaled first: the product is needed by the maximum and by the difference.
  if (random_.chance(60))
    x = builder_.map_broadcast(random_.one_of({ScalarOp::mul, ScalarOp::div}), {x, scalar(type(x))});
  return softmax_of(x, random_.chance(70) ? rank(x) - 1 : static_cast<int>(random_.below(rank(x))));
}

// LayerNorm, InstanceNorm and RMSNorm, for any axes.
Composer::Value Composer::norm_of(Value x, std::vector<int> axes, bool centred) {
  const DataType t = type(x);
  Dim n = 1;
  for (int a : axes) n = n * shape(x)[static_cast<size_t>(a)];
  const Value size = builder_.cast(builder_.dim(n), t);
  const auto mean = [&](Value v) {
    return builder_.map_broadcast(ScalarOp::div, {builder_.reduce(v, Combine::sum, axes, true), size});
  };
  const Value d = centred ? builder_.map_broadcast(ScalarOp::sub, {x, mean(x)}) : x;
  const Value variance = mean(builder_.map(ScalarOp::mul, {d, d}));
  const Value deviation = builder_.map(
      ScalarOp::sqrt, {builder_.map_broadcast(ScalarOp::add, {variance, builder_.scalar(t, 1e-5)})});
  return builder_.map_broadcast(ScalarOp::div, {d, deviation});
}

std::optional<Composer::Value> Composer::norm() {
  const Value x = pick();
  if (rank(x) == 0 || !is_float(type(x))) return std::nullopt;
  std::vector<int> axes = {rank(x) - 1};
  if (random_.chance(30)) axes = {static_cast<int>(random_.below(rank(x)))};
  if (random_.chance(30) && rank(x) >= 2) axes = {rank(x) - 2, rank(x) - 1};
  Value y = norm_of(x, axes, random_.chance(75));
  if (random_.chance(60))
    y = builder_.map_broadcast(ScalarOp::mul, {y, weights(type(x), broadcastable(shape(x)))});
  if (random_.chance(60))
    y = builder_.map_broadcast(ScalarOp::add, {y, weights(type(x), broadcastable(shape(x)))});
  return y;
}

Composer::Value Composer::activation_of(Value x) {
  const DataType t = type(x);
  switch (random_.below(4)) {
    case 0:
      return builder_.map_broadcast(ScalarOp::max, {x, builder_.scalar(t, 0.0)});
    case 1:
      return builder_.map(ScalarOp::tanh, {x});
    case 2: {  // x / (1 + exp(-x))
      const Value e = builder_.map(ScalarOp::exp, {builder_.map(ScalarOp::neg, {x})});
      return builder_.map(ScalarOp::div,
                          {x, builder_.map_broadcast(ScalarOp::add, {e, builder_.scalar(t, 1.0)})});
    }
    default: {  // x * (1 + erf(x / sqrt(2))) / 2
      const Value e = builder_.map(
          ScalarOp::erf, {builder_.map_broadcast(ScalarOp::mul, {x, builder_.scalar(t, 0.70710678)})});
      const Value half = builder_.map_broadcast(ScalarOp::mul, {x, builder_.scalar(t, 0.5)});
      return builder_.map(ScalarOp::mul,
                          {half, builder_.map_broadcast(ScalarOp::add, {e, builder_.scalar(t, 1.0)})});
    }
  }
}

// Products with weights, each with a bias and an activation, perhaps with the operand added at the end.
std::optional<Composer::Value> Composer::layers() {
  const Value x = pick();
  if (rank(x) < 2 || !is_float(type(x)) || !shape(x).back().is_constant()) return std::nullopt;
  const int64_t width = shape(x).back().value();
  if (width == 0 || width > 64) return std::nullopt;
  const int64_t rows = count(sizes(x)) / width;
  Value y = x;
  for (int64_t n = random_.between(1, 3); n > 0; --n) {
    const int64_t in = shape(y).back().value();
    const int64_t out = n == 1 && random_.chance(60) ? width : random_.between(1, 24);
    if (rows * in * out > options_.most_work) return std::nullopt;
    y = builder_.matmul(y, weights(type(x), {in, out}));
    if (random_.chance(70)) y = builder_.map_broadcast(ScalarOp::add, {y, weights(type(x), {out})});
    if (random_.chance(70)) y = activation_of(y);
  }
  if (shape(y) == shape(x) && random_.chance(70)) y = builder_.map(ScalarOp::add, {y, x});
  return y;
}

// softmax(q k^T * scale + mask) v, the three from one value or from several.
std::optional<Composer::Value> Composer::attention() {
  const Value x = pick();
  if (rank(x) < 2 || rank(x) > 4 || !is_float(type(x))) return std::nullopt;
  const int64_t rows = size_of(shape(x)[shape(x).size() - 2]), width = size_of(shape(x).back());
  if (count(sizes(x)) * rows > options_.most_work || width == 0) return std::nullopt;
  const auto operand = [&] { return random_.chance(40) ? x : add_input(type(x), shape(x)); };
  std::vector<int> batch(static_cast<size_t>(rank(x)) - 2);
  std::iota(batch.begin(), batch.end(), 0);
  const int row = rank(x) - 2, column = rank(x) - 1;
  const Value keys = operand(), values = operand();
  Value scores = builder_.dot(x, keys, {batch, batch, {column}, {column}});
  scores = builder_.map_broadcast(ScalarOp::mul, {scores, scalar(type(x))});
  if (random_.chance(40)) {
    const Shape square(shape(scores).end() - 2, shape(scores).end());
    const Value late = builder_.map(ScalarOp::less, {builder_.iota({DataType::int64, square}, 0),
                                                     builder_.iota({DataType::int64, square}, 1)});
    const Value hidden = builder_.scalar(type(x), -std::numeric_limits<double>::infinity());
    scores = builder_.map_broadcast(ScalarOp::select, {late, hidden, scores});
  }
  const Value weights_of_rows = softmax_of(scores, rank(scores) - 1);
  return builder_.dot(weights_of_rows, values, {batch, batch, {column}, {row}});
}

// Convolutions with an affine map per channel and an activation, pointwise and depthwise ones in turn.
std::optional<Composer::Value> Composer::convolution_block() {
  const Value x = image(2);
  if (!is_float(type(x))) return std::nullopt;
  Value y = x;
  for (int64_t n = random_.between(1, 3); n > 0; --n) {
    const int64_t channels = shape(y)[1].value();
    const bool depthwise = random_.chance(40);
    const auto made =
        depthwise ? convolve(y, channels, 1, 3, true)
                  : convolve(y, 1, random_.one_of<int64_t>({1, 2, 4, 8}), random_.one_of({1, 3}), true);
    if (!made) return std::nullopt;
    y = *made;
    const Shape channel = {shape(y)[1], 1, 1};
    if (random_.chance(60)) y = builder_.map_broadcast(ScalarOp::mul, {y, weights(type(x), channel)});
    if (random_.chance(60)) y = builder_.map_broadcast(ScalarOp::add, {y, weights(type(x), channel)});
    if (random_.chance(60)) y = activation_of(y);
  }
  if (shape(y) == shape(x)) y = builder_.map(ScalarOp::add, {y, x});
  return y;
}

// The same steps again and again, each on the result of the last, as layers of a network are.
std::optional<Composer::Value> Composer::repeated() {
  const Random same = random_;
  const int64_t steps = random_.between(1, 3), times = random_.between(2, 3);
  const Value start = pool_.back();
  for (int64_t i = 0; i < times; ++i) {
    Random after = random_;
    random_ = same;
    random_.next();
    for (int64_t k = 0; k < steps; ++k) {
      static constexpr Maker makers[] = {&Composer::unary, &Composer::binary, &Composer::softmax,
                                         &Composer::norm,  &Composer::layers, &Composer::reduce,
                                         &Composer::window};
      try_maker(makers[random_.below(std::ssize(makers))]);
    }
    random_ = after;
    random_.next();
  }
  if (pool_.back() == start) return std::nullopt;
  return pool_.back();
}

// A node like an earlier one: the same operation on the same operands.
std::optional<Composer::Value> Composer::same_again() {
  const Value x = pick();
  const graph::Node node = case_.graph.node(x.node);
  if (node.operands.empty()) return std::nullopt;
  Value again;
  if (const auto* host = std::get_if<graph::HostAttributes>(&node.attributes))
    again = call_host(host->function, node.operands, host->parameters, host->symbols.size())[x.result];
  else
    again = builder_.append(node.op, node.operands, node.attributes, node.results[0]);
  if (type(x) == DataType::boolean) return again;
  return builder_.map(random_.one_of({ScalarOp::sub, ScalarOp::add, ScalarOp::div}), {x, again});
}

// "promise.ties.N": along an axis some element equals the maximum. "promise.zero.N": differences of what is the same
// in exact arithmetic. Rewrites may see through some of them, no matter.
void Composer::add_promises() {
  next_source();
  const auto values = pool_;
  int made = 0;
  for (const Value t : values) {
    if (!is_float(type(t)) || rank(t) == 0 || count(sizes(t)) == 0 || !random_.chance(50)) continue;
    const int axis = static_cast<int>(random_.below(rank(t)));
    const Value greatest = builder_.reduce(t, Combine::max, {axis}, true);
    const Value tie = builder_.map(
        ScalarOp::or_, {builder_.map_broadcast(ScalarOp::equal, {t, greatest}),
                        builder_.broadcast_to(builder_.map(ScalarOp::is_nan, {greatest}), shape(t))});
    const std::string number = std::to_string(made++);
    builder_.output(builder_.reduce(builder_.cast(tie, DataType::float32), Combine::sum, {axis}),
                    "promise.ties." + number);
    const Value below = builder_.map_broadcast(ScalarOp::sub, {t, greatest});
    builder_.output(builder_.reduce(below, Combine::max, {axis}), "promise.zero.peak" + number);
    next_source();
    const Value twice = builder_.map(ScalarOp::add, {t, t});
    const Value fourfold = builder_.map_broadcast(ScalarOp::mul, {t, builder_.scalar(type(t), 4)});
    builder_.output(builder_.map(ScalarOp::sub, {builder_.map(ScalarOp::add, {twice, twice}), fourfold}),
                    "promise.zero.sum" + number);
  }
  for (graph::NodeId n = 0; n < case_.graph.size(); ++n) check_node(n);
}

}  // namespace fusewise::test

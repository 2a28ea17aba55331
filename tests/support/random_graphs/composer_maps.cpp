// Maps, reductions and counters.
#include "base/error.h"
#include "support/random_graphs/composer.h"

namespace fusewise::test {

std::optional<Composer::Value> Composer::unary() {
  const Value x = pick();
  const ScalarOp op =
      random_.one_of({ScalarOp::abs, ScalarOp::ceil, ScalarOp::floor, ScalarOp::neg, ScalarOp::round,
                      ScalarOp::sign, ScalarOp::trunc, ScalarOp::sqrt, ScalarOp::exp, ScalarOp::log,
                      ScalarOp::tanh, ScalarOp::erf, ScalarOp::sin, ScalarOp::cos, ScalarOp::tan,
                      ScalarOp::atan, ScalarOp::is_nan, ScalarOp::is_inf, ScalarOp::not_});
  return builder_.map(op, {x});
}

std::optional<Composer::Value> Composer::binary() {
  Value x = pick(), y = partner(x);
  if (random_.chance(50)) std::swap(x, y);
  const ScalarOp op =
      random_.one_of({ScalarOp::add,        ScalarOp::sub,       ScalarOp::mul,           ScalarOp::div,
                      ScalarOp::max,        ScalarOp::min,       ScalarOp::add,           ScalarOp::mul,
                      ScalarOp::sub,        ScalarOp::mod,       ScalarOp::remainder,     ScalarOp::pow,
                      ScalarOp::equal,      ScalarOp::less,      ScalarOp::greater_equal, ScalarOp::greater,
                      ScalarOp::less_equal, ScalarOp::not_equal, ScalarOp::and_,          ScalarOp::or_,
                      ScalarOp::xor_});
  return builder_.map_broadcast(op, {x, y});
}

std::optional<Composer::Value> Composer::select() {
  const Value x = pick(), y = partner(x);
  const auto condition = pick_where([&](Value v) { return type(v) == DataType::boolean; });
  const Value c =
      condition && random_.chance(60) ? *condition : add_input(DataType::boolean, broadcastable(shape(x)));
  return builder_.map_broadcast(ScalarOp::select, {c, x, y});
}

std::optional<Composer::Value> Composer::cast() {
  const Value x = pick();
  return builder_.cast(x, random_.chance(40) ? DataType::float32 : random_type());
}

std::optional<Composer::Value> Composer::reduce() {
  const Value x = pick();
  std::vector<int> axes;
  for (int a = 0; a < rank(x); ++a)
    if (random_.chance(45)) axes.push_back(a);
  if (axes.empty() && rank(x) > 0) axes.push_back(static_cast<int>(random_.below(rank(x))));
  if (axes.empty()) return std::nullopt;
  const Combine combine =
      type(x) == DataType::boolean
          ? random_.one_of({Combine::max, Combine::min})
          : random_.one_of({Combine::sum, Combine::sum, Combine::max, Combine::min, Combine::product});
  const Value r = builder_.reduce(x, combine, axes, random_.chance(50));
  // Now and then what softmax and norms do with it.
  if (random_.chance(40) && rank(r) == rank(x) && type(x) != DataType::boolean)
    return builder_.map_broadcast(random_.one_of({ScalarOp::sub, ScalarOp::div, ScalarOp::mul}), {x, r});
  return r;
}

std::optional<Composer::Value> Composer::iota() {
  const Value x = pick();
  if (rank(x) == 0) return std::nullopt;
  const DataType element = type(x) == DataType::boolean ? DataType::int64 : type(x);
  const Value counter = builder_.iota({element, shape(x)}, static_cast<int>(random_.below(rank(x))));
  if (element == type(x) && random_.chance(70))
    return builder_.map(random_.one_of({ScalarOp::add, ScalarOp::mul, ScalarOp::max}), {x, counter});
  return counter;
}

// Sizes as numbers: what a mean divides by, or a vector of them.
std::optional<Composer::Value> Composer::dims() {
  const Value x = pick();
  if (rank(x) == 0) return std::nullopt;
  if (random_.chance(50) && type(x) != DataType::boolean) {
    const Value size = builder_.dim(random_.one_of(shape(x)));
    return builder_.map_broadcast(random_.one_of({ScalarOp::div, ScalarOp::mul, ScalarOp::max}),
                                  {x, builder_.cast(size, type(x))});
  }
  std::vector<Dim> list;
  for (int64_t n = random_.between(1, 3); n > 0; --n) list.push_back(random_.one_of(shape(x)));
  return builder_.map_broadcast(ScalarOp::add, {builder_.dims(list), builder_.scalar(DataType::int64, 1)});
}

}  // namespace fusewise::test

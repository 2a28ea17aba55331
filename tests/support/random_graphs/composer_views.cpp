// Views and gathers.
#include <algorithm>

#include "base/error.h"
#include "support/random_graphs/composer.h"

namespace fusewise::test {

std::optional<Composer::Value> Composer::broadcast() {
  const Value x = pick();
  Shape to = shape(x);
  std::vector<int> dims;
  for (Dim& d : to)
    if (d.is(1) && random_.chance(60)) d = known_dim(random_.between(1, 9));
  int64_t elements = count(sizes(x));
  for (int d = 0, at = 0; d <= rank(x); ++d) {
    if (random_.chance(30) && elements < options_.most_elements / 3) {
      to.insert(to.begin() + at, known_dim(random_.between(1, 5)));
      ++at;
      elements *= 5;
    }
    if (d < rank(x)) dims.push_back(at++);
  }
  return builder_.broadcast(x, to, dims);
}

std::optional<Composer::Value> Composer::reshape() {
  const Value x = pick();
  Shape to = shape(x);
  for (int64_t n = random_.between(1, 2); n > 0; --n) change_shape(to);
  if (to.size() > 6) return std::nullopt;
  return builder_.reshape(x, to);
}

void Composer::change_shape(Shape& to) {
  if (to.empty() || random_.chance(20)) {
    to.insert(to.begin() + random_.below(static_cast<int64_t>(to.size()) + 1), 1);
    return;
  }
  const auto at = random_.below(static_cast<int64_t>(to.size()));
  const auto place = to.begin() + at;
  switch (random_.below(4)) {
    case 0:
      if (place + 1 == to.end()) return;
      *place = *place * *(place + 1);
      to.erase(place + 1);
      return;
    case 1: {
      if (!place->is_constant() || place->value() < 2) return;
      const int64_t size = place->value();
      std::vector<int64_t> divisors;
      for (int64_t d = 1; d <= size; ++d)
        if (size % d == 0) divisors.push_back(d);
      const int64_t outer = random_.one_of(divisors);
      *place = outer;
      to.insert(place + 1, size / outer);
      return;
    }
    case 2:
      to = {product(to)};
      return;
    default:
      if (place->is(1))
        to.erase(place);
      else
        std::swap(*place, to.back());  // [4, 6] to [6, 4]
  }
}

std::optional<Composer::Value> Composer::transpose() {
  const Value x = pick();
  std::vector<int> permutation;
  for (int d = 0; d < rank(x); ++d) permutation.push_back(d);
  random_.shuffle(permutation);
  return builder_.transpose(x, permutation);
}

std::optional<Composer::Value> Composer::slice() {
  const Value x = pick();
  std::vector<Dim> starts;
  std::vector<int64_t> steps;
  Shape to;
  for (const Dim& d : shape(x)) {
    const int64_t size = size_of(d), step = random_.one_of<int64_t>({1, 1, 1, 1, 2, 3, -1, -1, -2});
    if (!d.is_constant() || size == 0) {
      const bool drop = size > 1 && random_.chance(30), reverse = step < 0;
      starts.push_back(reverse ? d - 1 : Dim(drop ? 1 : 0));
      steps.push_back(reverse ? -1 : 1);
      to.push_back(drop ? d - 1 : d);
      continue;
    }
    const int64_t most = (size + std::abs(step) - 1) / std::abs(step);
    const int64_t n = random_.chance(3) ? 0 : random_.between(std::max<int64_t>(1, most / 2), most);
    const int64_t reach = n > 0 ? (n - 1) * std::abs(step) + 1 : 0;
    const int64_t low = random_.between(0, size - reach);
    starts.push_back(step > 0 ? low : low + std::max<int64_t>(reach - 1, 0));
    steps.push_back(step);
    to.push_back(n);
  }
  return builder_.slice(x, starts, steps, to);
}

std::optional<Composer::Value> Composer::pad() {
  const Value x = pick();
  std::vector<Dim> low, high;
  for (const Dim& d : shape(x)) {
    int64_t l = random_.chance(50) ? 0 : random_.between(-2, 3),
            h = random_.chance(50) ? 0 : random_.between(-2, 3);
    if (size_of(d) + l + h < 0) l = h = 1;
    low.push_back(l);
    high.push_back(h);
  }
  const auto computed = pick_where([&](Value v) { return rank(v) == 0 && type(v) == type(x); });
  return builder_.pad(x, computed && random_.chance(60) ? *computed : scalar(type(x)), low, high);
}

// Padding with elements of the operand: its edge, its mirror image, its other end.
std::optional<Composer::Value> Composer::pad_from_inside() {
  const Value x = pick();
  if (rank(x) == 0) return std::nullopt;
  const int axis = static_cast<int>(random_.below(rank(x)));
  const Dim extent = shape(x)[static_cast<size_t>(axis)];
  const int64_t size = size_of(extent), low = random_.between(0, 3), high = random_.between(0, 3);
  if (size < 4 || count(sizes(x)) / size * (size + low + high) > options_.most_elements) return std::nullopt;
  const DataType index = DataType::int64;
  const Value last = builder_.dim(extent - 1), zero = builder_.scalar(index, 0);
  Value at = builder_.iota({index, {extent + low + high}}, 0);
  at = builder_.map_broadcast(ScalarOp::sub, {at, builder_.scalar(index, low)});
  switch (random_.below(3)) {
    case 0:
      at = builder_.map_broadcast(ScalarOp::min, {builder_.map_broadcast(ScalarOp::max, {at, zero}), last});
      break;
    case 1:
      at = builder_.map(ScalarOp::abs, {at});
      at = builder_.map_broadcast(
          ScalarOp::sub,
          {last, builder_.map(ScalarOp::abs, {builder_.map_broadcast(ScalarOp::sub, {last, at})})});
      break;
    default:
      at = builder_.map_broadcast(ScalarOp::mod, {at, builder_.dim(extent)});
  }
  return builder_.gather(x, at, axis);
}

std::optional<Composer::Value> Composer::concat() {
  const Value x = pick();
  if (rank(x) == 0) return std::nullopt;
  const auto axis = static_cast<size_t>(random_.below(rank(x)));
  std::vector<Value> parts = {x};
  for (int64_t n = random_.between(1, 2); n > 0; --n) {
    Value part = x;
    const auto other = pick_where([&](Value v) {
      if (type(v) != type(x) || rank(v) != rank(x) || v == x) return false;
      for (size_t d = 0; d < shape(x).size(); ++d)
        if (d != axis && shape(v)[d] != shape(x)[d]) return false;
      return true;
    });
    if (other && random_.chance(60)) {
      part = *other;
    } else if (random_.chance(70)) {
      Shape dims = shape(x);
      dims[axis] = dim_of(random_.between(random_.chance(10) ? 0 : 1, 7));
      part = add_input(type(x), dims);
    }
    parts.push_back(part);
  }
  random_.shuffle(parts);
  return builder_.concat(parts, static_cast<int>(axis));
}

// Both parts of a value cut in two stay in the pool.
std::optional<Composer::Value> Composer::split() {
  const Value x = pick();
  if (rank(x) == 0) return std::nullopt;
  const auto axis = static_cast<size_t>(random_.below(rank(x)));
  const int64_t size = size_of(shape(x)[axis]);
  if (size < 2) return std::nullopt;
  const int64_t first = random_.chance(60) ? size / 2 : random_.between(1, size - 1);
  std::vector<Dim> starts(shape(x).size(), 0);
  const std::vector<int64_t> steps(shape(x).size(), 1);
  Shape left = shape(x), right = shape(x);
  left[axis] = first;
  right[axis] = shape(x)[axis] - first;
  pool_.push_back(builder_.slice(x, starts, steps, left));
  starts[axis] = first;
  const Value rest = builder_.slice(x, starts, steps, right);
  if (left == right && random_.chance(50))
    return builder_.map(random_.one_of({ScalarOp::mul, ScalarOp::sub, ScalarOp::add}), {pool_.back(), rest});
  return rest;
}

std::optional<Composer::Value> Composer::gather() {
  const Value x = pick();
  if (rank(x) == 0) return std::nullopt;
  const int axis = static_cast<int>(random_.below(rank(x)));
  const int64_t extent = size_of(shape(x)[static_cast<size_t>(axis)]);
  if (extent == 0) return std::nullopt;
  const auto computed =
      pick_where([&](Value v) { return is_integer(type(v)) && rank(v) <= 2 && count(sizes(v)) < 40; });
  Value index;
  if (computed && random_.chance(60)) {
    index = *computed;
  } else {
    Sizes s(static_cast<size_t>(random_.one_of({0, 1, 1, 1, 2})));
    for (int64_t& d : s) d = random_.between(random_.chance(5) ? 0 : 1, 9);
    Shape dims;
    for (int64_t d : s) dims.push_back(dim_of(d));
    index = add_input(random_.one_of({DataType::int64, DataType::int32, DataType::uint8}), dims, extent, 30);
    if (random_.chance(35))
      index =
          builder_.map_broadcast(ScalarOp::add, {index, builder_.scalar(type(index), random_.between(0, 2))});
  }
  if (count(sizes(x)) / extent * count(sizes(index)) > options_.most_elements) return std::nullopt;
  return builder_.gather(x, index, axis);
}

}  // namespace fusewise::test

// Sizes, inputs and operands.
#include <algorithm>

#include "base/error.h"
#include "support/random_graphs/composer.h"

namespace fusewise::test {

using graph::Tensor;

Composer::Sizes Composer::sizes(Value v) const {
  Sizes result;
  for (const Dim& d : shape(v)) result.push_back(size_of(d));
  return result;
}

int64_t Composer::count(const Sizes& s) {
  int64_t n = 1;
  for (int64_t d : s) n *= d;
  return n;
}

int64_t Composer::random_size() {
  if (random_.chance(2)) return 0;
  if (random_.chance(12)) return 1;
  if (random_.chance(60)) return random_.between(2, 9);
  return random_.one_of<int64_t>(
      {11, 13, 15, 16, 17, 23, 24, 31, 32, 33, 48, 49, 63, 64, 65, 97, 128, 130, 513, 600, 1100});
}

Composer::Sizes Composer::random_sizes() {
  Sizes result(static_cast<size_t>(random_.one_of({0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5})));
  do {
    for (int64_t& s : result) s = random_size();
  } while (count(result) > options_.most_elements);
  return result;
}

DataType Composer::random_type() {
  if (random_.chance(62)) return DataType::float32;
  return random_.one_of({DataType::float64, DataType::float16, DataType::bfloat16, DataType::int32,
                         DataType::int64, DataType::uint8, DataType::boolean, DataType::int8, DataType::int16,
                         DataType::uint16, DataType::uint32, DataType::uint64, DataType::float64,
                         DataType::float16, DataType::bfloat16, DataType::int32, DataType::int64});
}

DataType Composer::random_float_type() {
  return random_.one_of({DataType::float32, DataType::float32, DataType::float32, DataType::float64,
                         DataType::float16, DataType::bfloat16});
}

Dim Composer::new_symbol(int64_t size) {
  const std::string name = "n" + std::to_string(case_.symbols.size());
  case_.symbols[name] = size;
  return Dim::symbol(name);
}

// A constant, or a symbol that has this value.
Dim Composer::dim_of(int64_t size) {
  if (!random_.chance(22)) return size;
  std::vector<std::string> equal;
  for (const auto& [name, value] : case_.symbols)
    if (value == size && !late_.contains(name)) equal.push_back(name);
  if (!equal.empty() && random_.chance(60)) return Dim::symbol(random_.one_of(equal));
  if (case_.symbols.size() - late_.size() >= 4) return size;
  return new_symbol(size);
}

// The same, but of a symbol that there is already.
Dim Composer::known_dim(int64_t size) {
  for (const auto& [name, value] : case_.symbols)
    if (value == size && random_.chance(50)) return Dim::symbol(name);
  return size;
}

Composer::Value Composer::add_input(DataType element, Shape dims, int64_t index_extent,
                                    int constant_percent) {
  if (outer_) {  // a body has no inputs of its own
    outer_->case_.symbols = case_.symbols;
    const Value outside = outer_->add_input(element, std::move(dims), index_extent, constant_percent);
    case_.symbols = outer_->case_.symbols;
    return capture(outside);
  }
  Sizes concrete;
  for (Dim& d : dims) {
    concrete.push_back(size_of(d));
    // The caller knows no size that only the run gives.
    const auto symbols = d.symbols();
    if (std::ranges::any_of(symbols, [&](const std::string& s) { return late_.contains(s); }))
      d = dim_of(concrete.back());
  }
  const auto size = static_cast<size_t>(bytes_of(element));
  std::vector<std::byte> bytes(static_cast<size_t>(count(concrete)) * size);
  const Sort sort = random_sort(random_);
  for (size_t at = 0; at < bytes.size(); at += size)
    store_scalar(bytes.data() + at, index_extent > 0 ? random_index(element, index_extent, random_)
                                                     : random_scalar(element, sort, random_));
  const bool fixed = std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.is_constant(); });
  if (fixed && random_.chance(constant_percent)) return builder_.constant({element, std::move(dims)}, bytes);
  case_.inputs.push_back(Tensor::copy_of(element, concrete, bytes));
  return builder_.input("x" + std::to_string(case_.inputs.size()), {element, std::move(dims)});
}

Composer::Value Composer::new_input(DataType element, const Sizes& concrete) {
  Shape dims;
  for (int64_t s : concrete) dims.push_back(dim_of(s));
  return add_input(element, std::move(dims));
}

Composer::Value Composer::scalar(DataType element) {
  const Sort sort = random_.chance(10) ? Sort::special : Sort::ordinary;
  return builder_.scalar_of(random_scalar(element, sort, random_), element);
}

// The last value more often than others, so that chains come out.
Composer::Value Composer::pick() {
  return random_.chance(options_.chain_percent) ? pool_.back() : random_.one_of(pool_);
}

std::optional<Composer::Value> Composer::pick_where(const std::function<bool(Value)>& fits) {
  std::vector<Value> fitting;
  for (Value v : pool_)
    if (fits(v)) fitting.push_back(v);
  if (fitting.empty()) return std::nullopt;
  return random_.chance(50) ? fitting.back() : random_.one_of(fitting);
}

// A shape that broadcasts to this one: dimensions of 1, missing ones, symbols that are 1 or the same.
Shape Composer::broadcastable(const Shape& full) {
  Shape result;
  const size_t first =
      random_.chance(30) ? static_cast<size_t>(random_.below(static_cast<int64_t>(full.size()) + 1)) : 0;
  for (size_t d = first; d < full.size(); ++d) {
    if (random_.chance(25))
      result.push_back(1);
    else if (random_.chance(18) && case_.symbols.size() - late_.size() < 4)
      result.push_back(new_symbol(random_.chance(50) ? 1 : size_of(full[d])));
    else
      result.push_back(full[d]);
  }
  return result;
}

Composer::Value Composer::partner(Value x) {
  const auto way = random_.below(10);
  if (way < 3)
    if (const auto y =
            pick_where([&](Value v) { return type(v) == type(x) && shape(v) == shape(x) && v != x; }))
      return *y;
  if (way < 4)
    if (const auto y = pick_where([&](Value v) { return type(v) == type(x) && v != x; })) return *y;
  if (way < 5) return x;
  if (way < 7) return scalar(type(x));
  return add_input(type(x), broadcastable(shape(x)), 0, 30);
}

// The value, or an elementwise function of it: operands of contractions that are computed too.
Composer::Value Composer::maybe_mapped(Value v) {
  if (!random_.chance(40)) return v;
  try {
    return builder_.map_broadcast(random_.one_of({ScalarOp::add, ScalarOp::mul, ScalarOp::max}),
                                  {v, scalar(type(v))});
  } catch (const UserError&) {
    return v;
  }
}

}  // namespace fusewise::test

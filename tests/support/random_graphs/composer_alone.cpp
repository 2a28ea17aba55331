// What stands alone: running values, scatters and host functions, and what speaks of the sizes that these give.
#include <algorithm>

#include "base/error.h"
#include "graph/interpreter/double_interpreter.h"
#include "support/random_graphs/composer.h"
#include "support/random_graphs/run_symbols.h"

namespace fusewise::test {

using graph::Update;
using hostops::Function;

std::optional<Composer::Value> Composer::prefix() {
  const Value x = pick();
  if (rank(x) == 0 || type(x) == DataType::boolean) return std::nullopt;
  graph::PrefixAttributes a;
  a.axis = static_cast<int>(random_.below(rank(x)));
  a.combine = random_.one_of(
      {Combine::sum, Combine::sum, Combine::sum, Combine::product, Combine::max, Combine::min});
  a.exclusive = random_.chance(40);
  a.reverse = random_.chance(40);
  return builder_.prefix(x, a);
}

// As large as the data but along the axis, and now and then smaller; one index for each update or for a whole slice.
std::optional<Composer::Value> Composer::scatter() {
  const Value x = pick();
  if (rank(x) == 0) return std::nullopt;
  const auto axis = static_cast<size_t>(random_.below(rank(x)));
  const int64_t extent = size_of(shape(x)[axis]);
  Shape updated = shape(x), indexed;
  const bool whole = random_.chance(60), shared = random_.chance(40);
  for (size_t d = 0; d < updated.size(); ++d) {
    const int64_t size = size_of(updated[d]);
    if (d == axis)
      updated[d] = dim_of(random_.between(random_.chance(5) ? 0 : 1, 9));
    else if (!whole && random_.chance(50))
      updated[d] = random_.between(0, size);
    indexed.push_back(d != axis && (shared || random_.chance(20)) ? Dim(1) : updated[d]);
  }
  int64_t updates = 1;
  for (const Dim& d : updated) updates *= size_of(d);
  if (updates > options_.most_elements) return std::nullopt;
  const auto same = pick_where([&](Value v) { return type(v) == type(x) && shape(v) == updated; });
  const Value update = same && random_.chance(70) ? *same : maybe_mapped(add_input(type(x), updated, 0, 30));
  const auto computed = pick_where([&](Value v) { return is_integer(type(v)) && shape(v) == indexed; });
  Value index = computed && random_.chance(60)
                    ? *computed
                    : add_input(random_.one_of({DataType::int64, DataType::int32, DataType::uint8}), indexed,
                                extent, 30);
  if (random_.chance(25))
    index =
        builder_.map_broadcast(ScalarOp::sub, {index, builder_.scalar(type(index), random_.between(0, 2))});
  const Update how = type(x) == DataType::boolean
                         ? random_.one_of({Update::replace, Update::max, Update::min})
                         : random_.one_of({Update::replace, Update::sum, Update::sum, Update::product,
                                           Update::max, Update::min});
  return builder_.scatter(x, index, update, static_cast<int>(axis), how);
}

// Binds `sizes` new symbols, whose values the interpreter gives.
std::vector<Composer::Value> Composer::call_host(Function function, std::vector<Value> operands,
                                                 std::vector<Dim> parameters, size_t sizes) {
  graph::HostAttributes a{function, std::move(parameters), {}};
  for (size_t i = 0; i < sizes; ++i) a.symbols.push_back("m" + std::to_string(late_.size() + i));
  const std::vector<std::string> symbols = a.symbols;
  const std::vector<Value> results = builder_.host(std::move(operands), std::move(a));
  if (sizes == 0) return results;
  try {
    const SymbolValues values = run_symbols(case_.graph, case_.inputs, results);
    for (const std::string& symbol : symbols) {
      late_.insert(symbol);
      case_.symbols[symbol] = values.at(symbol);
    }
  } catch (const UserError&) {
    throw Unfit{};
  }
  return results;
}

// Sizes must be the same in every mode: whether the value is exact, whatever rounds how.
bool Composer::is_certain(Value v) const {
  graph::BoundedOptions options;
  options.also = {v};
  try {
    const graph::BoundedTensor bounded = graph::interpret_bounded(case_.graph, case_.inputs, options).back();
    return std::ranges::all_of(bounded.bound.as<double>(), [](double bound) { return bound == 0; });
  } catch (const UserError&) {
    throw Unfit{};
  }
}

// One of the pool, or a comparison or a sign of an input.
Composer::Value Composer::certain(const std::function<bool(Value)>& fits) {
  for (int attempt = 0; attempt < 2; ++attempt)
    if (const auto v = pick_where(fits); v && is_certain(*v)) return *v;
  Sizes sizes(static_cast<size_t>(random_.between(1, 3)));
  do {
    for (int64_t& s : sizes) s = random_size();
  } while (count(sizes) > options_.most_elements);
  const Value x = new_input(random_type(), sizes);
  if (type(x) == DataType::boolean || random_.chance(40)) return x;
  return random_.chance(50) ? builder_.map_broadcast(ScalarOp::greater, {x, scalar(type(x))})
                            : builder_.map(ScalarOp::sign, {x});
}

std::optional<Composer::Value> Composer::top_k() {
  const Value x = pick();
  if (rank(x) == 0 || type(x) == DataType::boolean) return std::nullopt;
  const Dim extent = shape(x).back();
  const Dim k =
      random_.chance(15) ? extent : known_dim(random_.between(0, std::min<int64_t>(size_of(extent), 9)));
  const auto results = call_host(Function::top_k, {x}, {k, random_.below(2), random_.below(2)}, 0);
  pool_.push_back(results[0]);
  return results[1];
}

std::optional<Composer::Value> Composer::non_zero() {
  return call_host(Function::non_zero, {certain([](Value) { return true; })}, {}, 1)[0];
}

std::optional<Composer::Value> Composer::unique() {
  const Value x = certain([&](Value v) { return rank(v) > 0; });
  const auto results = call_host(Function::unique, {x}, {random_.below(2)}, 1);
  pool_.insert(pool_.end(), results.begin(), results.end());
  return random_.chance(50) ? builder_.gather(x, results[0], 0) : random_.one_of(results);
}

std::optional<Composer::Value> Composer::non_max_suppression() {
  const DataType element = random_float_type();
  const Dim batches = dim_of(random_.between(1, 2)), boxes = dim_of(random_.between(0, 12));
  const Value places = add_input(element, {batches, boxes, 4}, 0, 20);
  const Value scores = add_input(element, {batches, dim_of(random_.between(1, 3)), boxes}, 0, 20);
  const auto limit = [&](double value) {
    const Value constant = builder_.scalar(DataType::float32, value);
    return random_.chance(70) ? constant : add_input(DataType::float32, {});
  };
  const Value most = builder_.scalar(DataType::int64, random_.between(0, 5));
  return call_host(Function::non_max_suppression,
                   {places, builder_.map(ScalarOp::neg, {scores}), most, limit(0.3), limit(-0.5)},
                   {random_.below(2), random_.below(2)}, 1)[0];
}

// A small size that is computed, in the places where sizes stand.
std::optional<Composer::Value> Composer::read_size() {
  Value number = add_input(DataType::int64, {}, 10);
  number = builder_.map(ScalarOp::min,
                        {builder_.map(ScalarOp::abs, {number}), builder_.scalar(DataType::int64, 10)});
  const Dim size = Dim::symbol("m" + std::to_string(late_.size()));
  call_host(Function::read_sizes, {number}, {}, 1);
  const Value x = pick();
  const auto axis = static_cast<size_t>(random_.below(std::max(rank(x), 1)));
  const auto use = random_.below(rank(x) == 0 ? 2 : 5);
  if (use == 0) return builder_.iota({type(x) == DataType::boolean ? DataType::int64 : type(x), {size}}, 0);
  Shape to = shape(x);
  if (use == 1) {
    if (count(sizes(x)) > options_.most_elements / 10) return std::nullopt;
    to.insert(to.begin(), size);
    return builder_.broadcast_to(x, to);
  }
  std::vector<Dim> starts(to.size(), 0), ends(to.size(), 0);
  switch (use) {
    case 2:  // the first ones, or the last ones
      to[axis] = min(size, to[axis]);
      if (random_.chance(50)) starts[axis] = shape(x)[axis] - to[axis];
      return builder_.slice(x, starts, std::vector<int64_t>(to.size(), 1), to);
    case 3:
      (random_.chance(50) ? starts : ends)[axis] = size;
      if (count(sizes(x)) > options_.most_elements / 10) return std::nullopt;
      return builder_.pad(x, scalar(type(x)), starts, ends);
    default: {
      if (type(x) == DataType::boolean) return std::nullopt;
      const auto results =
          call_host(Function::top_k, {x}, {min(size, to.back()), random_.below(2), random_.below(2)}, 0);
      return random_.one_of(results);
    }
  }
}

}  // namespace fusewise::test

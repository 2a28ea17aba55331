#include "region_generator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "base/error.h"
#include "graph/builder.h"
#include "graph/form.h"
#include "graph/shape_rules.h"
#include "random.h"

namespace fusewise::test {

using graph::GraphBuilder;
using graph::Op;
using graph::Tensor;
using graph::Value;

namespace {

using Sizes = std::vector<int64_t>;

constexpr int64_t most_elements = 3000;
constexpr int64_t most_work = 40000;

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed), builder_(case_.graph) { case_.seed = seed; }

  RegionCase make() {
    const auto inputs = random_.between(1, 2);
    for (int64_t i = 0; i < inputs; ++i) pool_.push_back(new_input(random_type(), random_sizes()));
    const auto operations = random_.between(1, 8);
    int64_t done = 0;
    for (int64_t attempt = 0; done < operations && attempt < 60; ++attempt) done += try_operation() ? 1 : 0;
    add_outputs();
    add_layouts();
    return std::move(case_);
  }

 private:
  Random random_;
  RegionCase case_;
  GraphBuilder builder_;
  std::vector<Value> pool_;

  // ---------------------------------------------------------------- sizes and inputs

  const Shape& shape(Value v) const { return case_.graph.type(v).shape; }
  DataType type(Value v) const { return case_.graph.type(v).element; }
  int rank(Value v) const { return case_.graph.type(v).rank(); }
  int64_t size_of(const Dim& d) const { return d.evaluate(case_.symbols); }
  Sizes sizes(Value v) const {
    Sizes result;
    for (const Dim& d : shape(v)) result.push_back(size_of(d));
    return result;
  }
  static int64_t count(const Sizes& s) {
    int64_t n = 1;
    for (int64_t d : s) n *= d;
    return n;
  }

  int64_t random_size() {
    if (random_.chance(2)) return 0;
    if (random_.chance(12)) return 1;
    if (random_.chance(60)) return random_.between(2, 9);
    return random_.one_of<int64_t>(
        {11, 13, 15, 16, 17, 23, 24, 31, 32, 33, 48, 49, 63, 64, 65, 97, 128, 130, 513, 600, 1100});
  }
  Sizes random_sizes() {
    Sizes result(static_cast<size_t>(random_.one_of({0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5})));
    do {
      for (int64_t& s : result) s = random_size();
    } while (count(result) > most_elements);
    return result;
  }
  DataType random_type() {
    if (random_.chance(62)) return DataType::float32;
    return random_.one_of({DataType::float64, DataType::float16, DataType::bfloat16, DataType::int32,
                           DataType::int64, DataType::uint8, DataType::boolean, DataType::int8,
                           DataType::uint16, DataType::uint64, DataType::float64, DataType::float16,
                           DataType::int32, DataType::int64});
  }
  // A constant, or a symbol that has this value.
  Dim dim_of(int64_t size) {
    if (!random_.chance(22)) return size;
    std::vector<std::string> equal;
    for (const auto& [name, value] : case_.symbols)
      if (value == size) equal.push_back(name);
    if (!equal.empty() && random_.chance(60)) return Dim::symbol(random_.one_of(equal));
    if (case_.symbols.size() >= 4) return size;
    const std::string name = "n" + std::to_string(case_.symbols.size());
    case_.symbols[name] = size;
    return Dim::symbol(name);
  }

  // The same, but of a symbol that some input's shape has already.
  Dim known_dim(int64_t size) {
    for (const auto& [name, value] : case_.symbols)
      if (value == size && random_.chance(50)) return Dim::symbol(name);
    return size;
  }

  double random_float(bool special) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (special && random_.chance(8))
      return random_.one_of({0.0, -0.0, infinity, -infinity, std::nan(""), 1e-40, -3e-39, 5e-324, 6e-8,
                             65504.0, 3.4e38, -1e300});
    if (random_.chance(3)) return random_.one_of({0.0, -0.0, 1.0, -1.0});
    return (random_.unit() - 0.5) * random_.one_of({0.5, 2.0, 2.0, 8.0});
  }
  Scalar random_scalar(DataType to, bool special, int64_t index_limit) {
    Scalar s;
    if (is_float(to)) {
      s = {DataType::float64, random_float(special), 0};
    } else {
      s = {DataType::int64, 0,
           special && random_.chance(20) ? static_cast<int64_t>(random_.next()) : random_.between(-9, 9)};
      if (index_limit > 0)
        s.i = random_.chance(3) ? random_.between(-2 * index_limit, 2 * index_limit)
                                : random_.between(-index_limit, index_limit - 1);
      if (to == DataType::boolean) s.i &= 1;
    }
    return convert(s, to);
  }
  std::vector<std::byte> random_bytes(DataType element, int64_t elements, int64_t index_limit) {
    const auto size = static_cast<size_t>(bytes_of(element));
    std::vector<std::byte> bytes(static_cast<size_t>(elements) * size);
    const bool special = random_.chance(25);
    for (int64_t i = 0; i < elements; ++i)
      store_scalar(bytes.data() + static_cast<size_t>(i) * size,
                   random_scalar(element, special, index_limit));
    return bytes;
  }
  Value add_input(DataType element, Shape dims, int64_t index_limit = 0) {
    Sizes concrete;
    for (const Dim& d : dims) concrete.push_back(size_of(d));
    const std::vector<std::byte> bytes = random_bytes(element, count(concrete), index_limit);
    bool constant = random_.chance(10);
    for (const Dim& d : dims) constant = constant && d.is_constant();
    if (constant) return builder_.constant({element, std::move(dims)}, bytes);
    case_.inputs.push_back(Tensor::copy_of(element, concrete, bytes));
    return builder_.input("x" + std::to_string(case_.inputs.size()), {element, std::move(dims)});
  }
  Value new_input(DataType element, const Sizes& concrete) {
    Shape dims;
    for (int64_t s : concrete) dims.push_back(dim_of(s));
    return add_input(element, std::move(dims));
  }
  Value scalar(DataType element) {
    return builder_.scalar_of(random_scalar(element, random_.chance(10), 0), element);
  }

  // The last value more often than others, so that chains come out.
  Value pick() { return random_.chance(60) ? pool_.back() : random_.one_of(pool_); }
  std::optional<Value> pick_where(const std::function<bool(Value)>& fits) {
    std::vector<Value> fitting;
    for (Value v : pool_)
      if (fits(v)) fitting.push_back(v);
    if (fitting.empty()) return std::nullopt;
    return random_.chance(50) ? fitting.back() : random_.one_of(fitting);
  }

  // ---------------------------------------------------------------- operations

  bool try_operation() {
    using Maker = std::optional<Value> (Generator::*)();
    static constexpr std::pair<Maker, int> makers[] = {
        {&Generator::unary, 16},      {&Generator::binary, 22},   {&Generator::select, 3},
        {&Generator::cast, 5},        {&Generator::reduce, 13},   {&Generator::broadcast, 5},
        {&Generator::reshape, 8},     {&Generator::transpose, 6}, {&Generator::slice, 6},
        {&Generator::pad, 6},         {&Generator::concat, 5},    {&Generator::dot, 11},
        {&Generator::convolution, 8}, {&Generator::window, 6},    {&Generator::gather, 6},
        {&Generator::iota, 3}};
    int total = 0;
    for (const auto& [maker, weight] : makers) total += weight;
    int64_t at = random_.below(total);
    Maker chosen = nullptr;
    for (const auto& [maker, weight] : makers)
      if ((at -= weight) < 0) {
        chosen = maker;
        break;
      }
    const size_t before = case_.graph.size();
    Value made;
    try {
      made = (this->*chosen)().value_or(Value{});
    } catch (const UserError&) {
      made = {};
    }
    // What was appended before a refusal stays: it is dead, or becomes an output.
    for (size_t n = before; n < case_.graph.size(); ++n) check_node(static_cast<graph::NodeId>(n));
    if (made.node == graph::no_node || made.node < before) return false;
    pool_.push_back(made);
    return true;
  }

  // Throws Unfit when the symbols' values do not satisfy what a node requires, or when it is too large.
  struct Unfit {};
  void check_node(graph::NodeId node) {
    for (const graph::Requirement& r : graph::requirements_of(case_.graph, node))
      if (!graph::holds(r, case_.symbols)) throw Unfit{};
    for (int64_t s : sizes({node, 0}))
      if (s < 0) throw Unfit{};
    if (count(sizes({node, 0})) > 4 * most_elements) throw Unfit{};
  }

  std::optional<Value> unary() {
    const Value x = pick();
    const ScalarOp op =
        random_.one_of({ScalarOp::abs, ScalarOp::ceil, ScalarOp::floor, ScalarOp::neg, ScalarOp::round,
                        ScalarOp::sign, ScalarOp::trunc, ScalarOp::sqrt, ScalarOp::exp, ScalarOp::log,
                        ScalarOp::tanh, ScalarOp::erf, ScalarOp::sin, ScalarOp::cos, ScalarOp::tan,
                        ScalarOp::atan, ScalarOp::is_nan, ScalarOp::is_inf, ScalarOp::not_});
    return builder_.map(op, {x});
  }

  // A shape that broadcasts to this one: dimensions of 1, missing ones, symbols that are 1 or the same.
  Shape broadcastable(const Shape& full) {
    Shape result;
    const size_t first =
        random_.chance(30) ? static_cast<size_t>(random_.below(static_cast<int64_t>(full.size()) + 1)) : 0;
    for (size_t d = first; d < full.size(); ++d) {
      if (random_.chance(25))
        result.push_back(1);
      else if (random_.chance(18) && case_.symbols.size() < 4) {
        const std::string name = "n" + std::to_string(case_.symbols.size());
        case_.symbols[name] = random_.chance(50) ? 1 : size_of(full[d]);
        result.push_back(Dim::symbol(name));
      } else {
        result.push_back(full[d]);
      }
    }
    return result;
  }
  Value partner(Value x) {
    const auto way = random_.below(10);
    if (way < 3)
      if (const auto y =
              pick_where([&](Value v) { return type(v) == type(x) && shape(v) == shape(x) && v != x; }))
        return *y;
    if (way < 4)
      if (const auto y = pick_where([&](Value v) { return type(v) == type(x) && v != x; })) return *y;
    if (way < 5) return x;
    if (way < 7) return scalar(type(x));
    return add_input(type(x), broadcastable(shape(x)));
  }
  std::optional<Value> binary() {
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
  std::optional<Value> select() {
    const Value x = pick(), y = partner(x);
    const auto condition = pick_where([&](Value v) { return type(v) == DataType::boolean; });
    const Value c =
        condition && random_.chance(60) ? *condition : add_input(DataType::boolean, broadcastable(shape(x)));
    return builder_.map_broadcast(ScalarOp::select, {c, x, y});
  }
  std::optional<Value> cast() {
    const Value x = pick();
    return builder_.cast(x, random_.chance(40) ? DataType::float32 : random_type());
  }

  std::optional<Value> reduce() {
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

  std::optional<Value> broadcast() {
    const Value x = pick();
    Shape to = shape(x);
    std::vector<int> dims;
    for (Dim& d : to)
      if (d.is(1) && random_.chance(60)) d = known_dim(random_.between(1, 9));
    int64_t elements = count(sizes(x));
    for (int d = 0, at = 0; d <= rank(x); ++d) {
      if (random_.chance(30) && elements < 1000) {
        to.insert(to.begin() + at, known_dim(random_.between(1, 5)));
        ++at;
        elements *= 5;
      }
      if (d < rank(x)) dims.push_back(at++);
    }
    return builder_.broadcast(x, to, dims);
  }

  std::optional<Value> reshape() {
    const Value x = pick();
    Shape to = shape(x);
    for (int64_t n = random_.between(1, 2); n > 0; --n) {
      const auto at = to.empty() ? 0 : static_cast<size_t>(random_.below(static_cast<int64_t>(to.size())));
      switch (random_.below(5)) {
        case 0:
          if (at + 1 < to.size()) {
            to[at] = to[at] * to[at + 1];
            to.erase(to.begin() + static_cast<std::ptrdiff_t>(at) + 1);
          }
          break;
        case 1:
          if (!to.empty() && to[at].is_constant() && to[at].value() > 1) {
            const int64_t size = to[at].value();
            std::vector<int64_t> divisors;
            for (int64_t d = 1; d <= size; ++d)
              if (size % d == 0) divisors.push_back(d);
            const int64_t outer = random_.one_of(divisors);
            to[at] = outer;
            to.insert(to.begin() + static_cast<std::ptrdiff_t>(at) + 1, size / outer);
          }
          break;
        case 2:
          to = {product(to)};
          break;
        case 3:
          to.insert(to.begin() + static_cast<std::ptrdiff_t>(at), 1);
          break;
        default:
          if (!to.empty() && to[at].is(1))
            to.erase(to.begin() + static_cast<std::ptrdiff_t>(at));
          else if (!to.empty())
            std::swap(to[at], to.back());  // [4, 6] to [6, 4]
      }
    }
    if (to.size() > 6) return std::nullopt;
    return builder_.reshape(x, to);
  }

  std::optional<Value> transpose() {
    const Value x = pick();
    std::vector<int> permutation;
    for (int d = 0; d < rank(x); ++d) permutation.push_back(d);
    random_.shuffle(permutation);
    return builder_.transpose(x, permutation);
  }

  std::optional<Value> slice() {
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

  std::optional<Value> pad() {
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

  std::optional<Value> concat() {
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

  // The value, or an elementwise function of it: operands of contractions that are computed in the region.
  Value maybe_mapped(Value v) {
    if (!random_.chance(40)) return v;
    try {
      return builder_.map_broadcast(random_.one_of({ScalarOp::add, ScalarOp::mul, ScalarOp::max}),
                                    {v, scalar(type(v))});
    } catch (const UserError&) {
      return v;
    }
  }

  std::optional<Value> dot() {
    const Value x = pick();
    if (type(x) == DataType::boolean) return std::nullopt;
    std::vector<int> order;
    for (int d = 0; d < rank(x); ++d) order.push_back(d);
    random_.shuffle(order);
    const size_t contracted =
        std::min<size_t>(order.size(), static_cast<size_t>(random_.one_of({1, 1, 1, 1, 1, 1, 2, 0})));
    const size_t batch =
        std::min<size_t>(order.size() - contracted, static_cast<size_t>(random_.one_of({0, 0, 0, 1, 1, 2})));
    graph::DotAttributes a;
    struct Part {
      Dim dim;
      int kind;
      int of;
    };  // kind 0 batch, 1 contracted, 2 free
    std::vector<Part> parts;
    for (size_t i = 0; i < batch; ++i) {
      a.lhs_batch.push_back(order[i]);
      parts.push_back({shape(x)[static_cast<size_t>(order[i])], 0, static_cast<int>(i)});
    }
    for (size_t i = 0; i < contracted; ++i) {
      a.lhs_contract.push_back(order[batch + i]);
      parts.push_back({shape(x)[static_cast<size_t>(order[batch + i])], 1, static_cast<int>(i)});
    }
    for (int64_t n = random_.one_of<int64_t>({0, 1, 1, 1, 1, 2}); n > 0; --n)
      parts.push_back({dim_of(std::min<int64_t>(random_size(), 130)), 2, 0});
    random_.shuffle(parts);
    a.rhs_batch.resize(batch);
    a.rhs_contract.resize(contracted);
    Shape dims;
    for (const Part& p : parts) {
      if (p.kind == 0) a.rhs_batch[static_cast<size_t>(p.of)] = static_cast<int>(dims.size());
      if (p.kind == 1) a.rhs_contract[static_cast<size_t>(p.of)] = static_cast<int>(dims.size());
      dims.push_back(p.dim);
    }
    int64_t work = count(sizes(x));
    for (const Part& p : parts)
      if (p.kind == 2) work *= std::max<int64_t>(size_of(p.dim), 1);
    int64_t elements = 1;
    for (const Dim& d : dims) elements *= size_of(d);
    if (work > most_work || elements > 2 * most_elements) return std::nullopt;
    const auto other = pick_where([&](Value v) { return type(v) == type(x) && shape(v) == dims; });
    const Value y = other && random_.chance(70) ? *other : maybe_mapped(add_input(type(x), dims));
    return builder_.dot(x, y, a);
  }

  std::optional<Value> convolution() {
    Value x = pick();
    if (rank(x) < 2 || rank(x) > 4 || !is_float(type(x)) || !shape(x)[1].is_constant() || shape(x)[1].is(0)) {
      const int spatial = random_.one_of({1, 2, 2, 2, 3});
      Sizes s = {random_.between(1, 2), random_.one_of<int64_t>({1, 2, 3, 4, 6, 8})};
      for (int d = 0; d < spatial; ++d)
        s.push_back(random_.between(1, spatial == 1 ? 40 : spatial == 2 ? 14 : 6));
      Shape dims = {dim_of(s[0]), s[1]};
      for (int d = 0; d < spatial; ++d) dims.push_back(dim_of(s[static_cast<size_t>(d + 2)]));
      x = maybe_mapped(add_input(
          random_.chance(75) ? DataType::float32
                             : random_.one_of({DataType::float16, DataType::float64, DataType::int32}),
          dims));
    }
    const int64_t channels = shape(x)[1].value();
    graph::ConvolutionAttributes a;
    std::vector<int64_t> divisors;
    for (int64_t g = 1; g <= channels; ++g)
      if (channels % g == 0) divisors.push_back(g);
    a.groups = random_.chance(60) ? 1 : random_.chance(50) ? channels : random_.one_of(divisors);
    Shape w = {a.groups * random_.one_of<int64_t>({1, 1, 2, 3, a.groups == 1 ? 17 : 8}), channels / a.groups};
    int64_t work = count(sizes(x)) / channels * w[0].value() * w[1].value();
    for (int d = 2; d < rank(x); ++d) {
      w.push_back(random_.between(1, 3));
      work *= w.back().value();
      a.strides.push_back(random_.one_of<int64_t>({1, 1, 1, 2, 3}));
      a.dilations.push_back(random_.one_of<int64_t>({1, 1, 1, 2}));
      a.pad_low.push_back(random_.one_of<int64_t>({0, 1, 1, 2, random_.chance(10) ? -1 : 0}));
      a.pad_high.push_back(random_.one_of<int64_t>({0, 1, 1, 2, 3}));
    }
    if (work > most_work) return std::nullopt;
    return builder_.convolution(x, maybe_mapped(add_input(type(x), w)), a);
  }

  std::optional<Value> window() {
    const Value x = pick();
    if (rank(x) == 0) return std::nullopt;
    graph::WindowReduceAttributes a;
    a.combine =
        type(x) == DataType::boolean
            ? random_.one_of({Combine::max, Combine::min})
            : random_.one_of({Combine::sum, Combine::max, Combine::max, Combine::min, Combine::product});
    for (int64_t n = random_.between(1, std::min(rank(x), 2)); n > 0; --n) {
      a.window.push_back(random_.between(1, 4));
      a.strides.push_back(random_.one_of<int64_t>({1, 1, 2, 3}));
      a.dilations.push_back(random_.one_of<int64_t>({1, 1, 1, 2}));
      a.pad_low.push_back(random_.one_of<int64_t>({0, 0, 1, 2}));
      a.pad_high.push_back(random_.one_of<int64_t>({0, 0, 1, 2, random_.chance(10) ? -1 : 0}));
    }
    return builder_.window_reduce(x, a);
  }

  std::optional<Value> gather() {
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
      index = add_input(random_.one_of({DataType::int64, DataType::int32, DataType::uint8}), dims, extent);
      if (random_.chance(35))
        index = builder_.map_broadcast(ScalarOp::add,
                                       {index, builder_.scalar(type(index), random_.between(0, 2))});
    }
    if (count(sizes(x)) / extent * count(sizes(index)) > most_elements) return std::nullopt;
    return builder_.gather(x, index, axis);
  }

  std::optional<Value> iota() {
    const Value x = pick();
    if (rank(x) == 0) return std::nullopt;
    const DataType element = type(x) == DataType::boolean ? DataType::int64 : type(x);
    const Value counter = builder_.iota({element, shape(x)}, static_cast<int>(random_.below(rank(x))));
    if (element == type(x) && random_.chance(70))
      return builder_.map(random_.one_of({ScalarOp::add, ScalarOp::mul, ScalarOp::max}), {x, counter});
    return counter;
  }

  // ---------------------------------------------------------------- the border

  // Every value that nothing reads, and now and then one that is read.
  void add_outputs() {
    const auto users = graph::users(case_.graph);
    int count_of_outputs = 0;
    for (graph::NodeId n = 0; n < case_.graph.size(); ++n) {
      if (!graph::has_form(case_.graph, n)) continue;
      if (!users[n].empty() && !random_.chance(8)) continue;
      case_.graph.outputs.push_back({{n, 0}, "y" + std::to_string(count_of_outputs++)});
    }
    if (count_of_outputs == 0) throw Unfit{};
  }

  schedule::Layout random_layout(int dims) {
    schedule::Layout layout = schedule::row_major(dims);
    if (random_.chance(70)) random_.shuffle(layout.order);
    if (random_.chance(40)) {
      std::vector<int> blocked = layout.order;
      random_.shuffle(blocked);
      blocked.resize(std::min<size_t>(blocked.size(), static_cast<size_t>(random_.between(1, 2))));
      for (int d : blocked) layout.blocks.push_back({d, random_.one_of<int64_t>({2, 3, 4, 8, 16, 16})});
    }
    return layout;
  }
  void add_layouts() {
    if (!random_.chance(45)) return;
    for (graph::NodeId n = 0; n < case_.graph.size(); ++n) {
      const Value v{n, 0};
      if (rank(v) == 0 || !random_.chance(40)) continue;
      const schedule::Layout layout = random_layout(rank(v));
      if (!layout.is_row_major()) case_.layouts[v] = layout;
    }
  }

 public:
  static std::optional<RegionCase> attempt(uint64_t seed) {
    try {
      return Generator(seed).make();
    } catch (const Unfit&) {
      return std::nullopt;
    }
  }
};

}  // namespace

RegionCase random_region(uint64_t seed) {
  for (uint64_t again = 0;; ++again)
    if (auto made = Generator::attempt(seed + again * 0x100000001ULL)) {
      made->seed = seed;
      return std::move(*made);
    }
}

}  // namespace fusewise::test

// Products of matrices, convolutions and windows.
#include <algorithm>

#include "base/error.h"
#include "support/random_graphs/composer.h"

namespace fusewise::test {

namespace {

// A dimension of the right operand of a product: of the batch, contracted or free; `of` says which.
struct Part {
  enum class Kind { batch, contracted, free };
  Dim dim;
  Kind kind;
  size_t of;
};

}  // namespace

std::optional<Composer::Value> Composer::dot() {
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
  std::vector<Part> parts;
  for (size_t i = 0; i < batch; ++i) {
    a.lhs_batch.push_back(order[i]);
    parts.push_back({shape(x)[static_cast<size_t>(order[i])], Part::Kind::batch, i});
  }
  for (size_t i = 0; i < contracted; ++i) {
    a.lhs_contract.push_back(order[batch + i]);
    parts.push_back({shape(x)[static_cast<size_t>(order[batch + i])], Part::Kind::contracted, i});
  }
  for (int64_t n = random_.one_of<int64_t>({0, 1, 1, 1, 1, 2}); n > 0; --n)
    parts.push_back({dim_of(std::min<int64_t>(random_size(), 130)), Part::Kind::free, 0});
  random_.shuffle(parts);
  a.rhs_batch.resize(batch);
  a.rhs_contract.resize(contracted);
  Shape dims;
  int64_t work = count(sizes(x)), elements = 1;
  for (const Part& p : parts) {
    if (p.kind == Part::Kind::batch) a.rhs_batch[p.of] = static_cast<int>(dims.size());
    if (p.kind == Part::Kind::contracted) a.rhs_contract[p.of] = static_cast<int>(dims.size());
    if (p.kind == Part::Kind::free) work *= std::max<int64_t>(size_of(p.dim), 1);
    elements *= size_of(p.dim);
    dims.push_back(p.dim);
  }
  if (work > options_.most_work || elements > 2 * options_.most_elements) return std::nullopt;
  const auto other = pick_where([&](Value v) { return type(v) == type(x) && shape(v) == dims; });
  const Value y = other && random_.chance(70) ? *other : maybe_mapped(add_input(type(x), dims, 0, 35));
  return builder_.dot(x, y, a);
}

// [N, C, spatial...]
Composer::Value Composer::image(int spatial) {
  Shape dims = {dim_of(random_.between(1, 2)), random_.one_of<int64_t>({1, 2, 3, 4, 6, 8})};
  for (int d = 0; d < spatial; ++d)
    dims.push_back(dim_of(random_.between(1, spatial == 1 ? 40 : spatial == 2 ? 14 : 6)));
  const DataType element =
      random_.chance(75)
          ? DataType::float32
          : random_.one_of({DataType::float16, DataType::bfloat16, DataType::float64, DataType::int32});
  return maybe_mapped(add_input(element, dims));
}

// With random strides, dilations and padding; `channels` are those of the result per group.
std::optional<Composer::Value> Composer::convolve(Value x, int64_t groups, int64_t channels, int64_t taps,
                                                  bool strided) {
  const int64_t in = shape(x)[1].value();
  graph::ConvolutionAttributes a;
  a.groups = groups;
  Shape w = {groups * channels, in / groups};
  int64_t work = count(sizes(x)) / in * w[0].value() * w[1].value();
  for (int d = 2; d < rank(x); ++d) {
    w.push_back(random_.between(1, taps));
    work *= w.back().value();
    a.strides.push_back(strided ? random_.one_of<int64_t>({1, 1, 1, 2, 3}) : 1);
    a.dilations.push_back(random_.one_of<int64_t>({1, 1, 1, 2}));
    a.pad_low.push_back(random_.one_of<int64_t>({0, 1, 1, 2, random_.chance(10) ? -1 : 0}));
    a.pad_high.push_back(random_.one_of<int64_t>({0, 1, 1, 2, 3}));
  }
  if (work > options_.most_work) return std::nullopt;
  return builder_.convolution(x, maybe_mapped(add_input(type(x), w, 0, 50)), a);
}

std::optional<Composer::Value> Composer::convolution() {
  Value x = pick();
  const auto fits = [&] {
    return rank(x) >= 2 && rank(x) <= 5 && (is_float(type(x)) || random_.chance(30)) &&
           type(x) != DataType::boolean && shape(x)[1].is_constant() && !shape(x)[1].is(0);
  };
  if (!fits()) x = image(random_.one_of({1, 2, 2, 2, 3}));
  const int64_t channels = shape(x)[1].value();
  std::vector<int64_t> divisors;
  for (int64_t g = 1; g <= channels; ++g)
    if (channels % g == 0) divisors.push_back(g);
  const int64_t groups = random_.chance(60) ? 1 : random_.chance(50) ? channels : random_.one_of(divisors);
  return convolve(x, groups, random_.one_of<int64_t>({1, 1, 2, 3, groups == 1 ? 17 : 8}), 3, true);
}

// As a convolution of the operand with zeros between its elements.
std::optional<Composer::Value> Composer::transposed_convolution() {
  Value x = image(random_.between(1, 2) == 1 ? 1 : 2);
  const Value zero = builder_.scalar(type(x), 0);
  for (size_t d = 2; d < static_cast<size_t>(rank(x)); ++d) {
    const int64_t stride = random_.between(1, 3);
    Shape apart = shape(x);
    if (size_of(apart[d]) == 0) return std::nullopt;
    apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(d) + 1, 1);
    std::vector<Dim> low(apart.size(), 0), high(apart.size(), 0);
    high[d + 1] = stride - 1;
    Shape joined = shape(x);
    joined[d] = joined[d] * Dim(stride);
    x = builder_.reshape(builder_.pad(builder_.reshape(x, apart), zero, low, high), joined);
    if (stride == 1) continue;
    joined[d] = joined[d] - (stride - 1);
    x = builder_.slice(x, std::vector<Dim>(joined.size(), 0), std::vector<int64_t>(joined.size(), 1), joined);
  }
  if (count(sizes(x)) > options_.most_elements) return std::nullopt;
  return convolve(x, 1, random_.between(1, 4), 3, false);
}

std::optional<Composer::Value> Composer::window() {
  const Value x = pick();
  if (rank(x) == 0) return std::nullopt;
  graph::WindowReduceAttributes a;
  a.combine =
      type(x) == DataType::boolean
          ? random_.one_of({Combine::max, Combine::min})
          : random_.one_of({Combine::sum, Combine::max, Combine::max, Combine::min, Combine::product});
  for (int64_t n = random_.between(1, std::min(rank(x), 3)); n > 0; --n) {
    a.window.push_back(random_.between(1, 4));
    a.strides.push_back(random_.one_of<int64_t>({1, 1, 2, 3}));
    a.dilations.push_back(random_.one_of<int64_t>({1, 1, 1, 2}));
    a.pad_low.push_back(random_.one_of<int64_t>({0, 0, 1, 2}));
    a.pad_high.push_back(random_.one_of<int64_t>({0, 0, 1, 2, random_.chance(10) ? -1 : 0}));
  }
  return builder_.window_reduce(x, a);
}

}  // namespace fusewise::test

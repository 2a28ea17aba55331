// Operators that rearrange elements without computing: reshapes, transpositions, joins.
#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "graph/shape_rules.h"
#include "import/onnx/compose.h"
#include "import/onnx/importer.h"
#include "import/onnx/op_table.h"

namespace fusewise::onnx {

namespace {

using graph::Value;

void identity(Call& c) { c.alias(0, 0); }

// In inference the data passes through; the mask says that all of it did.
void dropout(Call& c) {
  if (c.version() >= 12 && c.has(2)) {
    const KnownTensor* training = c.known(2);
    const KnownTensor* ratio = c.has(1) ? c.known(1) : nullptr;
    const bool off = training && training->values.size() == 1 && training->values[0].is(0);
    const bool keeps_all = ratio && ratio->values.size() == 1 && ratio->values[0].is(0);
    if (!off && !keeps_all) c.unsupported("training mode");
  }
  c.alias(0, 0);
  if (!c.wants(1)) return;
  const DataType type = c.version() >= 10 ? DataType::boolean : c.element(0);
  c.set_output(1, c.builder().broadcast(c.builder().scalar(type, 1), c.type(0).shape, {}));
}

// What -1 stands for: the product of the operand's dimensions divided by the others of the target. Equal
// dimensions are cancelled first, so that symbols need no division.
Dim remaining_dim(Call& c, const Shape& from, const Shape& to) {
  Shape numerator = from, denominator;
  for (const Dim& d : to) {
    if (d.is(-1)) continue;
    const auto same = std::ranges::find(numerator, d);
    if (same != numerator.end() && !d.is(0))
      numerator.erase(same);
    else
      denominator.push_back(d);
  }
  const Dim divisor = product(denominator), dividend = product(numerator);
  if (divisor.is(0)) {
    if (dividend.is(0)) return 0;
    c.fail("-1 stands beside a dimension of 0");
  }
  const Dim quotient = floor_div(dividend, divisor);
  if (dividend.is_constant() && divisor.is_constant() && quotient * divisor != dividend) {
    c.fail(fmt::format("{} elements do not fill the shape {}", product(from).to_string(), to_string(to)));
  }
  return quotient;
}

void reshape_to(Call& c, Shape target, bool zero_copies) {
  const Shape from = c.type(0).shape;
  int open = 0;
  for (size_t d = 0; d < target.size(); ++d) {
    if (target[d].is(0) && zero_copies) {
      if (d >= from.size()) c.fail(fmt::format("dimension {} is to be copied, and there is none", d));
      target[d] = from[d];
    } else if (target[d].is(-1)) {
      ++open;
    } else if (target[d].is_constant() && target[d].value() < 0) {
      c.fail(fmt::format("a dimension of the new shape is {}", target[d].value()));
    }
  }
  if (open > 1) c.fail("more than one dimension is -1");
  if (open == 1) *std::ranges::find(target, Dim(-1)) = remaining_dim(c, from, target);
  c.set(c.builder().reshape(c.value(0), std::move(target)));
}

// A new shape with elements that only the run knows: their 0 and -1 are resolved by the model's own arithmetic before
// they are read as sizes.
Shape resolved_shape(Call& c, const std::vector<std::optional<Dim>>& given, bool zero_copies) {
  Compose m(c.builder());
  const Shape from = c.type(0).shape;
  const Value all = c.builder().cast(c.value(1), DataType::int64);
  const auto dim = [&](const Dim& d) { return c.builder().dims({d}); };
  const auto one_of = [&](size_t i) {
    return c.builder().slice(all, {Dim(static_cast<int64_t>(i))}, {1}, {Dim(1)});
  };
  Dim known = 1;
  std::vector<Value> open;
  for (size_t i = 0; i < given.size(); ++i) {
    const bool copies = zero_copies && i < from.size();
    if (given[i]) {
      known = known * (given[i]->is(0) && copies ? from[i] : *given[i]);
      continue;
    }
    Value x = one_of(i);
    if (copies) x = m.select(m.map(ScalarOp::equal, x, m.like(x, 0)), dim(from[i]), x);
    open.push_back(x);
  }
  const bool minus_one_known = std::ranges::find(given, std::optional(Dim(-1))) != given.end();
  if (!minus_one_known) {
    // With one -1 among them the product is what the others make, with the other sign.
    Value product_of_all = dim(known);
    for (const Value x : open) product_of_all = m.mul(product_of_all, x);
    const Value rest = m.div(dim(product(from)), m.max(m.neg(product_of_all), 1.0));
    for (Value& x : open) x = m.select(m.map(ScalarOp::equal, x, m.like(x, -1)), rest, x);
  }
  const std::vector<Dim> read = c.importer().sizes().elements(
      c.builder().concat(open, 0), RuntimeSizes::Sign::size, std::string(c.node().inputs[1]));
  Shape shape;
  size_t next = 0;
  for (const std::optional<Dim>& d : given) shape.push_back(d ? *d : read[next++]);
  return shape;
}

void reshape(Call& c) {
  if (c.rank(1) != 1) c.fail("the shape is not a vector");
  const bool zero_copies = c.integer("allowzero", 0) == 0;
  if (const KnownTensor* known = c.known(1)) return reshape_to(c, known->values, zero_copies);
  if (!c.type(1).shape[0].is_constant()) c.unsupported("a number of dimensions that depends on the shapes");
  const std::vector<std::optional<Dim>> given = c.importer().sizes().followed(c.value(1));
  Shape target;
  if (std::ranges::all_of(given, [](const auto& d) { return d.has_value(); }))
    for (const auto& d : given) target.push_back(*d);
  else
    target = resolved_shape(c, given, zero_copies);
  reshape_to(c, std::move(target), zero_copies);
}

void reshape_by_attribute(Call& c) {
  const auto shape = c.integer_list("shape");
  if (!shape) c.fail("attribute 'shape' is missing");
  reshape_to(c, Shape(shape->begin(), shape->end()), true);
}

void flatten(Call& c) {
  const Shape from = c.type(0).shape;
  const int rank = static_cast<int>(from.size());
  int64_t axis = c.integer("axis", 1);
  if (axis < -rank || axis > rank) c.fail(fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
  if (axis < 0) axis += rank;
  const Shape rows(from.begin(), from.begin() + axis), columns(from.begin() + axis, from.end());
  c.set(c.builder().reshape(c.value(0), {product(rows), product(columns)}));
}

void squeeze(Call& c) {
  const Shape from = c.type(0).shape;
  const auto axes = c.axes(static_cast<int>(from.size()), 1);
  Shape to;
  for (size_t d = 0; d < from.size(); ++d) {
    if (axes && std::ranges::count(*axes, static_cast<int>(d)) > 0) {
      if (graph::never_one(from[d]))
        c.fail(fmt::format("dimension {} is {} and not 1", d, from[d].to_string()));
      continue;
    }
    if (!axes && from[d].is(1)) continue;
    if (!axes && !graph::never_one(from[d])) c.unsupported("dimensions whose being 1 depends on the shapes");
    to.push_back(from[d]);
  }
  c.set(c.builder().reshape(c.value(0), std::move(to)));
}

void unsqueeze(Call& c) {
  const Shape from = c.type(0).shape;
  const auto raw = c.integer_list("axes");
  if (!raw && !c.has(1)) c.fail("axes are missing");
  const size_t added = raw ? raw->size() : c.integers(1).size();
  const int rank = static_cast<int>(from.size() + added);
  const auto axes = c.axes(rank, 1);
  Shape to;
  size_t next = 0;
  for (int d = 0; d < rank; ++d) to.push_back(std::ranges::count(*axes, d) > 0 ? Dim(1) : from[next++]);
  c.set(c.builder().reshape(c.value(0), std::move(to)));
}

void transpose(Call& c) {
  const int rank = c.rank(0);
  std::vector<int> permutation = counting(0, rank);
  std::ranges::reverse(permutation);
  if (const auto given = c.integer_list("perm")) {
    permutation.clear();
    for (int64_t p : *given) permutation.push_back(c.axis(p, rank));
  }
  c.set(c.builder().transpose(c.value(0), std::move(permutation)));
}

void expand(Call& c) {
  if (c.rank(1) != 1) c.fail("the shape is not a vector");
  const Shape target = c.dims(1);
  for (const Dim& d : target)
    if (d.is_constant() && d.value() < 0)
      c.fail(fmt::format("a dimension of the new shape is {}", d.value()));
  c.set(c.builder().broadcast_to(c.value(0), graph::broadcast_shapes(c.type(0).shape, target)));
}

// Every dimension in two, the repetitions before it: [d] -> [1, d] -> [r, d] -> [r * d].
void tile_by(Call& c, const std::vector<Dim>& repeats) {
  const Shape from = c.type(0).shape;
  if (repeats.size() != from.size()) c.fail("there are not as many repeats as dimensions");
  Shape split, repeated, joined;
  for (size_t d = 0; d < from.size(); ++d) {
    if (repeats[d].is_constant() && repeats[d].value() < 0) c.fail("a number of repeats is negative");
    split.insert(split.end(), {Dim(1), from[d]});
    repeated.insert(repeated.end(), {repeats[d], from[d]});
    joined.push_back(repeats[d] * from[d]);
  }
  if (joined == from) return c.alias(0, 0);
  const Value parts = c.builder().reshape(c.value(0), std::move(split));
  c.set(c.builder().reshape(c.builder().broadcast_to(parts, repeated), std::move(joined)));
}

void tile(Call& c) { tile_by(c, c.dims(1)); }

// Version 1: one number of tiles along one axis.
void tile_axis(Call& c) {
  const std::vector<Dim> tiles = c.dims(1);
  const std::vector<int64_t> axis = c.integers(2);
  if (tiles.size() != 1 || axis.size() != 1) c.fail("tiles and axis are not one number each");
  std::vector<Dim> repeats(static_cast<size_t>(c.rank(0)), Dim(1));
  repeats[static_cast<size_t>(c.axis(axis[0], c.rank(0)))] = tiles[0];
  tile_by(c, repeats);
}

void concat(Call& c) {
  if (c.inputs() == 0) c.fail("there is nothing to join");
  const int64_t given = c.version() >= 4 ? c.required_integer("axis") : c.integer("axis", 1);
  const int axis = c.axis(given, c.rank(0));
  std::vector<Value> parts;
  for (size_t i = 0; i < c.inputs(); ++i) parts.push_back(c.value(i));
  c.set(c.builder().concat(std::move(parts), axis));
}

struct Blocks {
  Shape shape;
  int64_t size;
};
Blocks blocks_of(Call& c) {
  Blocks b{c.type(0).shape, c.required_integer("blocksize")};
  if (b.shape.size() != 4) c.fail("the operand has not four dimensions");
  if (b.size < 1) c.fail("the block size is less than 1");
  return b;
}

void depth_to_space(Call& c) {
  const auto [s, b] = blocks_of(c);
  const Dim depth = floor_div(s[1], Dim(b) * Dim(b));
  const std::string_view mode = c.string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") c.fail("attribute 'mode' is neither DCR nor CRD");
  const bool block_first = mode == "DCR";
  const Shape split =
      block_first ? Shape{s[0], b, b, depth, s[2], s[3]} : Shape{s[0], depth, b, b, s[2], s[3]};
  Value x = c.builder().reshape(c.value(0), split);
  x = c.builder().transpose(
      x, block_first ? std::vector<int>{0, 3, 4, 1, 5, 2} : std::vector<int>{0, 1, 4, 2, 5, 3});
  c.set(c.builder().reshape(x, {s[0], depth, s[2] * Dim(b), s[3] * Dim(b)}));
}

void space_to_depth(Call& c) {
  const auto [s, b] = blocks_of(c);
  const Dim height = floor_div(s[2], b), width = floor_div(s[3], b);
  Value x = c.builder().reshape(c.value(0), {s[0], s[1], height, b, width, b});
  const std::string_view mode = c.string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") c.fail("attribute 'mode' is neither DCR nor CRD");
  x = c.builder().transpose(
      x, mode == "DCR" ? std::vector<int>{0, 3, 5, 1, 2, 4} : std::vector<int>{0, 1, 3, 5, 2, 4});
  c.set(c.builder().reshape(x, {s[0], s[1] * Dim(b) * Dim(b), height, width}));
}

constexpr OpRow rows[] = {
    {"Concat", 1, newest, concat},
    {"DepthToSpace", 1, newest, depth_to_space},
    {"Dropout", 1, newest, dropout},
    {"Expand", 8, newest, expand},
    {"Flatten", 1, newest, flatten},
    {"Identity", 1, newest, identity},
    {"Reshape", 1, 4, reshape_by_attribute},
    {"Reshape", 5, newest, reshape},
    {"SpaceToDepth", 1, newest, space_to_depth},
    {"Squeeze", 1, newest, squeeze},
    {"Tile", 1, 5, tile_axis},
    {"Tile", 6, newest, tile},
    {"Transpose", 1, newest, transpose},
    {"Unsqueeze", 1, newest, unsqueeze},
};

}  // namespace

std::span<const OpRow> shape_ops() { return rows; }

}  // namespace fusewise::onnx

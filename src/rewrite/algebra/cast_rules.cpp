// Casts. A cast that rounds, wraps or saturates is never dropped: it is what the model asks for.
#include "numerics/error_bound.h"
#include "rewrite/algebra/rule.h"
#include "rewrite/match.h"

namespace fusewise::rewrite {

namespace {

using graph::Node;
using graph::Op;
using graph::Value;
using Result = std::optional<Value>;

// Whether a cast from one type to the other keeps every value.
bool keeps_all(DataType from, DataType to) {
  if (from == to || from == DataType::boolean) return true;
  if (to == DataType::boolean) return false;
  if (is_float(from)) {
    if (!is_float(to) || bits_of(to) <= bits_of(from)) return false;
    return true;  // float32 holds both half types, float64 all
  }
  const int magnitude = bits_of(from) - (is_signed(from) ? 1 : 0);
  if (is_float(to)) return magnitude <= significand_bits(to) && !(to == DataType::float16 && magnitude > 11);
  return (is_signed(to) || !is_signed(from)) && magnitude <= bits_of(to) - (is_signed(to) ? 1 : 0);
}

// Whether C(B(a)) = C(a) for every a of type A.
bool middle_changes_nothing(DataType a, DataType b, DataType c) {
  const bool whole = is_integer(a) && is_integer(b) && is_integer(c);
  if (whole && bits_of(c) <= bits_of(b)) return true;  // the low bits of the low bits
  if (!keeps_all(a, b)) return false;
  // An integer wraps on its way to a narrower one, a float saturates, and its way to a half type rounds once.
  const bool through_float = is_integer(a) && is_float(b);
  return !through_float || c == DataType::boolean || keeps_all(a, c);
}

// (A) x = x for x of type A
Result cast_to_same(Rebuilder& r, const Node& node) {
  const bool same = r.result().type(node.operands[0]).element == node.results[0].element;
  return same ? Result(node.operands[0]) : std::nullopt;
}

// (C) (B) x = (C) x where B loses nothing of x that C would keep
Result cast_of_cast(Rebuilder& r, const Node& node) {
  const Node* inner = map_of(r.result(), node.operands[0], ScalarOp::cast);
  if (!inner) return std::nullopt;
  const Value x = inner->operands[0];
  const DataType to = node.results[0].element;
  if (!middle_changes_nothing(r.result().type(x).element, inner->results[0].element, to)) return std::nullopt;
  r.also_from(inner->sources);
  return r.builder().cast(x, to);
}

constexpr AlgebraRule rows[] = {
    {"cast_to_same", Op::map, ScalarOp::cast, cast_to_same},
    {"cast_of_cast", Op::map, ScalarOp::cast, cast_of_cast},
};

}  // namespace

std::span<const AlgebraRule> cast_rules() { return rows; }

}  // namespace fusewise::rewrite

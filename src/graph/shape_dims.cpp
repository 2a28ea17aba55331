// What shape rules know about single dimensions, and about sizes.
#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "graph/shape_rules.h"

namespace fusewise::graph {

bool provably_different(const Dim& a, const Dim& b) {
  const Dim difference = a - b;
  const std::optional<int64_t> low = difference.lower_bound(), high = difference.upper_bound();
  return (low && *low > 0) || (high && *high < 0);
}

bool never_one(const Dim& a) { return provably_different(a, 1); }

Dim broadcast_dim(const Dim& a, const Dim& b) {
  if (a == b || b.is(1)) return a;
  if (a.is(1)) return b;
  const bool a_fixed = never_one(a), b_fixed = never_one(b);
  if (a_fixed && b_fixed && provably_different(a, b))
    throw UserError(fmt::format("dimensions {} and {} do not broadcast", a.to_string(), b.to_string()));
  if (a_fixed && (a.is_constant() || !b_fixed)) return a;
  if (b_fixed) return b;
  return max(a, b);
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.size(), b.size());
  Shape result(rank, Dim(1));
  for (size_t i = 0; i < rank; ++i) {  // from the last dimension
    const Dim x = i < a.size() ? a[a.size() - 1 - i] : Dim(1);
    const Dim y = i < b.size() ? b[b.size() - 1 - i] : Dim(1);
    try {
      result[rank - 1 - i] = broadcast_dim(x, y);
    } catch (const UserError&) {
      throw UserError(fmt::format("shapes {} and {} do not broadcast: {} against {}", to_string(a),
                                  to_string(b), x.to_string(), y.to_string()));
    }
  }
  return result;
}

int64_t static_count(const TensorType& type) {
  const Dim count = product(type.shape);
  if (!count.is_constant())
    throw UserError(fmt::format("the type {} has no constant number of elements", to_string(type)));
  return count.value();
}

int64_t static_bytes(const TensorType& type) {
  const int bits = bits_of(type.element);
  if (bits == 0)
    throw UserError(fmt::format("elements of type {} have no size in bytes", name_of(type.element)));
  const Dim bits_in_all = Dim(static_count(type)) * Dim(bits);  // checked for overflow
  return ceil_div(bits_in_all, 8).value();
}

bool holds(const Requirement& requirement, const SymbolValues& values) {
  const int64_t a = requirement.a.evaluate(values), b = requirement.b.evaluate(values);
  switch (requirement.kind) {
    case Requirement::Kind::equal:
      return a == b;
    case Requirement::Kind::equal_or_one:
      return a == b || a == 1;
    case Requirement::Kind::at_least:
      return a >= b;
  }
  throw InternalError("unknown kind of requirement");
}

std::string to_string(const Requirement& requirement) {
  const std::string a = requirement.a.to_string(), b = requirement.b.to_string();
  switch (requirement.kind) {
    case Requirement::Kind::equal:
      return fmt::format("{} == {}", a, b);
    case Requirement::Kind::equal_or_one:
      return fmt::format("{} == {} or {} == 1", a, b, a);
    case Requirement::Kind::at_least:
      return fmt::format("{} >= {}", a, b);
  }
  throw InternalError("unknown kind of requirement");
}

}  // namespace fusewise::graph

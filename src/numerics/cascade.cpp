#include "numerics/cascade.h"

#include <cmath>

namespace fusewise {

std::string_view name_of(CascadeIdentity identity) {
  switch (identity) {
#define CASCADE_IDENTITY(name, combine) \
  case CascadeIdentity::name:           \
    return #name;
#include "numerics/cascade_identities.def"
  }
  return {};
}

Combine reference_combine(CascadeIdentity identity) {
  switch (identity) {
#define CASCADE_IDENTITY(name, combine) \
  case CascadeIdentity::name:           \
    return Combine::combine;
#include "numerics/cascade_identities.def"
  }
  return Combine::sum;
}

CascadeRole cascade_role(ScalarOp op) {
  switch (op) {
#define CASCADE_ROLE(operation, role) \
  case ScalarOp::operation:           \
    return CascadeRole::role;
#include "numerics/cascade_identities.def"
    default:
      return CascadeRole::other;
  }
}

KnownRange range_of_literal(double value) { return {value >= 0, value > 0, std::isfinite(value)}; }

KnownRange range_after(CascadeRole role, KnownRange a, KnownRange b, bool same) {
  const bool none_negative = a.not_negative && b.not_negative;
  switch (role) {
    case CascadeRole::exponential:
      return {true, false, false};  // underflows to 0
    case CascadeRole::magnitude:
      return {true, a.apart, a.bounded};
    case CascadeRole::root:
      return a;
    case CascadeRole::sum:
      return {none_negative, none_negative && (a.apart || b.apart), a.bounded && b.bounded};
    case CascadeRole::greater:
      return {a.not_negative || b.not_negative, a.apart || b.apart, a.bounded && b.bounded};
    case CascadeRole::product:
      return {none_negative || same, false, a.bounded && b.bounded};
    case CascadeRole::quotient:
      return {none_negative, false, a.bounded && b.apart};
    default:
      return {};
  }
}

}  // namespace fusewise

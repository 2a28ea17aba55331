// The value of a scalar expression for several iterations of a loop at once (for vectorize).
#pragma once

#include <map>
#include <optional>
#include <unordered_map>

#include "kernel/kernel.h"

namespace fusewise::kernel {

// Thrown inside vectorize where a loop has to stay serial.
struct NotVectorizable {};

// What iterations base, base + stride, ... have as their value.
struct LaneValue {
  enum class Kind : uint8_t { uniform, affine, vector };
  Kind kind = Kind::uniform;
  ExprId expr = none;  // uniform: the scalar; affine: the scalar of the first lane; vector: the vector
  int64_t stride = 0;  // affine: from lane to lane
};

// Expressions for one group of `lanes` consecutive iterations, remembered per expression.
class LaneValues {
 public:
  LaneValues(Kernel& kernel, Builder& builder, int lanes)
      : kernel_(kernel), builder_(builder), lanes_(lanes) {}

  int lanes() const { return lanes_; }
  void define(VariableId variable, LaneValue value) { variables_[variable] = value; }
  // Loads under a condition that differs between lanes; none for no condition.
  void set_mask(ExprId vector_mask) {
    mask_ = vector_mask;
    known_.clear();
  }
  ExprId mask() const { return mask_; }
  LaneValue value(ExprId scalar);
  ExprId vector(ExprId scalar) { return to_vector(value(scalar)); }
  ExprId to_vector(const LaneValue& value);
  // The mask of the group and this scalar condition together.
  ExprId masked(ExprId condition);

 private:
  LaneValue compute(const Expr& expr);
  LaneValue apply(const Expr& expr, const LaneValue (&operands)[3]);
  LaneValue load(const Expr& expr, const LaneValue& index);
  std::optional<LaneValue> index_arithmetic(const Expr& expr, const LaneValue& a, const LaneValue& b);
  std::optional<LaneValue> division(const Expr& expr, const LaneValue& a, const LaneValue& b);
  std::optional<LaneValue> comparison(const Expr& expr, const LaneValue& a, const LaneValue& b);
  LaneValue vector_of(ExprId expr) { return {LaneValue::Kind::vector, expr, 0}; }
  Type widened(Type type) const { return {type.element, static_cast<uint16_t>(lanes_)}; }

  Kernel& kernel_;
  Builder& builder_;
  int lanes_;
  ExprId mask_ = none;
  std::map<VariableId, LaneValue> variables_;
  std::unordered_map<ExprId, LaneValue> known_;
};

}  // namespace fusewise::kernel

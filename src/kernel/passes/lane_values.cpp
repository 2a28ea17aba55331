#include "kernel/passes/lane_values.h"

#include "kernel/passes/loops.h"

namespace fusewise::kernel {

using Kind = LaneValue::Kind;

ExprId LaneValues::to_vector(const LaneValue& value) {
  if (value.kind == Kind::vector || lanes_ == 1) return value.expr;
  if (value.kind == Kind::uniform) return builder_.broadcast(value.expr, lanes_);
  return builder_.ramp(value.expr, value.stride, lanes_);
}

ExprId LaneValues::masked(ExprId condition) {
  const ExprId vector = condition == none ? none : this->vector(condition);
  if (mask_ == none || vector == none) return vector == none ? mask_ : vector;
  return builder_.logical_and(mask_, vector);
}

LaneValue LaneValues::value(ExprId scalar) {
  if (auto found = known_.find(scalar); found != known_.end()) return found->second;
  const Expr expr = kernel_.expr(scalar);
  if (expr.type.lanes != 1) throw NotVectorizable{};
  LaneValue result = compute(expr);
  if (result.kind == Kind::uniform && result.expr == none) result.expr = scalar;
  known_[scalar] = result;
  return result;
}

// A uniform result without an expression stands for "the expression as it is".
LaneValue LaneValues::compute(const Expr& expr) {
  if (expr.kind == ExprKind::constant || expr.kind == ExprKind::parameter) return {};
  if (expr.kind == ExprKind::read) {
    const auto found = variables_.find(static_cast<VariableId>(expr.value));
    return found == variables_.end() ? LaneValue{} : found->second;
  }
  LaneValue operands[3];
  const ExprId ids[3] = {expr.a, expr.b, expr.c};
  bool same = true;
  for (size_t i = 0; i < 3; ++i) {
    if (ids[i] == none) continue;
    operands[i] = value(ids[i]);
    same = same && operands[i].kind == Kind::uniform && operands[i].expr == ids[i];
  }
  if (expr.kind == ExprKind::load) {
    if (same && mask_ == none) return {};
    return load(expr, operands[0]);
  }
  if (same) return {};
  return apply(expr, operands);
}

LaneValue LaneValues::load(const Expr& expr, const LaneValue& index) {
  const BufferId buffer = static_cast<BufferId>(expr.value);
  const bool own_mask_is_uniform = expr.b == none || value(expr.b).kind == Kind::uniform;
  if (index.kind == Kind::uniform && own_mask_is_uniform && mask_ == none)
    return {Kind::uniform, builder_.load(buffer, index.expr, expr.b == none ? none : value(expr.b).expr), 0};
  return vector_of(builder_.load(buffer, to_vector(index), masked(expr.b)));
}

std::optional<LaneValue> LaneValues::index_arithmetic(const Expr& expr, const LaneValue& a,
                                                      const LaneValue& b) {
  if (expr.type != Type{DataType::int64, 1} || a.kind == Kind::vector || b.kind == Kind::vector)
    return std::nullopt;
  const auto affine = [&](ExprId base, int64_t stride) {
    return LaneValue{stride == 0 ? Kind::uniform : Kind::affine, base, stride};
  };
  switch (expr.op) {
    case ScalarOp::add:
      return affine(builder_.add(a.expr, b.expr), a.stride + b.stride);
    case ScalarOp::sub:
      return affine(builder_.sub(a.expr, b.expr), a.stride - b.stride);
    case ScalarOp::mul: {
      const LaneValue& scaled = a.kind == Kind::affine ? a : b;
      const LaneValue& scale = a.kind == Kind::affine ? b : a;
      if (scale.kind != Kind::uniform) return std::nullopt;
      const std::optional<int64_t> by = builder_.constant_value(scale.expr);
      if (!by && scaled.kind == Kind::affine) return std::nullopt;
      return affine(builder_.mul(a.expr, b.expr), by ? scaled.stride * *by : 0);
    }
    default:
      return std::nullopt;
  }
}

// A quotient that is the same in the first and the last lane is the same in all, and the rest follows the dividend.
std::optional<LaneValue> LaneValues::division(const Expr& expr, const LaneValue& a, const LaneValue& b) {
  if (expr.type != Type{DataType::int64, 1} || expr.kind != ExprKind::native) return std::nullopt;
  if (expr.native != Native::floor_div && expr.native != Native::floor_mod) return std::nullopt;
  if (a.kind != Kind::affine || b.kind != Kind::uniform) return std::nullopt;
  const ExprId last = builder_.add(a.expr, builder_.integer(a.stride * (lanes_ - 1)));
  const ExprId quotient = builder_.floor_div(a.expr, b.expr);
  if (quotient != builder_.floor_div(last, b.expr)) return std::nullopt;
  if (expr.native == Native::floor_div) return LaneValue{Kind::uniform, quotient, 0};
  return LaneValue{Kind::affine, builder_.floor_mod(a.expr, b.expr), a.stride};
}

// An order between an index and a scalar: the lanes on one side, the scalar distance on the other; and when the first
// and the last lane are known to agree, no vector at all.
std::optional<LaneValue> LaneValues::comparison(const Expr& expr, const LaneValue& a, const LaneValue& b) {
  if (expr.kind != ExprKind::apply || class_of(expr.op) != ScalarClass::compare) return std::nullopt;
  if (expr.b == none || kernel_.expr(expr.a).type.element != DataType::int64) return std::nullopt;
  if (a.kind == Kind::vector || b.kind == Kind::vector) return std::nullopt;
  if (a.kind == Kind::uniform && b.kind == Kind::uniform) return std::nullopt;
  // The difference of indices stays within 64 bits; that of data need not.
  if (contains_load(kernel_, a.expr) || contains_load(kernel_, b.expr)) return std::nullopt;
  const int64_t stride = a.stride - b.stride;
  if (expr.op == ScalarOp::less) {
    const ExprId far_a = builder_.add(a.expr, builder_.integer(a.stride * (lanes_ - 1)));
    const ExprId far_b = builder_.add(b.expr, builder_.integer(b.stride * (lanes_ - 1)));
    const auto first = builder_.constant_value(builder_.less(a.expr, b.expr));
    const auto last = builder_.constant_value(builder_.less(far_a, far_b));
    if (first && last && *first == *last) return LaneValue{Kind::uniform, builder_.boolean(*first != 0), 0};
  }
  const ExprId distance = builder_.sub(b.expr, a.expr);
  const ExprId lanes = builder_.ramp(builder_.integer(0), stride, lanes_);
  return vector_of(builder_.apply(expr.op, widened(expr.type), lanes, builder_.broadcast(distance, lanes_)));
}

LaneValue LaneValues::apply(const Expr& expr, const LaneValue (&operands)[3]) {
  if (lanes_ > 1) {
    if (expr.kind == ExprKind::apply)
      if (const auto result = index_arithmetic(expr, operands[0], operands[1])) return *result;
    if (const auto result = division(expr, operands[0], operands[1])) return *result;
    if (const auto result = comparison(expr, operands[0], operands[1])) return *result;
  }
  const ExprId ids[3] = {expr.a, expr.b, expr.c};
  bool uniform = true;
  for (size_t i = 0; i < 3; ++i) uniform = uniform && (ids[i] == none || operands[i].kind == Kind::uniform);
  const auto operand = [&](size_t i) {
    if (ids[i] == none) return none;
    return uniform ? operands[i].expr : to_vector(operands[i]);
  };
  const ExprId a = operand(0), b = operand(1), c = operand(2);
  const Type type = uniform ? expr.type : widened(expr.type);
  ExprId result = none;
  switch (expr.kind) {
    case ExprKind::apply:
      result = builder_.apply(expr.op, type, a, b, c);
      break;
    case ExprKind::native:
      result = builder_.native(expr.native, type, a, b);
      break;
    case ExprKind::fma:
      result = builder_.fma(a, b, c);
      break;
    case ExprKind::bitcast:
      result = builder_.bitcast(type, a);
      break;
    default:
      throw NotVectorizable{};
  }
  return {uniform ? Kind::uniform : Kind::vector, result, 0};
}

}  // namespace fusewise::kernel

#include "kernel/passes/expand_functions.h"

#include "kernel/visit.h"
#include "numerics/functions_impl.h"

namespace fusewise::kernel {
namespace {

// The arithmetic of numerics/functions.h that builds expressions, scalars or vectors.
template <bool wide>
class ExpressionArithmetic {
 public:
  using Value = ExprId;
  static constexpr bool is_double = wide;

  ExpressionArithmetic(Kernel& kernel, Builder& builder, uint16_t lanes)
      : kernel_(kernel),
        builder_(builder),
        float_{wide ? DataType::float64 : DataType::float32, lanes},
        integer_{wide ? DataType::int64 : DataType::int32, lanes},
        boolean_{DataType::boolean, lanes} {}

  ExprId constant(double value) { return builder_.floating(float_, value); }
  ExprId add(ExprId a, ExprId b) { return apply(ScalarOp::add, a, b); }
  ExprId sub(ExprId a, ExprId b) { return apply(ScalarOp::sub, a, b); }
  ExprId mul(ExprId a, ExprId b) { return apply(ScalarOp::mul, a, b); }
  ExprId div(ExprId a, ExprId b) { return apply(ScalarOp::div, a, b); }
  ExprId fma(ExprId a, ExprId b, ExprId c) { return builder_.fma(a, b, c); }
  ExprId neg(ExprId a) { return apply(ScalarOp::neg, a); }
  ExprId abs(ExprId a) { return apply(ScalarOp::abs, a); }
  ExprId sqrt(ExprId a) { return apply(ScalarOp::sqrt, a); }
  ExprId floor(ExprId a) { return apply(ScalarOp::floor, a); }
  ExprId trunc(ExprId a) { return apply(ScalarOp::trunc, a); }
  ExprId round(ExprId a) { return apply(ScalarOp::round, a); }
  ExprId max(ExprId a, ExprId b) { return apply(ScalarOp::max, a, b); }
  ExprId min(ExprId a, ExprId b) { return apply(ScalarOp::min, a, b); }
  ExprId copysign(ExprId magnitude, ExprId sign) {
    return builder_.native(Native::copysign, float_, magnitude, sign);
  }
  ExprId select(ExprId condition, ExprId a, ExprId b) {
    return builder_.apply(ScalarOp::select, kernel_.expr(a).type, condition, a, b);
  }
  ExprId less(ExprId a, ExprId b) { return compare(ScalarOp::less, a, b); }
  ExprId less_equal(ExprId a, ExprId b) { return compare(ScalarOp::less_equal, a, b); }
  ExprId equal(ExprId a, ExprId b) { return compare(ScalarOp::equal, a, b); }
  ExprId is_nan(ExprId a) { return builder_.apply(ScalarOp::is_nan, boolean_, a); }
  ExprId and_(ExprId a, ExprId b) { return compare(ScalarOp::and_, a, b); }
  ExprId or_(ExprId a, ExprId b) { return compare(ScalarOp::or_, a, b); }
  ExprId not_(ExprId a) { return builder_.apply(ScalarOp::not_, boolean_, a); }
  ExprId to_int(ExprId a) { return builder_.apply(ScalarOp::cast, integer_, a); }
  ExprId from_int(ExprId i) { return builder_.apply(ScalarOp::cast, float_, i); }
  ExprId int_constant(int64_t value) { return builder_.constant(integer_, value); }
  ExprId int_add(ExprId a, ExprId b) { return builder_.apply(ScalarOp::add, integer_, a, b); }
  ExprId int_sub(ExprId a, ExprId b) { return builder_.apply(ScalarOp::sub, integer_, a, b); }
  ExprId int_and(ExprId a, ExprId b) { return builder_.apply(ScalarOp::and_, integer_, a, b); }
  ExprId int_shift_left(ExprId a, int count) { return shift(Native::shift_left, a, count); }
  ExprId int_shift_right(ExprId a, int count) { return shift(Native::shift_right, a, count); }
  ExprId bits_to_float(ExprId a) { return builder_.bitcast(float_, a); }
  ExprId float_to_bits(ExprId a) { return builder_.bitcast(integer_, a); }

 private:
  ExprId apply(ScalarOp op, ExprId a, ExprId b = none) { return builder_.apply(op, float_, a, b); }
  ExprId compare(ScalarOp op, ExprId a, ExprId b) { return builder_.apply(op, boolean_, a, b); }
  ExprId shift(Native op, ExprId a, int count) {
    return builder_.native(op, integer_, a, builder_.constant(integer_, count));
  }

  Kernel& kernel_;
  Builder& builder_;
  Type float_, integer_, boolean_;
};

template <bool wide>
ExprId built(Kernel& kernel, Builder& builder, ScalarOp function, ExprId a, ExprId b) {
  ExpressionArithmetic<wide> arithmetic(kernel, builder, kernel.expr(a).type.lanes);
  return build_function(arithmetic, function, a, b == none ? a : b);
}

}  // namespace

Kernel expand_functions(Kernel kernel) {
  Builder builder = Builder::resume(kernel);
  Rewriter rewriter(kernel, builder, [&](ExprId, const Expr& expr) -> ExprId {
    if (expr.kind != ExprKind::apply || class_of(expr.op) != ScalarClass::function) return none;
    const Type type = expr.type;
    if (type.element == DataType::float64) return built<true>(kernel, builder, expr.op, expr.a, expr.b);
    const Type single = {DataType::float32, type.lanes};
    const auto in_single = [&](ExprId operand) {
      return operand == none ? none : builder.apply(ScalarOp::cast, single, operand);
    };
    const ExprId a = in_single(expr.a);
    const ExprId b = in_single(expr.b);
    return builder.apply(ScalarOp::cast, type, built<false>(kernel, builder, expr.op, a, b));
  });
  rewriter.rewrite_phases();
  return kernel;
}

}  // namespace fusewise::kernel

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "base/error.h"
#include "codegen/source/source_printer.h"
#include "kernel/visit.h"

namespace fusewise::codegen {

using kernel::Expr;
using kernel::ExprKind;
using kernel::Native;

namespace {

// The type's spelling, and the ending of the helpers about it.
struct TypeNames {
  DataType type;
  const char* spelling;
  const char* unsigned_spelling;  // of integers: where arithmetic wraps
  const char* ending;
};

constexpr TypeNames type_names[] = {
    {DataType::boolean, "uchar", nullptr, "u8"},   {DataType::int8, "char", "uchar", "i8"},
    {DataType::int16, "short", "ushort", "i16"},   {DataType::int32, "int", "uint", "i32"},
    {DataType::int64, "long", "ulong", "i64"},     {DataType::uint8, "uchar", "uchar", "u8"},
    {DataType::uint16, "ushort", "ushort", "u16"}, {DataType::uint32, "uint", "uint", "u32"},
    {DataType::uint64, "ulong", "ulong", "u64"},   {DataType::bfloat16, "ushort", nullptr, "bf16"},
    {DataType::float16, "ushort", nullptr, "f16"}, {DataType::float32, "float", nullptr, "f32"},
    {DataType::float64, "double", nullptr, "f64"},
};

const TypeNames& names_of(DataType type) {
  for (const TypeNames& names : type_names)
    if (names.type == type) return names;
  throw UnsupportedError("not supported yet: printed kernels on " + std::string(name_of(type)));
}

bool is_half(DataType type) { return type == DataType::float16 || type == DataType::bfloat16; }

}  // namespace

std::string SourcePrinter::type_name(DataType type) {
  if (type == DataType::float64) uses_double_ = true;
  return names_of(type).spelling;
}

// Constants, parameters, loop variables and sums of them: what is assumed not to leave 64 bits (kernel.h).
bool SourcePrinter::is_index(ExprId id) {
  if (id == kernel::none) return true;
  if (index_like_.size() < kernel_.exprs.size()) index_like_.resize(kernel_.exprs.size());
  if (index_like_[id] != 0) return index_like_[id] == 2;
  const Expr& expr = kernel_.expr(id);
  bool answer = expr.type == kernel::Type{DataType::int64, 1};
  switch (expr.kind) {
    case ExprKind::constant:
    case ExprKind::parameter:
      break;
    case ExprKind::read:
      answer = answer && !data_.contains(static_cast<kernel::VariableId>(expr.value));
      break;
    case ExprKind::apply:
    case ExprKind::native:
      answer =
          answer && expr.op != ScalarOp::cast && is_index(expr.a) && is_index(expr.b) && is_index(expr.c);
      break;
    default:
      answer = false;
  }
  index_like_[id] = answer ? 2 : 1;
  return answer;
}

void SourcePrinter::bind_shared(const kernel::Stmt& stmt, int indent) {
  std::map<ExprId, int> uses;
  std::vector<ExprId> inner_first;
  kernel::ExpressionVisitor visitor(kernel_);
  kernel::for_each_operand(stmt, [&](ExprId root) {
    ++uses[root];
    visitor.visit(root, [&](ExprId id) {
      inner_first.push_back(id);
      kernel::for_each_operand(kernel_.expr(id), [&](ExprId operand) { ++uses[operand]; });
    });
  });
  for (ExprId id : inner_first) {
    const ExprKind kind = kernel_.expr(id).kind;
    const bool is_leaf = kind == ExprKind::constant || kind == ExprKind::parameter || kind == ExprKind::read;
    if (is_leaf || uses[id] < 2) continue;
    const std::string text = expression(id);
    const std::string name = fmt::format("e{}", names_++);
    line(indent, fmt::format("const {} {} = {};", type_name(kernel_.expr(id).type.element), name, text));
    bound_[id] = name;
  }
}

std::string SourcePrinter::expression(ExprId id, int least_level) {
  if (const auto known = bound_.find(id); known != bound_.end()) return known->second;
  if (kernel_.expr(id).type.lanes != 1)
    throw UnsupportedError("not supported yet: vectors in printed source");
  const Text text = spelled(id);
  return text.level < least_level ? "(" + text.text + ")" : text.text;
}

SourcePrinter::Text SourcePrinter::spelled(ExprId id) {
  const Expr& expr = kernel_.expr(id);
  switch (expr.kind) {
    case ExprKind::constant:
      return constant(expr);
    case ExprKind::parameter:
      return {fmt::format("p{}", expr.value), primary};
    case ExprKind::read:
      return {variable(static_cast<kernel::VariableId>(expr.value)), primary};
    case ExprKind::apply:
      if (expr.op == ScalarOp::cast) return cast(expr);
      if (expr.op == ScalarOp::select)
        return {fmt::format("{} ? {} : {}", expression(expr.a, choice + 1), expression(expr.b, choice + 1),
                            expression(expr.c, choice)),
                choice};
      check(class_of(expr.op) != ScalarClass::function, "a scalar function reached printing unexpanded");
      if (kernel_.expr(expr.a).type.element == DataType::boolean) return apply_boolean(expr);
      if (is_float(kernel_.expr(expr.a).type.element)) return apply_float(expr);
      return apply_integer(expr, is_index(id));
    case ExprKind::native:
      return native(expr, is_index(id));
    case ExprKind::fma: {
      const DataType type = expr.type.element;
      if (is_half(type)) {
        uses_double_ = true;
        return call(fmt::format("fw_fma_{}", names_of(type).ending), {expr.a, expr.b, expr.c});
      }
      if (is_float(type)) return call("fma", {expr.a, expr.b, expr.c});
      const char* wide = names_of(type).unsigned_spelling;
      return {fmt::format("({0})(({1}){2} * ({1}){3} + ({1}){4})", type_name(type), wide,
                          expression(expr.a, unary), expression(expr.b, unary), expression(expr.c, unary)),
              unary};
    }
    case ExprKind::bitcast:
      if (type_name(expr.type.element) == type_name(kernel_.expr(expr.a).type.element))
        return {expression(expr.a, unary), unary};
      return call(fmt::format("as_{}", type_name(expr.type.element)), {expr.a});
    case ExprKind::load:
      return load(expr);
    case ExprKind::subgroup_reduce:
      throw UnsupportedError("not supported yet: sub-groups in printed source");
    case ExprKind::ramp:
    case ExprKind::broadcast:
    case ExprKind::shuffle:
      throw UnsupportedError("not supported yet: vectors in printed source");
  }
  throw InternalError("unknown expression");
}

// Floats are written in base 2, which says them exactly.
SourcePrinter::Text SourcePrinter::constant(const Expr& expr) {
  const int64_t bits = expr.value;
  switch (expr.type.element) {
    case DataType::float32: {
      const float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
      if (!std::isfinite(value))
        return {fmt::format("as_float(0x{:08x}u)", static_cast<uint32_t>(bits)), primary};
      if (value == std::trunc(value) && std::abs(value) < 1e6f)
        return {fmt::format("{:.1f}f", value), std::signbit(value) ? unary : primary};
      return {fmt::format("{:a}f", value), std::signbit(value) ? unary : primary};
    }
    case DataType::float64: {
      uses_double_ = true;
      const double value = std::bit_cast<double>(bits);
      if (!std::isfinite(value))
        return {fmt::format("as_double(0x{:016x}ul)", static_cast<uint64_t>(bits)), primary};
      return {fmt::format("{:a}", value), std::signbit(value) ? unary : primary};
    }
    case DataType::float16:
    case DataType::bfloat16:
      return {fmt::format("(ushort)0x{:04x}", static_cast<uint64_t>(bits) & 0xffff), unary};
    case DataType::int64:
      if (bits == INT64_MIN) return {"(-9223372036854775807L - 1)", primary};
      return {bits > INT32_MAX || bits < INT32_MIN ? fmt::format("{}L", bits) : fmt::format("{}", bits),
              bits < 0 ? unary : primary};
    case DataType::uint64:
      return {fmt::format("{}ul", static_cast<uint64_t>(bits)), primary};
    case DataType::uint32:
      return {fmt::format("{}u", static_cast<uint32_t>(bits)), primary};
    case DataType::boolean:
      return {bits != 0 ? "1" : "0", primary};
    default:
      if (bits == INT32_MIN) return {"(-2147483647 - 1)", primary};
      return {fmt::format("({}){}", type_name(expr.type.element), bits), unary};
  }
}

SourcePrinter::Text SourcePrinter::infix(const char* sign, int level, ExprId a, ExprId b) {
  return {fmt::format("{} {} {}", expression(a, level), sign, expression(b, level + 1)), level};
}

// C binds them more loosely than comparisons, which nobody remembers.
SourcePrinter::Text SourcePrinter::bitwise(const char* sign, int level, const Expr& expr) {
  return {fmt::format("{} {} {}", expression(expr.a, unary), sign, expression(expr.b, unary)), level};
}

SourcePrinter::Text SourcePrinter::call(const std::string& function, std::initializer_list<ExprId> operands) {
  std::string text;
  for (ExprId operand : operands) text += (text.empty() ? "" : ", ") + expression(operand);
  return {fmt::format("{}({})", function, text), primary};
}

SourcePrinter::Text SourcePrinter::wrapping(const char* sign, int, const Expr& expr) {
  const TypeNames& names = names_of(expr.type.element);
  return {fmt::format("({0})(({1}){2} {3} ({1}){4})", names.spelling, names.unsigned_spelling,
                      expression(expr.a, unary), sign, expression(expr.b, unary)),
          unary};
}

namespace {

// The signs of comparisons, which mean the same for all types.
struct Comparison {
  ScalarOp op;
  const char* sign;
  bool is_order;
};
constexpr Comparison comparisons[] = {
    {ScalarOp::equal, "==", false}, {ScalarOp::greater, ">", true},     {ScalarOp::greater_equal, ">=", true},
    {ScalarOp::less, "<", true},    {ScalarOp::less_equal, "<=", true}, {ScalarOp::not_equal, "!=", false},
};

const Comparison* comparison_of(ScalarOp op) {
  for (const Comparison& c : comparisons)
    if (c.op == op) return &c;
  return nullptr;
}

}  // namespace

// Bytes that are 0 or 1.
SourcePrinter::Text SourcePrinter::apply_boolean(const Expr& expr) {
  if (const Comparison* c = comparison_of(expr.op))
    return infix(c->sign, c->is_order ? order : equality, expr.a, expr.b);
  switch (expr.op) {
    case ScalarOp::and_:
    case ScalarOp::min:
      return bitwise("&", bit_and, expr);
    case ScalarOp::or_:
    case ScalarOp::max:
      return bitwise("|", bit_or, expr);
    case ScalarOp::xor_:
      return bitwise("^", bit_xor, expr);
    case ScalarOp::not_:
      return {"!" + expression(expr.a, unary), unary};
    case ScalarOp::is_nan:
    case ScalarOp::is_inf:
      return {"0", primary};
    default:
      throw InternalError(std::string(name_of(expr.op)) + " of booleans reached printing");
  }
}

SourcePrinter::Text SourcePrinter::apply_float(const Expr& expr) {
  const DataType type = kernel_.expr(expr.a).type.element;
  check(!is_half(type), "arithmetic on half types reached printing");
  if (const Comparison* c = comparison_of(expr.op))
    return infix(c->sign, c->is_order ? order : equality, expr.a, expr.b);
  const auto helper = [&] { return fmt::format("fw_{}_{}", name_of(expr.op), names_of(type).ending); };
  switch (expr.op) {
    case ScalarOp::add:
      return infix("+", sum, expr.a, expr.b);
    case ScalarOp::sub:
      return infix("-", sum, expr.a, expr.b);
    case ScalarOp::mul:
      return infix("*", product, expr.a, expr.b);
    case ScalarOp::div:
      return infix("/", product, expr.a, expr.b);
    case ScalarOp::neg:
      return {"-" + expression(expr.a, primary), unary};
    case ScalarOp::abs:
      return call("fabs", {expr.a});
    case ScalarOp::round:
      return call("rint", {expr.a});
    case ScalarOp::ceil:
    case ScalarOp::floor:
    case ScalarOp::sqrt:
    case ScalarOp::trunc:
      return call(std::string(name_of(expr.op)), {expr.a});
    case ScalarOp::remainder:
      return call("fmod", {expr.a, expr.b});
    case ScalarOp::is_inf:
    case ScalarOp::is_nan:
    case ScalarOp::sign:
      return call(helper(), {expr.a});
    case ScalarOp::max:
    case ScalarOp::min:
    case ScalarOp::mod:
      return call(helper(), {expr.a, expr.b});
    default:
      throw InternalError(std::string(name_of(expr.op)) + " of floats reached printing");
  }
}

SourcePrinter::Text SourcePrinter::apply_integer(const Expr& expr, bool index) {
  const DataType type = kernel_.expr(expr.a).type.element;
  if (const Comparison* c = comparison_of(expr.op))
    return infix(c->sign, c->is_order ? order : equality, expr.a, expr.b);
  const TypeNames& names = names_of(type);
  const auto helper = [&](std::string_view name) { return fmt::format("fw_{}_{}", name, names.ending); };
  switch (expr.op) {
    case ScalarOp::add:
      return index ? infix("+", sum, expr.a, expr.b) : wrapping("+", sum, expr);
    case ScalarOp::sub:
      return index ? infix("-", sum, expr.a, expr.b) : wrapping("-", sum, expr);
    case ScalarOp::mul:
      return index ? infix("*", product, expr.a, expr.b) : wrapping("*", product, expr);
    case ScalarOp::and_:
      return {
          fmt::format("({})({} & {})", names.spelling, expression(expr.a, unary), expression(expr.b, unary)),
          unary};
    case ScalarOp::or_:
      return {
          fmt::format("({})({} | {})", names.spelling, expression(expr.a, unary), expression(expr.b, unary)),
          unary};
    case ScalarOp::xor_:
      return {
          fmt::format("({})({} ^ {})", names.spelling, expression(expr.a, unary), expression(expr.b, unary)),
          unary};
    case ScalarOp::not_:
      return {fmt::format("({})~{}", names.spelling, expression(expr.a, unary)), unary};
    case ScalarOp::neg:
      return {fmt::format("({})(({})0 - ({}){})", names.spelling, names.unsigned_spelling,
                          names.unsigned_spelling, expression(expr.a, unary)),
              unary};
    case ScalarOp::ceil:
    case ScalarOp::floor:
    case ScalarOp::round:
    case ScalarOp::trunc:
      return {expression(expr.a, unary), unary};
    case ScalarOp::abs:
      if (!is_signed(type)) return {expression(expr.a, unary), unary};
      return call(helper("abs"), {expr.a});
    case ScalarOp::sign:
      if (!is_signed(type))
        return {fmt::format("({})({} != 0)", names.spelling, expression(expr.a, equality + 1)), unary};
      return call(helper("sign"), {expr.a});
    case ScalarOp::div:
      return call(helper("div"), {expr.a, expr.b});
    case ScalarOp::mod:
      return call(helper(is_signed(type) ? "mod" : "rem"), {expr.a, expr.b});
    case ScalarOp::remainder:
      return call(helper("rem"), {expr.a, expr.b});
    case ScalarOp::max:
      return call(helper("max"), {expr.a, expr.b});
    case ScalarOp::min:
      return call(helper("min"), {expr.a, expr.b});
    case ScalarOp::is_inf:
    case ScalarOp::is_nan:
      return {"0", primary};
    default:
      throw InternalError(std::string(name_of(expr.op)) + " of integers reached printing");
  }
}

// Rounds down; by a constant power of two it is a shift or a mask. An amount to shift by counts modulo the width.
SourcePrinter::Text SourcePrinter::native(const Expr& expr, bool) {
  const DataType type = expr.type.element;
  const TypeNames& names = names_of(type);
  if (expr.native == Native::copysign) return call("copysign", {expr.a, expr.b});
  const Expr& right = kernel_.expr(expr.b);
  const bool power = right.kind == ExprKind::constant && right.value > 0 &&
                     std::has_single_bit(static_cast<uint64_t>(right.value));
  const int log = power ? std::countr_zero(static_cast<uint64_t>(right.value)) : 0;
  const std::string mask = fmt::format("{}", bits_of(type) - 1);
  const std::string amount = right.kind == ExprKind::constant
                                 ? fmt::format("{}", right.value & (bits_of(type) - 1))
                                 : fmt::format("({} & {})", expression(expr.b, unary), mask);
  switch (expr.native) {
    case Native::floor_div:
      if (power)
        return {fmt::format("({})({} >> {})", names.spelling, expression(expr.a, unary), log), unary};
      return call(fmt::format("fw_{}_{}", is_signed(type) ? "floor_div" : "div", names.ending),
                  {expr.a, expr.b});
    case Native::floor_mod:
      if (power)
        return {fmt::format("({})({} & {})", names.spelling, expression(expr.a, unary), right.value - 1),
                unary};
      return call(fmt::format("fw_{}_{}", is_signed(type) ? "mod" : "rem", names.ending), {expr.a, expr.b});
    case Native::shift_left:
      return {fmt::format("({})(({}){} << {})", names.spelling, names.unsigned_spelling,
                          expression(expr.a, unary), amount),
              unary};
    case Native::shift_right:
      return {fmt::format("({})({} >> {})", names.spelling, expression(expr.a, unary), amount), unary};
    case Native::copysign:
      break;
  }
  throw InternalError("unknown native operation");
}

// As numerics' convert() says: saturating from float to integer, one rounding between floats, integers to the half
// types through float32.
SourcePrinter::Text SourcePrinter::cast(const Expr& expr) {
  const DataType from = kernel_.expr(expr.a).type.element, to = expr.type.element;
  if (from == to) return {expression(expr.a, unary), unary};
  if (from == DataType::float64) uses_double_ = true;
  const std::string spelling = type_name(to);
  const auto helper = [&](DataType a, DataType b) {
    return fmt::format("fw_{}_to_{}", names_of(a).ending, names_of(b).ending);
  };
  const auto wide = [&] {  // the operand, of a half type, as float32
    return fmt::format("{}({})", helper(from, DataType::float32), expression(expr.a));
  };
  if (to == DataType::boolean) {
    const std::string value = is_half(from) ? wide() : expression(expr.a, equality);
    return {fmt::format("{} != 0", value), equality};
  }
  if (is_half(from)) {
    if (to == DataType::float32) return {wide(), primary};
    if (to == DataType::float64) return {"(double)" + wide(), unary};
    return {fmt::format("{}({})", helper(DataType::float32, to), wide()), primary};
  }
  if (is_half(to)) {
    if (is_float(from)) return call(helper(from, to), {expr.a});
    return {fmt::format("{}((float){})", helper(DataType::float32, to), expression(expr.a, unary)), primary};
  }
  if (is_float(from) && !is_float(to)) return call(helper(from, to), {expr.a});
  return {fmt::format("({}){}", spelling, expression(expr.a, unary)), unary};
}

std::string SourcePrinter::element(uint32_t id, ExprId index) {
  return fmt::format("{}[{}]", buffer(id), expression(index));
}

// A load that is masked off touches nothing.
SourcePrinter::Text SourcePrinter::load(const Expr& expr) {
  const std::string value = element(static_cast<uint32_t>(expr.value), expr.a);
  if (expr.b == kernel::none) return {value, primary};
  const std::string zero = expr.type.element == DataType::float32 ? "0.0f" : "0";
  return {fmt::format("{} ? {} : {}", expression(expr.b, choice + 1), value, zero), choice};
}

}  // namespace fusewise::codegen

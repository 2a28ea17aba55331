#include <charconv>
#include <cmath>
#include <cstdlib>

#include "kernel/parser.h"
#include "kernel/text.h"

namespace fusewise::kernel {

// Operators of at least this level, left to right.
ExprId Parser::expression(int level) {
  if (++depth_ > deepest) fail("expressions are nested too deeply");
  ExprId left = primary();
  for (;;) {
    const Infix* infix = kind_ == Kind::sign ? infix_of(token_) : nullptr;
    if (!infix || infix->level < level) break;
    next();
    Expr e;
    e.kind = infix->kind;
    e.op = infix->op;
    e.native = infix->native;
    e.a = left;
    e.b = expression(infix->level + 1);
    left = operation(e, std::nullopt);
  }
  --depth_;
  return left;
}

ExprId Parser::operation(Expr e, std::optional<Type> stated) {
  if (!stated) stated = usual_type(kernel_, e);
  if (!stated)
    fail_behind(
        "the operation has no meaning for operands of these types; state a type as in name<type>(...)");
  e.type = *stated;
  return builder_.share(e);
}

ExprId Parser::float_constant(double value, Type type) {
  if (!is_float(type.element) || !is_computable(type.element))
    fail_behind("a number with a fraction needs a float type");
  return builder_.floating(type, value);
}

ExprId Parser::number() {
  const bool negative = accept("-");
  if (accept("inf")) {
    expect(":");
    return float_constant(negative ? -HUGE_VAL : HUGE_VAL, type());
  }
  if (kind_ != Kind::number) fail(fmt::format("expected a number, found '{}'", token_));
  const std::string digits = (negative ? "-" : "") + std::string(token_);
  if (digits.find_first_of(".eE") == std::string::npos) {
    int64_t value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (result.ec != std::errc() || result.ptr != digits.data() + digits.size())
      fail(fmt::format("'{}' is no 64-bit integer", digits));
    next();
    const Type stated = accept(":") ? type() : Type{};
    if (is_float(stated.element)) return float_constant(std::strtod(digits.c_str(), nullptr), stated);
    return constant_of(value, stated);
  }
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  if (*end != '\0') fail(fmt::format("'{}' is no number", digits));
  next();
  expect(":");
  return float_constant(value, type());
}

ExprId Parser::load(BufferId id) {
  Expr e;
  e.kind = ExprKind::load;
  e.value = id;
  expect("[");
  e.a = expression();
  if (accept("if")) e.b = expression();
  expect("]");
  e.type = {kernel_.buffers[id].element, kernel_.exprs[e.a].type.lanes};
  return builder_.share(e);
}

ExprId Parser::shuffle() {
  Expr e;
  e.kind = ExprKind::shuffle;
  e.a = expression();
  expect(",");
  if (!at("[")) {
    e.b = expression();
    expect(",");
  }
  expect("[");
  std::vector<int> lanes;
  while (!at("]")) {
    if (!lanes.empty()) expect(",");
    lanes.push_back(static_cast<int>(integer()));
  }
  expect("]");
  e.type = {kernel_.exprs[e.a].type.element, static_cast<uint16_t>(lanes.size())};
  size_t index = 0;
  while (index < kernel_.patterns.size() && kernel_.patterns[index] != lanes) ++index;
  if (index == kernel_.patterns.size()) kernel_.patterns.push_back(std::move(lanes));
  e.value = static_cast<int64_t>(index);
  return builder_.share(e);
}

// ramp, broadcast, shuffle, subgroup_reduce: what takes more than expressions.
ExprId Parser::vector_call(ExprKind kind) {
  if (kind == ExprKind::shuffle) return shuffle();
  Expr e;
  e.kind = kind;
  if (kind == ExprKind::subgroup_reduce) {
    const std::string combine = name("sum, product, max or min");
    constexpr std::string_view names[] = {"sum", "product", "max", "min"};
    while (e.value < 4 && names[e.value] != combine) ++e.value;
    if (e.value == 4) fail_behind(fmt::format("'{}' does not combine lanes", combine));
    expect(",");
    e.a = expression();
    e.type = kernel_.exprs[e.a].type;
    return builder_.share(e);
  }
  e.a = expression();
  expect(",");
  if (e.kind == ExprKind::ramp) {
    e.value = integer();
    expect(",");
  }
  const int64_t lanes = integer();
  if (lanes < 1 || lanes > UINT16_MAX) fail_behind("a vector has 1 to 65535 lanes");
  e.type = {kernel_.exprs[e.a].type.element, static_cast<uint16_t>(lanes)};
  return builder_.share(e);
}

ExprId Parser::call(const std::string& function) {
  std::optional<Type> stated;
  if (accept("<")) {
    stated = type();
    expect(">");
  }
  expect("(");
  ExprId result = none;
  if (function == "bits") {
    uint64_t bits = 0;
    const std::string digits(token_);
    if (stated) fail("the type of bits follows them");
    const bool is_hexadecimal = digits.starts_with("0x") && digits.size() > 2 && digits.size() <= 18;
    const char* const end = digits.data() + digits.size();
    if (!is_hexadecimal || std::from_chars(digits.data() + 2, end, bits, 16).ptr != end)
      fail(fmt::format("expected bits as 0x..., found '{}'", digits));
    next();
    expect(")");
    expect(":");
    return constant_of(static_cast<int64_t>(bits), type());
  }
  if (const auto kind = vector_call_of(function)) {
    result = vector_call(*kind);
    expect(")");
    return result;
  }
  Expr e;
  size_t count = 0, wanted = 0;
  for (ExprId* operand : {&e.a, &e.b, &e.c}) {
    if (at(")")) break;
    if (count++ > 0) expect(",");
    *operand = expression();
  }
  expect(")");
  if (const auto op = scalar_op_of(function)) {
    e.kind = ExprKind::apply;
    e.op = *op;
    wanted = static_cast<size_t>(arity_of(*op));
  } else if (const auto native = native_of(function)) {
    e.kind = ExprKind::native;
    e.native = *native;
    wanted = 2;
  } else if (function == "fma") {
    e.kind = ExprKind::fma;
    wanted = 3;
  } else if (function == "bitcast") {
    e.kind = ExprKind::bitcast;
    wanted = 1;
  } else {
    fail_behind(fmt::format("there is no function '{}'", function));
  }
  if (count != wanted) fail_behind(fmt::format("'{}' takes {} operands, not {}", function, wanted, count));
  return operation(e, stated);
}

ExprId Parser::primary() {
  if (accept("(")) {
    const ExprId inner = expression();
    expect(")");
    return inner;
  }
  if (kind_ == Kind::number || at("-") || at("inf")) return number();
  if (at("true") || at("false")) {
    const bool value = at("true");
    next();
    const Type stated = accept(":") ? type() : Type{DataType::boolean, 1};
    if (stated.element != DataType::boolean) fail_behind("true and false are booleans");
    return constant_of(value ? 1 : 0, stated);
  }
  if (kind_ == Kind::word && token_[0] == '#') {
    const auto found = bound_.find(token_);
    if (found == bound_.end()) fail_behind(fmt::format("'{}' is not bound before this statement", token_));
    next();
    return found->second;
  }
  const std::string word = name("an expression");
  const auto found = names_.find(word);
  // Functions are known by what follows, so that names and functions do not get into each other's way; a name
  // followed by '<' is compared, unless it is no name.
  if (at("(") || (at("<") && found == names_.end())) return call(word);
  if (found == names_.end()) fail_behind(fmt::format("'{}' is not defined", word));
  const uint32_t id = found->second.id;
  switch (found->second.meaning) {
    case Meaning::parameter:
      return builder_.parameter(static_cast<int>(id));
    case Meaning::variable:
      return builder_.read(id);
    case Meaning::buffer:
      return load(id);
  }
  fail("unreachable");
}

}  // namespace fusewise::kernel

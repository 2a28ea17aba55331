#include "kernel/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace fusewise::kernel {

namespace {

constexpr std::string_view native_names[] = {"copysign", "floor_div", "floor_mod", "shift_left",
                                             "shift_right"};
constexpr std::string_view loop_names[] = {"serial", "unrolled", "vector", "block", "thread", "lane"};
constexpr std::string_view scope_names[] = {"argument", "registers", "scratch", "shared"};

constexpr std::string_view keywords[] = {
    "alias",    "allocate", "at",     "barrier", "block",  "else",  "false",    "for",   "if",
    "in",       "inf",      "kernel", "lane",    "let",    "level", "mut",      "out",   "phase",
    "prefetch", "scratch",  "serial", "step",    "thread", "true",  "unrolled", "vector"};

template <class Enum, size_t Count>
std::optional<Enum> find_name(const std::string_view (&names)[Count], std::string_view name) {
  const auto found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names)) return std::nullopt;
  return static_cast<Enum>(found - std::begin(names));
}

constexpr Native any = Native::copysign;
constexpr ScalarOp no_op = ScalarOp::add;
constexpr Infix infixes[] = {
    {"|", 1, ExprKind::apply, ScalarOp::or_, any},
    {"^", 2, ExprKind::apply, ScalarOp::xor_, any},
    {"&", 3, ExprKind::apply, ScalarOp::and_, any},
    {"==", 4, ExprKind::apply, ScalarOp::equal, any},
    {"!=", 4, ExprKind::apply, ScalarOp::not_equal, any},
    {"<", 4, ExprKind::apply, ScalarOp::less, any},
    {"<=", 4, ExprKind::apply, ScalarOp::less_equal, any},
    {">", 4, ExprKind::apply, ScalarOp::greater, any},
    {">=", 4, ExprKind::apply, ScalarOp::greater_equal, any},
    {"+", 5, ExprKind::apply, ScalarOp::add, any},
    {"-", 5, ExprKind::apply, ScalarOp::sub, any},
    {"*", 6, ExprKind::apply, ScalarOp::mul, any},
    {"/", 6, ExprKind::apply, ScalarOp::div, any},
    {"//", 6, ExprKind::native, no_op, Native::floor_div},
    {"%", 6, ExprKind::native, no_op, Native::floor_mod},
};

}  // namespace

std::string to_string(Type type) {
  std::string text(fusewise::name_of(type.element));
  if (type.lanes != 1) text += "x" + std::to_string(type.lanes);
  return text;
}

std::optional<Type> type_of(std::string_view text) {
  if (const auto element = data_type_of(text)) return Type{*element, 1};
  const size_t mark = text.rfind('x');
  if (mark == std::string_view::npos) return std::nullopt;
  const auto element = data_type_of(text.substr(0, mark));
  uint16_t lanes = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data() + mark + 1, end, lanes);
  if (!element || result.ec != std::errc() || result.ptr != end || lanes < 2) return std::nullopt;
  return Type{*element, lanes};
}

std::string_view name_of(Native op) { return native_names[static_cast<size_t>(op)]; }
std::string_view name_of(LoopKind kind) { return loop_names[static_cast<size_t>(kind)]; }
std::string_view name_of(Scope scope) { return scope_names[static_cast<size_t>(scope)]; }
std::optional<Native> native_of(std::string_view name) { return find_name<Native>(native_names, name); }
std::optional<LoopKind> loop_kind_of(std::string_view name) { return find_name<LoopKind>(loop_names, name); }
std::optional<Scope> scope_of(std::string_view name) { return find_name<Scope>(scope_names, name); }

const Infix* infix_of(const Expr& expr) {
  for (const Infix& infix : infixes) {
    if (infix.kind != expr.kind) continue;
    if (expr.kind == ExprKind::apply ? infix.op == expr.op : infix.native == expr.native) return &infix;
  }
  return nullptr;
}

const Infix* infix_of(std::string_view sign) {
  const auto found = std::find_if(std::begin(infixes), std::end(infixes),
                                  [&](const Infix& infix) { return infix.sign == sign; });
  return found == std::end(infixes) ? nullptr : &*found;
}

bool is_keyword(std::string_view word) {
  return std::binary_search(std::begin(keywords), std::end(keywords), word);
}

std::optional<ExprKind> vector_call_of(std::string_view name) {
  constexpr std::pair<std::string_view, ExprKind> rows[] = {{"broadcast", ExprKind::broadcast},
                                                            {"ramp", ExprKind::ramp},
                                                            {"shuffle", ExprKind::shuffle},
                                                            {"subgroup_reduce", ExprKind::subgroup_reduce}};
  for (const auto& [text, kind] : rows)
    if (text == name) return kind;
  return std::nullopt;
}

bool is_reserved(std::string_view word) {
  return is_keyword(word) || scalar_op_of(word) || native_of(word) || vector_call_of(word) ||
         word == "bits" || word == "bitcast" || word == "fma";
}

std::optional<Type> usual_type(const Kernel& kernel, const Expr& expr) {
  if (expr.kind == ExprKind::native) return kernel.exprs[expr.a].type;
  if (expr.kind == ExprKind::fma) return kernel.exprs[expr.c].type;
  if (expr.kind != ExprKind::apply) return std::nullopt;
  std::array<DataType, 3> operands{};
  size_t count = 0;
  for (const ExprId operand : {expr.a, expr.b, expr.c})
    if (operand != none) operands[count++] = kernel.exprs[operand].type.element;
  const auto element = result_type_of(expr.op, {operands.data(), count});
  if (!element) return std::nullopt;
  return Type{*element, kernel.exprs[expr.a].type.lanes};
}

}  // namespace fusewise::kernel

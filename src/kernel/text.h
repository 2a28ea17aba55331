// Spellings that the printer and the parser of kernels share.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernel/kernel.h"

namespace fusewise::kernel {

// "float32", "float32x8".
std::string to_string(Type type);
std::optional<Type> type_of(std::string_view text);

std::string_view name_of(Native op);
std::string_view name_of(LoopKind kind);
std::string_view name_of(Scope scope);
std::optional<Native> native_of(std::string_view name);
std::optional<LoopKind> loop_kind_of(std::string_view name);
std::optional<Scope> scope_of(std::string_view name);

// Infix operators: the sign, how tightly it binds, and what it stands for.
struct Infix {
  std::string_view sign;
  int level;
  ExprKind kind;
  ScalarOp op;
  Native native;
};
const Infix* infix_of(const Expr& expr);  // null for what is written as a call
const Infix* infix_of(std::string_view sign);
inline constexpr int tightest_level = 7;

// What is written as a call with operands that are no expressions.
std::optional<ExprKind> vector_call_of(std::string_view name);

bool is_keyword(std::string_view word);
// Keywords and the names of functions: what no variable may be called.
bool is_reserved(std::string_view word);

// The type that an operation has unless the text says otherwise; nothing when there is no such type.
std::optional<Type> usual_type(const Kernel& kernel, const Expr& expr);

// One statement as text on one line or more, for messages; children are left out.
std::string statement_text(const Kernel& kernel, StmtId stmt);
std::string expression_text(const Kernel& kernel, ExprId expr);

}  // namespace fusewise::kernel

// The parser of kernel text; statements are in parse.cpp, expressions in parse_expressions.cpp.
#pragma once

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "kernel/kernel.h"

namespace fusewise::kernel {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), builder_(kernel_) { next(); }
  Kernel parse();

 private:
  static constexpr int deepest = 400;  // nesting of statements and expressions

  enum class Kind : uint8_t { end, word, number, sign };

  [[noreturn]] void fail(const std::string& message) const {
    throw UserError(fmt::format("kernel text, line {}: {}", token_line_, message));
  }
  // About what was read already: the next token may stand on a later line.
  [[noreturn]] void fail_behind(const std::string& message) const {
    throw UserError(fmt::format("kernel text, line {}: {}", last_line_, message));
  }
  void next();
  bool at(std::string_view text) const { return kind_ != Kind::end && token_ == text; }
  bool accept(std::string_view text) {
    if (!at(text)) return false;
    next();
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text)) fail(fmt::format("expected '{}', found '{}'", text, token_));
  }
  std::string name(std::string_view what);
  int64_t integer();
  Type type();
  DataType element();

  void header();
  void argument();
  StmtId phase();
  StmtId body();
  StmtId statement();
  StmtId loop();
  StmtId branch();
  StmtId declaration(bool is_mutable);
  StmtId allocation();
  StmtId alias();
  StmtId store_or_assign();
  void bindings();
  StmtId add(Stmt stmt) {
    kernel_.stmts.push_back(std::move(stmt));
    return static_cast<StmtId>(kernel_.stmts.size() - 1);
  }

  ExprId expression(int level = 0);
  ExprId primary();
  ExprId number();
  ExprId constant_of(int64_t bits, Type type) { return builder_.constant(type, bits); }
  ExprId float_constant(double value, Type type);
  ExprId call(const std::string& function);
  ExprId vector_call(ExprKind kind);
  ExprId shuffle();
  ExprId load(BufferId buffer);
  ExprId operation(Expr e, std::optional<Type> stated);
  BufferId buffer(std::string_view what);

  enum class Meaning : uint8_t { parameter, variable, buffer };
  struct Name {
    Meaning meaning;
    uint32_t id;
  };
  void define(const std::string& text, Name meaning) {
    if (!names_.emplace(text, meaning).second) fail_behind(fmt::format("'{}' is defined twice", text));
  }

  std::string_view text_;
  size_t position_ = 0;
  int line_ = 1;
  int token_line_ = 1;
  int last_line_ = 1;  // of the token before
  Kind kind_ = Kind::end;
  std::string_view token_;
  Kernel kernel_;
  Builder builder_;
  std::map<std::string, Name, std::less<>> names_;
  std::map<std::string, ExprId, std::less<>> bound_;
  int depth_ = 0;
};

}  // namespace fusewise::kernel

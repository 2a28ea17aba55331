// Parses what print.cpp prints. Expressions are taken as they are written, without simplification, so that
// text and kernel say the same.
#include <charconv>

#include "kernel/parser.h"
#include "kernel/text.h"

namespace fusewise::kernel {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void Parser::next() {
  last_line_ = token_line_;
  for (; position_ < text_.size(); ++position_) {
    const char c = text_[position_];
    if (c == '\n')
      ++line_;
    else if (text_.substr(position_).starts_with(";;")) {
      while (position_ + 1 < text_.size() && text_[position_ + 1] != '\n') ++position_;
    } else if (c != ' ' && c != '\t' && c != '\r')
      break;
  }
  token_line_ = line_;
  const size_t begin = position_;
  const auto peek = [&](size_t ahead = 0) {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  };
  if (position_ >= text_.size()) {
    kind_ = Kind::end;
    token_ = "end of text";
    return;
  }
  if (is_letter(peek()) || peek() == '#') {
    kind_ = Kind::word;
    ++position_;
    while (is_letter(peek()) || is_digit(peek())) ++position_;
  } else if (is_digit(peek())) {
    kind_ = Kind::number;
    while (is_digit(peek()) || is_letter(peek()) || (peek() == '.' && is_digit(peek(1)))) {
      const bool is_hexadecimal = text_.substr(begin).starts_with("0x");
      const bool is_exponent = !is_hexadecimal && (peek() == 'e' || peek() == 'E');
      ++position_;
      if (is_exponent && (peek() == '-' || peek() == '+')) ++position_;
    }
  } else {
    kind_ = Kind::sign;
    const std::string_view rest = text_.substr(position_);
    size_t length = 1;
    for (const std::string_view sign : {"==", "!=", "<=", ">=", "//", ".."})
      if (rest.starts_with(sign)) length = 2;
    position_ += length;
  }
  token_ = text_.substr(begin, position_ - begin);
}

std::string Parser::name(std::string_view what) {
  if (kind_ != Kind::word || is_keyword(token_) || token_[0] == '#')
    fail(fmt::format("expected {}, found '{}'", what, token_));
  std::string result(token_);
  next();
  return result;
}

int64_t Parser::integer() {
  const bool negative = accept("-");
  uint64_t value = 0;
  const char* const end = token_.data() + token_.size();
  const auto result =
      kind_ == Kind::number ? std::from_chars(token_.data(), end, value) : std::from_chars_result{};
  if (kind_ != Kind::number || result.ec != std::errc() || result.ptr != end)
    fail(fmt::format("expected an integer, found '{}'", token_));
  if (value > uint64_t{INT64_MAX} + (negative ? 1 : 0))
    fail(fmt::format("'{}' does not fit 64 bits", token_));
  next();
  return static_cast<int64_t>(negative ? 0 - value : value);
}

Type Parser::type() {
  const auto result = kind_ == Kind::word ? type_of(token_) : std::nullopt;
  if (!result) fail(fmt::format("expected a type, found '{}'", token_));
  next();
  return *result;
}

DataType Parser::element() {
  const Type result = type();
  if (result.lanes != 1) fail_behind("elements of buffers have no lanes");
  return result.element;
}

Kernel Parser::parse() {
  header();
  expect("{");
  while (!at("}")) kernel_.phases.push_back(phase());
  expect("}");
  if (kind_ != Kind::end) fail(fmt::format("nothing may follow the kernel, found '{}'", token_));
  return std::move(kernel_);
}

void Parser::header() {
  expect("kernel");
  // No other name can be mistaken for it, so it may be any word.
  if (kind_ != Kind::word) fail(fmt::format("expected a name for the kernel, found '{}'", token_));
  kernel_.name = std::string(token_);
  next();
  expect("(");
  while (!at(";") && !at(")")) {
    if (!kernel_.parameters.empty()) expect(",");
    const std::string parameter = name("a parameter");
    expect(":");
    expect("int64");
    define(parameter, {Meaning::parameter, static_cast<uint32_t>(kernel_.parameters.size())});
    kernel_.parameters.push_back(parameter);
  }
  if (accept(";")) {
    while (!at(")")) {
      if (!kernel_.buffers.empty()) expect(",");
      argument();
    }
  }
  expect(")");
  if (!at("scratch")) return;
  const size_t end = text_.find('{', position_);
  if (end == std::string_view::npos) fail("no body follows the scratch size");
  try {
    kernel_.scratch_bytes = Dim::parse(text_.substr(position_, end - position_));
  } catch (const UserError& error) {
    fail(error.what());
  }
  position_ = end;
  next();
}

void Parser::argument() {
  Buffer b;
  b.name = name("an argument");
  expect(":");
  b.element = element();
  if (accept("[")) {
    b.size = expression();
    expect("]");
  }
  if (accept("out"))
    b.written = true;
  else
    expect("in");
  if (accept("alias")) b.no_alias = false;
  define(b.name, {Meaning::buffer, static_cast<uint32_t>(kernel_.buffers.size())});
  kernel_.buffers.push_back(std::move(b));
}

void Parser::bindings() {
  bound_.clear();
  while (kind_ == Kind::word && token_[0] == '#') {
    const std::string bound(token_);
    next();
    expect("=");
    bound_[bound] = expression();
  }
}

StmtId Parser::phase() {
  bindings();
  if (!accept("phase")) return statement();
  return loop();
}

// Statements in braces; a single one stands for itself.
StmtId Parser::body() {
  if (++depth_ > deepest) fail("statements are nested too deeply");
  expect("{");
  Stmt block;
  while (!at("}")) {
    if (kind_ == Kind::end) fail("'}' is missing");
    bindings();
    block.children.push_back(statement());
  }
  expect("}");
  --depth_;
  return block.children.size() == 1 ? block.children[0] : add(std::move(block));
}

StmtId Parser::loop() {
  const auto kind = loop_kind_of(token_);
  if (!kind) fail(fmt::format("expected the kind of the loop, found '{}'", token_));
  next();
  const std::string variable = name("the variable of the loop");
  expect("in");
  Stmt stmt;
  stmt.kind = StmtKind::loop;
  stmt.loop = *kind;
  stmt.a = expression(1);
  expect("..");
  stmt.b = expression(1);
  stmt.value = accept("step") ? integer() : 1;
  if (stmt.value <= 0) fail_behind("the step of a loop must be positive");
  const auto known = names_.find(variable);
  if (known != names_.end() && known->second.meaning == Meaning::variable) {
    stmt.target = known->second.id;
  } else {
    stmt.target = builder_.variable(variable, {DataType::int64, 1});
    define(variable, {Meaning::variable, stmt.target});
  }
  stmt.children.push_back(body());
  return add(std::move(stmt));
}

StmtId Parser::branch() {
  Stmt stmt;
  stmt.kind = StmtKind::branch;
  stmt.a = expression();
  stmt.children.push_back(body());
  if (accept("else")) stmt.children.push_back(body());
  return add(std::move(stmt));
}

StmtId Parser::declaration(bool is_mutable) {
  const std::string variable = name("a variable");
  expect(":");
  const Type declared = type();
  expect("=");
  Stmt stmt;
  stmt.kind = is_mutable ? StmtKind::assign : StmtKind::let;
  stmt.a = expression();
  const auto known = names_.find(variable);
  if (known != names_.end() && known->second.meaning == Meaning::variable) {
    stmt.target = known->second.id;
    if (kernel_.variables[stmt.target].type != declared)
      fail_behind(fmt::format("'{}' has another type above", variable));
  } else {
    stmt.target = builder_.variable(variable, declared, is_mutable);
    define(variable, {Meaning::variable, stmt.target});
  }
  return add(std::move(stmt));
}

StmtId Parser::allocation() {
  Buffer b;
  b.name = name("a buffer");
  expect(":");
  b.element = element();
  expect("[");
  b.size = expression();
  expect("]");
  const auto scope = scope_of(token_);
  if (!scope || *scope == Scope::argument) fail(fmt::format("expected a scope, found '{}'", token_));
  next();
  b.scope = *scope;
  Stmt stmt;
  stmt.kind = StmtKind::allocate;
  const auto known = names_.find(b.name);
  if (known != names_.end() && known->second.meaning == Meaning::buffer) {
    stmt.target = known->second.id;
    const Buffer& before = kernel_.buffers[stmt.target];
    if (before.element != b.element || before.size != b.size || before.scope != b.scope)
      fail_behind(fmt::format("'{}' is something else above", b.name));
    return add(std::move(stmt));
  }
  stmt.target = static_cast<BufferId>(kernel_.buffers.size());
  define(b.name, {Meaning::buffer, stmt.target});
  kernel_.buffers.push_back(std::move(b));
  return add(std::move(stmt));
}

StmtId Parser::alias() {
  Buffer b;
  b.name = name("a buffer");
  expect(":");
  b.element = element();
  expect("=");
  Stmt stmt;
  stmt.kind = StmtKind::alias;
  const BufferId source = buffer("the buffer that is shifted");
  stmt.value = source;
  b.scope = kernel_.buffers[source].scope;
  b.written = kernel_.buffers[source].written;
  b.is_alias = true;
  expect("at");
  stmt.a = expression();
  const auto known = names_.find(b.name);
  if (known != names_.end() && known->second.meaning == Meaning::buffer) {
    stmt.target = known->second.id;
    if (!kernel_.buffers[stmt.target].is_alias)
      fail_behind(fmt::format("'{}' is something else above", b.name));
    return add(std::move(stmt));
  }
  stmt.target = static_cast<BufferId>(kernel_.buffers.size());
  define(b.name, {Meaning::buffer, stmt.target});
  kernel_.buffers.push_back(std::move(b));
  return add(std::move(stmt));
}

BufferId Parser::buffer(std::string_view what) {
  const std::string text = name(what);
  const auto found = names_.find(text);
  if (found == names_.end() || found->second.meaning != Meaning::buffer)
    fail_behind(fmt::format("there is no buffer '{}'", text));
  return found->second.id;
}

StmtId Parser::store_or_assign() {
  const std::string target = name("a statement");
  const auto found = names_.find(target);
  if (found == names_.end()) fail_behind(fmt::format("'{}' is not defined", target));
  Stmt stmt;
  stmt.target = found->second.id;
  if (found->second.meaning == Meaning::buffer) {
    stmt.kind = StmtKind::store;
    expect("[");
    stmt.a = expression();
    if (accept("if")) stmt.c = expression();
    expect("]");
    expect("=");
    stmt.b = expression();
  } else {
    if (found->second.meaning != Meaning::variable)
      fail_behind(fmt::format("'{}' cannot be assigned", target));
    stmt.kind = StmtKind::assign;
    expect("=");
    stmt.a = expression();
  }
  return add(std::move(stmt));
}

StmtId Parser::statement() {
  if (at("{")) {
    const StmtId inner = body();
    if (kernel_.stmts[inner].kind == StmtKind::block) return inner;
    Stmt block;
    block.children.push_back(inner);
    return add(std::move(block));
  }
  if (accept("for")) return loop();
  if (accept("if")) return branch();
  if (accept("let")) return declaration(false);
  if (accept("mut")) return declaration(true);
  if (accept("allocate")) return allocation();
  if (accept("alias")) return alias();
  if (accept("barrier")) {
    Stmt stmt;
    stmt.kind = StmtKind::barrier;
    return add(std::move(stmt));
  }
  if (accept("prefetch")) {
    Stmt stmt;
    stmt.kind = StmtKind::prefetch;
    stmt.target = buffer("a buffer");
    expect("[");
    stmt.a = expression();
    expect("]");
    expect("level");
    stmt.value = integer();
    return add(std::move(stmt));
  }
  return store_or_assign();
}

Kernel parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace fusewise::kernel

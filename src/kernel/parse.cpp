// Parses what print.cpp prints. Expressions are taken as they are written, without simplification, so that
// text and kernel say the same.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>

#include "base/error.h"
#include "kernel/evaluate.h"
#include "kernel/text.h"

namespace fusewise::kernel {

namespace {

constexpr int deepest = 400;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), builder_(kernel_) { next(); }
  Kernel parse();

 private:
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
  ExprId vector_call(const std::string& function);
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
  int last_line_ = 1;   // of the token before
  Kind kind_ = Kind::end;
  std::string_view token_;
  Kernel kernel_;
  Builder builder_;
  std::map<std::string, Name, std::less<>> names_;
  std::map<std::string, ExprId, std::less<>> bound_;
  int depth_ = 0;
};

void Parser::next() {
  last_line_ = token_line_;
  for (; position_ < text_.size(); ++position_) {
    const char c = text_[position_];
    if (c == '\n') ++line_;
    else if (text_.substr(position_).starts_with(";;")) {
      while (position_ + 1 < text_.size() && text_[position_ + 1] != '\n') ++position_;
    } else if (c != ' ' && c != '\t' && c != '\r') break;
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
  const auto result = kind_ == Kind::number ? std::from_chars(token_.data(), end, value) : std::from_chars_result{};
  if (kind_ != Kind::number || result.ec != std::errc() || result.ptr != end)
    fail(fmt::format("expected an integer, found '{}'", token_));
  if (value > uint64_t{INT64_MAX} + (negative ? 1 : 0)) fail(fmt::format("'{}' does not fit 64 bits", token_));
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
  if (accept("out")) b.written = true;
  else expect("in");
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
    if (kernel_.variables[stmt.target].type != declared) fail_behind(fmt::format("'{}' has another type above", variable));
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
    if (!kernel_.buffers[stmt.target].is_alias) fail_behind(fmt::format("'{}' is something else above", b.name));
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
    if (found->second.meaning != Meaning::variable) fail_behind(fmt::format("'{}' cannot be assigned", target));
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
  if (!stated) fail_behind("the operation has no meaning for operands of these types; state a type as in name<type>(...)");
  e.type = *stated;
  return builder_.share(e);
}

ExprId Parser::float_constant(double value, Type type) {
  if (!is_float(type.element) || !is_computable(type.element)) fail_behind("a number with a fraction needs a float type");
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
ExprId Parser::vector_call(const std::string& function) {
  Expr e;
  if (function == "shuffle") return shuffle();
  if (function == "subgroup_reduce") {
    e.kind = ExprKind::subgroup_reduce;
    const std::string combine = name("sum, product, max or min");
    constexpr std::string_view names[] = {"sum", "product", "max", "min"};
    while (e.value < 4 && names[e.value] != combine) ++e.value;
    if (e.value == 4) fail_behind(fmt::format("'{}' does not combine lanes", combine));
    expect(",");
    e.a = expression();
    e.type = kernel_.exprs[e.a].type;
    return builder_.share(e);
  }
  e.kind = function == "ramp" ? ExprKind::ramp : ExprKind::broadcast;
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
  if (function == "ramp" || function == "broadcast" || function == "shuffle" || function == "subgroup_reduce") {
    result = vector_call(function);
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

}  // namespace

Kernel parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace fusewise::kernel

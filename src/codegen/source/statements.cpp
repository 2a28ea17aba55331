#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "codegen/source/source_printer.h"
#include "kernel/sizes.h"
#include "kernel/visit.h"

namespace fusewise::codegen {

using kernel::LoopKind;
using kernel::Scope;
using kernel::Stmt;
using kernel::StmtKind;

SourcePrinter::SourcePrinter(const kernel::Kernel& kernel, const Dialect& dialect)
    : kernel_(kernel), dialect_(dialect), sources_(kernel.buffers.size()) {
  for (uint32_t i = 0; i < sources_.size(); ++i) sources_[i] = i;
  for (const Stmt& stmt : kernel.stmts)
    if (stmt.kind == StmtKind::alias) sources_[stmt.target] = static_cast<uint32_t>(stmt.value);
}

void SourcePrinter::line(int indent, const std::string& text) {
  out_.append(static_cast<size_t>(indent) * 2, ' ');
  out_ += text;
  out_ += '\n';
}

std::string SourcePrinter::variable(kernel::VariableId id) const {
  return fmt::format("{}_{}", kernel_.variables[id].name, id);
}

std::string SourcePrinter::buffer(uint32_t id) const {
  const kernel::Buffer& about = kernel_.buffers[id];
  const bool is_argument = about.scope == Scope::argument && !about.is_alias;
  return is_argument ? fmt::format("a{}", id) : fmt::format("{}_{}", about.name, id);
}

// The threads of a phase, what they share, and which variables hold data. Variables are settled when nothing changes
// any more, because a loop can carry data back to where it is read first.
void SourcePrinter::collect(StmtId id, bool in_threads) {
  const Stmt& stmt = kernel_.stmt(id);
  if (stmt.kind == StmtKind::loop && stmt.loop == LoopKind::lane)
    throw UnsupportedError("not supported yet: sub-groups in printed source");
  if (stmt.kind == StmtKind::loop && stmt.loop == LoopKind::thread) {
    const kernel::Expr& begin = kernel_.expr(stmt.a);
    const kernel::Expr& end = kernel_.expr(stmt.b);
    const bool is_plain = !in_threads && begin.kind == kernel::ExprKind::constant && begin.value == 0 &&
                          end.kind == kernel::ExprKind::constant && end.value > 0 && stmt.value == 1 &&
                          (threads_ == 0 || threads_ == end.value);
    if (!is_plain)
      throw UnsupportedError("not supported yet: loops over different numbers of threads in printed source");
    threads_ = end.value;
    in_threads = true;
  }
  if (stmt.kind == StmtKind::allocate && kernel_.buffers[stmt.target].scope == Scope::shared) {
    if (in_threads) throw InternalError("memory that threads share is allocated by one of them");
    shared_.push_back(stmt.target);
  }
  if ((stmt.kind == StmtKind::let || stmt.kind == StmtKind::assign) && !is_index(stmt.a) &&
      data_.insert(stmt.target).second)
    index_like_.clear();
  for (StmtId child : stmt.children) collect(child, in_threads);
}

std::string SourcePrinter::signature(size_t index) {
  std::string text;
  for (uint32_t i = 0; i < static_cast<uint32_t>(kernel_.argument_count()); ++i) {
    const kernel::Buffer& about = kernel_.buffers[i];
    text += fmt::format("{}{} {}{}* {} a{}", text.empty() ? "" : ", ", dialect_.global_memory,
                        about.written ? "" : "const ", type_name(about.element),
                        about.no_alias ? dialect_.restrict_ : "", i);
  }
  for (size_t i = 0; i < kernel_.parameters.size(); ++i)
    text += fmt::format("{}long p{}", text.empty() ? "" : ", ", i);
  return fmt::format("{} void {}_p{}({})", dialect_.kernel, kernel_.name, index, text);
}

std::string SourcePrinter::phase(size_t index, Launch& launch) {
  const Stmt& grid = kernel_.stmt(kernel_.phases[index]);
  check(grid.kind == StmtKind::loop && grid.loop == LoopKind::block, "a phase is not a loop over blocks");
  for (size_t before = SIZE_MAX; before != data_.size();) {
    before = data_.size();
    threads_ = 0;
    shared_.clear();
    collect(grid.children[0], false);
  }
  launch.function = fmt::format("{}_p{}", kernel_.name, index);
  launch.threads = static_cast<int>(std::max<int64_t>(threads_, 1));
  const Dim extent = kernel::size_of(kernel_, grid.b) - kernel::size_of(kernel_, grid.a);
  launch.blocks = ceil_div(extent, Dim(grid.value));

  line(0, fmt::format(fmt::runtime(dialect_.group_size_before), launch.threads));
  line(0, signature(index) + " {");
  for (uint32_t id : shared_) {
    const std::optional<int64_t> size = kernel::size_of(kernel_, kernel_.buffers[id].size).constant();
    if (!size)
      throw UnsupportedError(
          "not supported yet: memory that threads share, of a size known at run time only");
    const DataType element = kernel_.buffers[id].element;
    launch.shared += std::max<int64_t>(*size, 1) * bytes_of(element);
    line(1, fmt::format("{} {} {}[{}];", dialect_.shared_memory, type_name(element), buffer(id),
                        std::max<int64_t>(*size, 1)));
  }
  bind_shared(grid, 1);
  const std::string block = variable(grid.target);
  const std::string step = grid.value == 1 ? "" : fmt::format(" * {}", grid.value);
  const std::string begin =
      kernel_.expr(grid.a).kind == kernel::ExprKind::constant && kernel_.expr(grid.a).value == 0
          ? ""
          : expression(grid.a, sum) + " + ";
  line(1, fmt::format("const long {} = {}{}{};", block, begin, dialect_.group, step));
  scope(grid.children[0], 1);
  line(0, "}");
  return std::move(out_);
}

bool SourcePrinter::has_threads(StmtId id) const {
  const Stmt& stmt = kernel_.stmt(id);
  if (stmt.kind == StmtKind::loop && stmt.loop == LoopKind::thread) return true;
  return std::any_of(stmt.children.begin(), stmt.children.end(), [&](StmtId c) { return has_threads(c); });
}

// The statements of a body, whose own declarations end with it. All threads go on together behind a loop over them,
// where something comes behind it.
void SourcePrinter::scope(StmtId id, int indent) {
  const auto outer = declared_;
  const Stmt& stmt = kernel_.stmt(id);
  if (stmt.kind == StmtKind::block) {
    bool unmet = false;  // threads of a loop above have not met yet
    for (StmtId child : stmt.children) {
      if (unmet) line(indent, fmt::format("{};", dialect_.barrier));
      unmet = !in_threads_ && has_threads(child);
      statement(child, indent);
    }
  } else {
    statement(id, indent);
  }
  declared_ = outer;
}

void SourcePrinter::statement(StmtId id, int indent) {
  const Stmt& stmt = kernel_.stmt(id);
  bound_.clear();
  if (stmt.kind != StmtKind::allocate) bind_shared(stmt, indent);
  switch (stmt.kind) {
    case StmtKind::block:
      line(indent, "{");
      scope(id, indent + 1);
      line(indent, "}");
      return;
    case StmtKind::loop:
      return stmt.loop == LoopKind::thread ? thread_loop(stmt, indent) : loop(stmt, indent);
    case StmtKind::branch:
      line(indent, fmt::format("if ({}) {{", expression(stmt.a)));
      scope(stmt.children[0], indent + 1);
      if (stmt.children.size() > 1) {
        line(indent, "} else {");
        scope(stmt.children[1], indent + 1);
      }
      line(indent, "}");
      return;
    case StmtKind::let:
      line(indent, fmt::format("const {} {} = {};", type_name(kernel_.variables[stmt.target].type.element),
                               variable(stmt.target), expression(stmt.a)));
      return;
    case StmtKind::assign:
      return assign(stmt, indent);
    case StmtKind::allocate:
      return allocate(stmt, indent);
    case StmtKind::alias:
      return alias(stmt, indent);
    case StmtKind::store:
      return store(stmt, indent);
    case StmtKind::barrier:
      line(indent, fmt::format("{};", dialect_.barrier));
      return;
    case StmtKind::prefetch:  // a hint, and GPUs take none
      return;
  }
  throw InternalError("unknown statement");
}

// The bounds are those at the loop's beginning.
void SourcePrinter::loop(const Stmt& stmt, int indent) {
  const std::string counter = variable(stmt.target);
  const kernel::ExprKind kind = kernel_.expr(stmt.b).kind;
  const std::string begin = expression(stmt.a);
  std::string end = expression(stmt.b, shift);
  const bool is_simple = kind == kernel::ExprKind::constant || kind == kernel::ExprKind::parameter;
  if (!is_simple) {
    const std::string name = counter + "_end";
    line(indent, "{");
    line(++indent, fmt::format("const long {} = {};", name, end));
    end = name;
  }
  const std::string step = stmt.value == 1 ? "++" + counter : fmt::format("{} += {}", counter, stmt.value);
  line(indent, fmt::format("for (long {0} = {1}; {0} < {2}; {3}) {{", counter, begin, end, step));
  scope(stmt.children[0], indent + 1);
  if (!in_threads_ && has_threads(stmt.children[0])) line(indent + 1, fmt::format("{};", dialect_.barrier));
  line(indent, "}");
  if (!is_simple) line(--indent, "}");
}

void SourcePrinter::thread_loop(const Stmt& stmt, int indent) {
  line(indent, "{");
  line(indent + 1, fmt::format("const long {} = {};", variable(stmt.target), dialect_.thread));
  in_threads_ = true;
  scope(stmt.children[0], indent + 1);
  in_threads_ = false;
  line(indent, "}");
}

void SourcePrinter::assign(const Stmt& stmt, int indent) {
  const bool is_first = declared_.insert(stmt.target).second;
  const std::string type =
      is_first ? type_name(kernel_.variables[stmt.target].type.element) + " " : std::string();
  line(indent, fmt::format("{}{} = {};", type, variable(stmt.target), expression(stmt.a)));
}

// What is private to a thread is an array of its own; what threads share has been declared at the beginning.
void SourcePrinter::allocate(const Stmt& stmt, int indent) {
  const kernel::Buffer& about = kernel_.buffers[stmt.target];
  if (about.scope == Scope::shared) return;
  const std::optional<int64_t> size = kernel::size_of(kernel_, about.size).constant();
  if (!size)
    throw UnsupportedError(
        "not supported yet: private memory of a size known at run time only, in printed source");
  constexpr int64_t most_private_bytes = 4096;
  if (*size * bytes_of(about.element) > most_private_bytes)
    throw UnsupportedError(fmt::format("not supported yet: {} bytes of private memory in printed source",
                                       *size * bytes_of(about.element)));
  if (!in_threads_ && threads_ > 0 && about.scope == Scope::scratch)
    throw UnsupportedError("not supported yet: private memory of a whole group in printed source");
  line(indent,
       fmt::format("{} {}[{}];", type_name(about.element), buffer(stmt.target), std::max<int64_t>(*size, 1)));
}

std::string SourcePrinter::address_space(uint32_t id) const {
  while (sources_[id] != id) id = sources_[id];
  const kernel::Buffer& about = kernel_.buffers[id];
  if (about.scope == Scope::argument)
    return fmt::format("{} {}", dialect_.global_memory, about.written ? "" : "const ");
  return about.scope == Scope::shared ? fmt::format("{} ", dialect_.shared_memory) : std::string();
}

void SourcePrinter::alias(const Stmt& stmt, int indent) {
  const auto source = static_cast<uint32_t>(stmt.value);
  line(indent,
       fmt::format("{}{}* {} = {} + {};", address_space(source), type_name(kernel_.buffers[source].element),
                   buffer(stmt.target), buffer(source), expression(stmt.a, product)));
}

void SourcePrinter::store(const Stmt& stmt, int indent) {
  const std::string mask = stmt.c == kernel::none ? "" : fmt::format("if ({}) ", expression(stmt.c));
  line(indent, fmt::format("{}{} = {};", mask, element(stmt.target, stmt.a), expression(stmt.b)));
}

}  // namespace fusewise::codegen

// Prints kernels. Expressions stand inline; a statement whose expressions would be long or deep when written
// out is preceded by lines `#0 = ...` that name what it uses more than once.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "base/error.h"
#include "kernel/evaluate.h"
#include "kernel/text.h"
#include "kernel/visit.h"

namespace fusewise::kernel {

namespace {

// Written out, a statement of more nodes than this gets names for what is shared.
constexpr double longest_inline = 300;
// At every so many levels a tall expression is named, so that no reader needs deep recursion.
constexpr int height_step = 64;

bool is_identifier(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (const char c : text) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!fine) return false;
  }
  return true;
}

bool is_argument(const Buffer& buffer) { return buffer.scope == Scope::argument && !buffer.is_alias; }

class Printer {
 public:
  explicit Printer(const Kernel& kernel)
      : kernel_(kernel),
        variables_(kernel.variables.size()),
        buffers_(kernel.buffers.size()),
        assigned_(kernel.variables.size()) {
    for (size_t i = 0; i < kernel.parameters.size(); ++i) parameters_.push_back(fresh(kernel.parameters[i]));
    for (size_t i = 0; i < kernel.buffers.size(); ++i)
      if (is_argument(kernel.buffers[i])) buffer(i);
  }

  std::string kernel();
  std::string statement(StmtId id);
  std::string expression(ExprId id) { return text(id, 0); }

 private:
  std::string fresh(const std::string& wish);
  const std::string& variable(size_t id);
  const std::string& buffer(size_t id);
  std::string header();
  void print(StmtId id, int indent);
  void print_children(StmtId id, int indent);
  void line(int indent, const std::string& text) {
    out_.append(static_cast<size_t>(indent) * 2, ' ') += text + "\n";
  }
  void bind(const Stmt& stmt, int indent);
  std::string head(const Stmt& stmt);
  std::string loop_head(const Stmt& stmt);
  std::string text(ExprId id, int level);
  std::string plain(const Expr& e, int level);
  std::string call(const Expr& e, std::string_view name);
  std::string constant(const Expr& e);
  std::string indexed(size_t target, ExprId index, ExprId mask);

  const Kernel& kernel_;
  std::set<std::string, std::less<>> taken_;
  std::vector<std::string> parameters_, variables_, buffers_;
  std::vector<bool> assigned_;
  std::unordered_map<ExprId, std::string> bound_;
  std::string out_;
};

std::string Printer::fresh(const std::string& wish) {
  std::string name = wish.empty() ? "v" : wish;
  for (char& c : name)
    if (!is_identifier("_" + std::string(1, c))) c = '_';
  if (!is_identifier(name)) name = "_" + name;
  if (is_reserved(name)) name += "_";
  std::string candidate = name;
  for (int i = 2; !taken_.insert(candidate).second; ++i) candidate = fmt::format("{}_{}", name, i);
  return candidate;
}

const std::string& Printer::variable(size_t id) {
  static const std::string unknown = "unknown";
  if (id >= variables_.size()) return unknown;
  if (variables_[id].empty()) variables_[id] = fresh(kernel_.variables[id].name);
  return variables_[id];
}

const std::string& Printer::buffer(size_t id) {
  static const std::string unknown = "unknown";
  if (id >= buffers_.size()) return unknown;
  if (buffers_[id].empty()) buffers_[id] = fresh(kernel_.buffers[id].name);
  return buffers_[id];
}

// The shortest decimal that gives the same bits again.
std::string Printer::constant(const Expr& e) {
  const DataType element = e.type.element;
  const std::string suffix = ":" + to_string(e.type);
  if (e.type == Type{DataType::int64, 1}) return fmt::format("{}", e.value);
  if (element == DataType::boolean) {
    const std::string word = e.value != 0 ? "true" : "false";
    return e.type.lanes == 1 ? word : word + suffix;
  }
  if (is_integer(element)) return fmt::format("{}{}", e.value, suffix);
  if (is_computable(element)) {
    const double value = scalar_of_bits(element, e.value).f;
    if (std::isinf(value)) return (value < 0 ? "-inf" : "inf") + suffix;
    if (!std::isnan(value)) {
      const std::string number = element == DataType::float64 ? fmt::format("{}", value)
                                                              : fmt::format("{}", static_cast<float>(value));
      Scalar read;
      read.type = DataType::float64;
      read.f = std::strtod(number.c_str(), nullptr);
      if (bits_of_scalar(convert(read, element)) == e.value) return number + suffix;
    }
  }
  return fmt::format("bits(0x{:x}){}", static_cast<uint64_t>(e.value), suffix);
}

std::string Printer::indexed(size_t target, ExprId index, ExprId mask) {
  std::string result = buffer(target) + "[" + text(index, 0);
  if (mask != none) result += " if " + text(mask, 0);
  return result + "]";
}

std::string Printer::call(const Expr& e, std::string_view name) {
  std::string result(name);
  if (usual_type(kernel_, e) != e.type) result += "<" + to_string(e.type) + ">";
  std::string separator = "(";
  for_each_operand(e, [&](ExprId operand) {
    result += separator + text(operand, 0);
    separator = ", ";
  });
  return result + ")";
}

std::string Printer::text(ExprId id, int level) {
  if (id >= kernel_.exprs.size()) return "missing";
  if (const auto found = bound_.find(id); found != bound_.end()) return found->second;
  return plain(kernel_.exprs[id], level);
}

std::string Printer::plain(const Expr& e, int level) {
  switch (e.kind) {
    case ExprKind::constant:
      return constant(e);
    case ExprKind::parameter:
      return static_cast<size_t>(e.value) < parameters_.size() ? parameters_[static_cast<size_t>(e.value)]
                                                               : "unknown";
    case ExprKind::read:
      return variable(static_cast<size_t>(e.value));
    case ExprKind::apply:
    case ExprKind::native:
      if (const Infix* infix = infix_of(e); infix && usual_type(kernel_, e) == e.type) {
        // Comparisons do not chain.
        const int left = infix->level == 4 ? 5 : infix->level;
        const std::string inner =
            fmt::format("{} {} {}", text(e.a, left), infix->sign, text(e.b, infix->level + 1));
        return infix->level < level ? "(" + inner + ")" : inner;
      }
      return call(e, e.kind == ExprKind::apply ? fusewise::name_of(e.op) : name_of(e.native));
    case ExprKind::fma:
      return call(e, "fma");
    case ExprKind::bitcast:
      return call(e, "bitcast");
    case ExprKind::load:
      return indexed(static_cast<size_t>(e.value), e.a, e.b);
    case ExprKind::ramp:
      return fmt::format("ramp({}, {}, {})", text(e.a, 0), e.value, e.type.lanes);
    case ExprKind::broadcast:
      return fmt::format("broadcast({}, {})", text(e.a, 0), e.type.lanes);
    case ExprKind::shuffle: {
      std::string result = "shuffle(" + text(e.a, 0);
      if (e.b != none) result += ", " + text(e.b, 0);
      std::string separator = ", [";
      for (const int lane : kernel_.patterns.at(static_cast<size_t>(e.value))) {
        result += separator + std::to_string(lane);
        separator = ", ";
      }
      return result + "])";
    }
    case ExprKind::subgroup_reduce: {
      constexpr std::string_view names[] = {"sum", "product", "max", "min"};
      return fmt::format("subgroup_reduce({}, {})", names[static_cast<size_t>(e.value) & 3], text(e.a, 0));
    }
  }
  throw InternalError("unknown kind of expression");
}

// Names what the statement uses more than once, and cuts tall expressions, when inline text would not do.
void Printer::bind(const Stmt& stmt, int indent) {
  bound_.clear();
  struct Size {
    int uses = 0;
    int height = 0;
    double nodes = 0;  // of the text if nothing is named
  };
  std::unordered_map<ExprId, Size> sizes;
  std::vector<ExprId> order;
  double total = 0;
  int height = 0;
  // A small statement is the rule, and needs no tables beside this one.
  std::vector<std::pair<ExprId, bool>> work;
  const auto visit = [&](ExprId root) {
    work.push_back({root, false});
    while (!work.empty()) {
      const auto [id, done] = work.back();
      work.pop_back();
      const Expr& e = kernel_.exprs[id];
      if (done) {
        Size own{sizes[id].uses, 0, 1};
        for_each_operand(e, [&](ExprId operand) {
          own.height = std::max(own.height, sizes[operand].height + 1);
          own.nodes += sizes[operand].nodes;
        });
        sizes[id] = own;
        order.push_back(id);
        continue;
      }
      if (sizes[id].uses++ > 0) continue;
      work.push_back({id, true});
      for (const ExprId operand : {e.c, e.b, e.a})
        if (operand != none) work.push_back({operand, false});
    }
    total += sizes[root].nodes;
    height = std::max(height, sizes[root].height);
  };
  for_each_operand(stmt, visit);
  if (total <= longest_inline && height < height_step) return;
  for (const ExprId id : order) {
    const Size& size = sizes[id];
    if (size.height == 0) continue;
    const bool is_shared = size.uses > 1 && total > longest_inline;
    if (!is_shared && size.height % height_step != height_step - 1) continue;
    const std::string name = fmt::format("#{}", bound_.size());
    line(indent, name + " = " + text(id, 0));
    bound_.emplace(id, name);
  }
}

std::string Printer::loop_head(const Stmt& stmt) {
  std::string result = fmt::format("{} {} in {}..{}", name_of(stmt.loop), variable(stmt.target),
                                   text(stmt.a, 1), text(stmt.b, 1));
  if (stmt.value != 1) result += fmt::format(" step {}", stmt.value);
  return result;
}

std::string Printer::head(const Stmt& stmt) {
  switch (stmt.kind) {
    case StmtKind::block:
      return "";
    case StmtKind::loop:
      return "for " + loop_head(stmt);
    case StmtKind::branch:
      return "if " + text(stmt.a, 0);
    case StmtKind::let: {
      std::string value = text(stmt.a, 0);
      return fmt::format("let {}: {} = {}", variable(stmt.target),
                         to_string(kernel_.variables[stmt.target].type), value);
    }
    case StmtKind::assign: {
      const bool first = kernel_.variables[stmt.target].is_mutable && !assigned_[stmt.target];
      assigned_[stmt.target] = true;
      const std::string value = text(stmt.a, 0);
      if (!first) return variable(stmt.target) + " = " + value;
      return fmt::format("mut {}: {} = {}", variable(stmt.target),
                         to_string(kernel_.variables[stmt.target].type), value);
    }
    case StmtKind::allocate: {
      const Buffer& b = kernel_.buffers[stmt.target];
      const std::string size = b.size == none ? "missing" : text(b.size, 0);
      return fmt::format("allocate {}: {}[{}] {}", buffer(stmt.target), fusewise::name_of(b.element), size,
                         name_of(b.scope));
    }
    case StmtKind::alias:
      return fmt::format("alias {}: {} = {} at {}", buffer(stmt.target),
                         fusewise::name_of(kernel_.buffers[stmt.target].element),
                         buffer(static_cast<size_t>(stmt.value)), text(stmt.a, 0));
    case StmtKind::store:
      return indexed(stmt.target, stmt.a, stmt.c) + " = " + text(stmt.b, 0);
    case StmtKind::barrier:
      return "barrier";
    case StmtKind::prefetch:
      return fmt::format("prefetch {} level {}", indexed(stmt.target, stmt.a, none), stmt.value);
  }
  throw InternalError("unknown kind of statement");
}

void Printer::print_children(StmtId id, int indent) {
  const Stmt& stmt = kernel_.stmts[id];
  if (stmt.kind != StmtKind::block) return print(id, indent);
  for (const StmtId child : stmt.children) print(child, indent);
}

void Printer::print(StmtId id, int indent) {
  const Stmt& stmt = kernel_.stmts[id];
  bind(stmt, indent);
  const std::string first = head(stmt);
  bound_.clear();
  if (stmt.children.empty() && stmt.kind != StmtKind::block) return line(indent, first);
  line(indent, first.empty() ? "{" : first + " {");
  if (stmt.kind == StmtKind::block) {
    for (const StmtId child : stmt.children) print(child, indent + 1);
  } else {
    print_children(stmt.children[0], indent + 1);
  }
  if (stmt.kind == StmtKind::branch && stmt.children.size() > 1) {
    line(indent, "} else {");
    print_children(stmt.children[1], indent + 1);
  }
  line(indent, "}");
}

std::string Printer::header() {
  std::string result = "kernel " + (is_identifier(kernel_.name) ? kernel_.name : fresh(kernel_.name)) + "(";
  for (size_t i = 0; i < parameters_.size(); ++i) result += (i > 0 ? ", " : "") + parameters_[i] + ": int64";
  std::string separator = "; ";
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    const Buffer& b = kernel_.buffers[i];
    if (!is_argument(b)) continue;
    result += separator + buffer(i) + ": " + std::string(fusewise::name_of(b.element));
    if (b.size != none) result += "[" + text(b.size, 0) + "]";
    result += b.written ? " out" : " in";
    if (!b.no_alias) result += " alias";
    separator = ", ";
  }
  result += ")";
  if (!kernel_.scratch_bytes.is(0)) {
    std::map<std::string, Dim> renamed;
    for (size_t i = 0; i < parameters_.size(); ++i)
      if (parameters_[i] != kernel_.parameters[i])
        renamed.emplace(kernel_.parameters[i], Dim::symbol(parameters_[i]));
    const Dim bytes = renamed.empty() ? kernel_.scratch_bytes : kernel_.scratch_bytes.substitute(renamed);
    result += " scratch " + bytes.to_string();
  }
  return result;
}

std::string Printer::kernel() {
  line(0, header() + " {");
  for (const StmtId id : kernel_.phases) {
    const Stmt& stmt = kernel_.stmts[id];
    if (stmt.kind != StmtKind::loop) {
      // Not a valid kernel, but a message about it should show what is there.
      print(id, 1);
      continue;
    }
    bind(stmt, 1);
    const std::string first = "phase " + loop_head(stmt) + " {";
    bound_.clear();
    line(1, first);
    print_children(stmt.children[0], 2);
    line(1, "}");
  }
  line(0, "}");
  return std::move(out_);
}

std::string Printer::statement(StmtId id) {
  const Stmt& stmt = kernel_.stmts[id];
  bind(stmt, 0);
  std::string first = head(stmt);
  if (stmt.kind == StmtKind::block)
    first = "{ ... }";
  else if (!stmt.children.empty())
    first += " { ... }";
  return out_ + first;
}

}  // namespace

std::string print(const Kernel& kernel) { return Printer(kernel).kernel(); }
std::string statement_text(const Kernel& kernel, StmtId stmt) { return Printer(kernel).statement(stmt); }
std::string expression_text(const Kernel& kernel, ExprId expr) { return Printer(kernel).expression(expr); }

}  // namespace fusewise::kernel

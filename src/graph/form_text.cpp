#include "graph/form_text.h"

#include <fmt/core.h>

#include "base/error.h"
#include "graph/text.h"

namespace fusewise::graph {

namespace {

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::source:
      return "source";
    case Kind::map:
      return "map";
    case Kind::view:
      return "view";
    case Kind::reduce:
      return "reduce";
    case Kind::contract:
      return "contract";
    case Kind::window:
      return "window";
    case Kind::gather:
      return "gather";
    case Kind::control:
      return "control";
    case Kind::opaque:
      return "opaque";
    case Kind::sweep:
      return "sweep";
  }
  throw InternalError("unknown kind of node");
}

std::string axis_name(int axis, const Form& form) {
  return fmt::format("{}{}", form.axes.at(static_cast<size_t>(axis)).reduction ? 'r' : 'i', axis);
}

// Appends a summand with its sign.
void add(std::string& sum, std::string summand) {
  if (sum.empty())
    sum = std::move(summand);
  else if (summand.starts_with('-'))
    sum += " - " + summand.substr(1);
  else
    sum += " + " + summand;
}

// The factor 1 is left out and -1 is a sign; one with several terms is put in parentheses.
std::string times(const Dim& factor, const std::string& rest) {
  if (factor.is(1)) return rest;
  if (factor.is(-1)) return "-" + rest;
  const bool one_term = factor.terms().size() + (factor.constant_part() != 0 ? 1 : 0) <= 1;
  return fmt::format(fmt::runtime(one_term ? "{}*{}" : "({})*{}"), factor.to_string(), rest);
}

std::string print_linear(const LinearIndex& index, const Form& form) {
  std::string sum;
  for (const AxisTerm& term : index.terms) add(sum, times(term.coefficient, axis_name(term.axis, form)));
  if (!index.constant.is(0) || sum.empty()) add(sum, index.constant.to_string());
  return sum;
}

std::string print_quasi(const QuasiTerm& term, const Form& form) {
  std::string text = print_linear(term.inner, form);
  if (!term.divisor.is(1)) text = fmt::format("floordiv({}, {})", text, term.divisor.to_string());
  if (!term.modulus.is(0)) text = fmt::format("mod({}, {})", text, term.modulus.to_string());
  return times(term.coefficient, text);
}

std::string print_body(const Form& form, int i) {
  const BodyNode& node = form.body.at(static_cast<size_t>(i));
  switch (node.kind) {
    case BodyNode::Kind::read:
      return fmt::format("read {}", node.read);
    case BodyNode::Kind::index:
      return fmt::format("{}({})", name_of(node.type), print(node.index, form));
    case BodyNode::Kind::constant:
      return is_float(node.type) ? fmt::format("{}", node.constant.f) : fmt::format("{}", node.constant.i);
    case BodyNode::Kind::piece:
      return fmt::format("piece(read {}, {})", node.read, print_body(form, node.arguments.at(0)));
    case BodyNode::Kind::apply:
      break;
  }
  std::string text = std::string(node.op == ScalarOp::cast ? name_of(node.type) : name_of(node.op)) + "(";
  for (size_t a = 0; a < node.arguments.size(); ++a)
    text += (a == 0 ? "" : ", ") + print_body(form, node.arguments[a]);
  return text + ")";
}

std::string print_read(const Form& form, const Read& read) {
  std::string text = fmt::format("operand {} at [", read.operand);
  for (size_t d = 0; d < read.index.size(); ++d) text += (d == 0 ? "" : ", ") + print(read.index[d], form);
  text += "]";
  for (size_t g = 0; g < read.guards.size(); ++g)
    text += fmt::format("{} {} <= {} < {}", g == 0 ? " where" : " and", read.guards[g].low.to_string(),
                        print(read.guards[g].expr, form), read.guards[g].high.to_string());
  return text;
}

}  // namespace

std::string print(const IndexExpr& index, const Form& form) {
  std::string sum;
  if (!index.linear.terms.empty() || !index.linear.constant.is(0)) sum = print_linear(index.linear, form);
  for (const QuasiTerm& term : index.quasi) add(sum, print_quasi(term, form));
  if (index.gathered)
    add(sum, fmt::format("gathered(read {}, {})", *index.gathered, index.gathered_extent.to_string()));
  return sum.empty() ? "0" : sum;
}

std::string print(const Form& form) {
  std::string out = fmt::format("{} axes", kind_name(form.kind));
  for (size_t a = 0; a < form.axes.size(); ++a)
    out += fmt::format("{} {}={}", a == 0 ? "" : ",", axis_name(static_cast<int>(a), form),
                       form.axes[a].extent.to_string());
  out += '\n';
  for (size_t r = 0; r < form.reads.size(); ++r)
    out += fmt::format("read {}: {}\n", r, print_read(form, form.reads[r]));
  out += fmt::format("body: {}\n", print_body(form, static_cast<int>(form.body.size()) - 1));
  if (form.accumulation) {
    const Accumulation& how = *form.accumulation;
    out += fmt::format("combine {}{}{} in {}\n", name_of(how.combine), how.multiply_add ? " by fma" : "",
                       how.sequential ? " in sequence" : "", name_of(how.accumulator));
  }
  return out;
}

}  // namespace fusewise::graph

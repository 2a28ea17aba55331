#include "schedule/cascade_summand.h"

namespace fusewise::schedule::derivation {

namespace {

constexpr int deepest = 12;

class RangeFinder {
 public:
  RangeFinder(const RegionForms& forms, const std::set<NodeId>& exponentials)
      : forms_(forms), exponentials_(exponentials) {}

  KnownRange range_of(Value value, int depth) const {
    if (const auto scalar = literal_of(*forms_.graph, value); scalar && is_float(scalar->type))
      return range_of_literal(scalar->f);
    if (!forms_.is_member(value.node) || depth > deepest) return {};
    const Form& form = forms_.form(value.node);
    const KnownRange body = range_of_body(value.node, static_cast<int>(form.body.size()) - 1, depth + 1);
    if (!form.accumulation) return body;
    if (form.accumulation->combine == Combine::max || form.accumulation->combine == Combine::min) return body;
    if (form.accumulation->combine != Combine::sum) return {};
    // A sum of exponentials of values less their maximum holds one summand of exactly 1.
    const bool exponential = exponentials_.count(value.node) != 0;
    return {body.not_negative, exponential, exponential};
  }

  KnownRange range_of_body(NodeId node, int position, int depth) const {
    const Form& form = forms_.form(node);
    const BodyNode& body = form.body[static_cast<size_t>(position)];
    if (body.kind == BodyNode::Kind::constant) return range_of_literal(body.constant.f);
    if (body.kind == BodyNode::Kind::read)
      return range_of(forms_.operand(node, form.reads[static_cast<size_t>(body.read)]), depth);
    if (body.kind != BodyNode::Kind::apply || body.arguments.empty()) return {};
    const KnownRange a = range_of_body(node, body.arguments[0], depth);
    const KnownRange b = body.arguments.size() > 1 ? range_of_body(node, body.arguments[1], depth) : a;
    return range_after(cascade_role(body.op), a, b,
                       body.arguments.size() > 1 && same_argument(forms_, node, body));
  }

 private:
  const RegionForms& forms_;
  const std::set<NodeId>& exponentials_;
};

}  // namespace

KnownRange range_of(const RegionForms& forms, const std::set<NodeId>& exponentials, Value value) {
  return RangeFinder(forms, exponentials).range_of(value, 0);
}

bool same_argument(const RegionForms& forms, NodeId node, const BodyNode& body) {
  const Form& form = forms.form(node);
  const BodyNode &a = form.body[static_cast<size_t>(body.arguments[0])],
                 &b = form.body[static_cast<size_t>(body.arguments[1])];
  if (body.arguments[0] == body.arguments[1]) return true;
  if (a.kind != BodyNode::Kind::read || b.kind != BodyNode::Kind::read) return false;
  const Read &x = form.reads[static_cast<size_t>(a.read)], &y = form.reads[static_cast<size_t>(b.read)];
  return forms.operand(node, x) == forms.operand(node, y) && x.index == y.index && x.guards.empty() &&
         y.guards.empty();
}

}  // namespace fusewise::schedule::derivation

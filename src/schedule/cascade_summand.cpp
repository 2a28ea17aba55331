#include "schedule/cascade_summand.h"

#include <algorithm>
#include <cmath>

namespace fusewise::schedule::derivation {

namespace {

// Nothing that is written by hand has more terms or factors; they bound the walks.
constexpr size_t most_terms = 8, most_factors = 16;

}  // namespace

Part SummandReader::read() {
  return of_body(member_, static_cast<int>(form_->body.size()) - 1, axes_of(*form_));
}

void SummandReader::refuse(const char* code, const char* why, NodeId node) const {
  throw Refusal{Verdict::forbid(code, why, {node})};
}

Part SummandReader::of_value(const Leaf& leaf) {
  if (!forms_.is_member(leaf.value.node) || !dependent_.count(leaf.value.node)) return {};
  Part part;
  part.depends = true;
  if (is_constant(leaf.place)) {
    part.constant = leaf;
    part.factors = {{leaf, false}};
    return part;
  }
  const Form& form = forms_.form(leaf.value.node);
  if (form.accumulation)
    refuse("cascade-function", "a reduction over another axis lies in between", leaf.value.node);
  require_type(leaf.value);
  return of_body(leaf.value.node, static_cast<int>(form.body.size()) - 1, leaf.place);
}

void SummandReader::require_type(Value value) const {
  if (forms_.graph->type(value).element != forms_.graph->type({member_, 0}).element)
    refuse("cascade-type", "a rounding to another type lies in between", value.node);
}

Part SummandReader::of_body(NodeId node, int position, const Place& place) {
  const Form& form = forms_.form(node);
  const BodyNode& body = form.body[static_cast<size_t>(position)];
  switch (body.kind) {
    case BodyNode::Kind::read:
      return of_value(operand_leaf(node, form.reads[static_cast<size_t>(body.read)], place));
    case BodyNode::Kind::piece:
      for (const Read& read : form.reads)
        if (dependent_.count(forms_.operand(node, read).node))
          refuse("cascade-function", "a part of it is read behind a guard", node);
      return {};
    case BodyNode::Kind::apply:
      return of_application(node, body, place);
    default:
      return {};
  }
}

Part SummandReader::of_application(NodeId node, const BodyNode& body, const Place& place) {
  const CascadeRole role = cascade_role(body.op);
  if (role == CascadeRole::exponential) return of_exponential(node, body, place);
  std::vector<Part> parts;
  bool any = false;
  for (int argument : body.arguments)
    if (role == CascadeRole::product && parts.empty() && same_argument(forms_, node, body)) {
      if (auto square = of_square(node, body, place)) return *square;
      parts.push_back(of_body(node, argument, place));
      any = any || parts.back().depends;
    } else {
      parts.push_back(depends(node, argument) ? of_argument(node, argument, place, role) : Part{});
      any = any || parts.back().depends;
    }
  if (!any) return {};
  switch (role) {
    case CascadeRole::negation:
      return without_constant(parts[0]);
    case CascadeRole::product:
      return both(node, parts[0], parts[1]);
    case CascadeRole::quotient: {
      if (!parts[1].depends) return without_constant(parts[0]);
      if (!parts[1].constant)
        refuse("cascade-function", "a divisor depends on an earlier result along the axis", node);
      Part part = without_constant(parts[0]);
      part.depends = true;
      part.factors.push_back({*parts[1].constant, true});
      return part;
    }
    default:
      refuse("cascade-function", "nothing can be pulled out of an operation between the reductions", node);
  }
}

bool SummandReader::depends(NodeId node, int position) const {
  const Form& form = forms_.form(node);
  const BodyNode& body = form.body[static_cast<size_t>(position)];
  if (body.kind == BodyNode::Kind::read || body.kind == BodyNode::Kind::piece) {
    if (dependent_.count(forms_.operand(node, form.reads[static_cast<size_t>(body.read)]).node)) return true;
  }
  return std::any_of(body.arguments.begin(), body.arguments.end(), [&](int a) { return depends(node, a); });
}

Part SummandReader::of_argument(NodeId node, int argument, const Place& place, CascadeRole role) {
  if (role != CascadeRole::negation && role != CascadeRole::product && role != CascadeRole::quotient)
    refuse("cascade-function", "nothing can be pulled out of an operation between the reductions", node);
  return of_body(node, argument, place);
}

Part SummandReader::without_constant(Part part) {
  part.constant.reset();
  part.exponential = false;
  return part;
}

Part SummandReader::both(NodeId node, const Part& a, const Part& b) const {
  if (a.shift && b.shift) refuse("cascade-function", "two shifted parts are multiplied", node);
  if ((a.shift && a.shift->identity == CascadeIdentity::centred_square) ||
      (b.shift && b.shift->identity == CascadeIdentity::centred_square))
    refuse("cascade-function", "a centred square is multiplied by what moves with the axis", node);
  Part part;
  part.depends = true;
  part.factors = a.factors;
  part.factors.insert(part.factors.end(), b.factors.begin(), b.factors.end());
  if (part.factors.size() > most_factors) refuse("cascade-function", "it has too many factors", node);
  part.shift = a.shift ? a.shift : b.shift;
  return part;
}

bool SummandReader::linear(NodeId node, int position, const Place& place, double scale,
                           std::vector<LinearTerm>& terms) {
  const Form& form = forms_.form(node);
  const BodyNode& body = form.body[static_cast<size_t>(position)];
  if (body.kind == BodyNode::Kind::read)
    return linear(operand_leaf(node, form.reads[static_cast<size_t>(body.read)], place), scale, terms);
  if (body.kind != BodyNode::Kind::apply) return false;
  const auto argument = [&](int i, double by) {
    return linear(node, body.arguments[static_cast<size_t>(i)], place, scale * by, terms);
  };
  const auto number = [&](int i) -> std::optional<double> {
    const BodyNode& b = form.body[static_cast<size_t>(body.arguments[static_cast<size_t>(i)])];
    if (b.kind == BodyNode::Kind::constant) return b.constant.f;
    if (b.kind != BodyNode::Kind::read) return std::nullopt;
    return literal(operand_leaf(node, form.reads[static_cast<size_t>(b.read)], place));
  };
  switch (cascade_role(body.op)) {
    case CascadeRole::sum:
      return argument(0, 1) && argument(1, 1);
    case CascadeRole::difference:
      return argument(0, 1) && argument(1, -1);
    case CascadeRole::negation:
      return argument(0, -1);
    case CascadeRole::product:
      if (const auto c = number(0)) return argument(1, *c);
      if (const auto c = number(1)) return argument(0, *c);
      return false;
    case CascadeRole::quotient:
      if (const auto c = number(1); c && *c != 0) return argument(0, 1 / *c);
      return false;
    default:
      return false;
  }
}

bool SummandReader::linear(const Leaf& leaf, double scale, std::vector<LinearTerm>& terms) {
  const bool dependent = forms_.is_member(leaf.value.node) && dependent_.count(leaf.value.node);
  if (!dependent || is_constant(leaf.place)) {
    terms.push_back({scale, leaf});
    return terms.size() <= most_terms;
  }
  const Form& form = forms_.form(leaf.value.node);
  if (form.accumulation) return false;
  require_type(leaf.value);
  return linear(leaf.value.node, static_cast<int>(form.body.size()) - 1, leaf.place, scale, terms);
}

std::optional<SummandReader::Shifted> SummandReader::shifted(NodeId node, int position, const Place& place) {
  std::vector<LinearTerm> terms;
  if (!linear(node, position, place, 1, terms) || terms.size() != 2) return std::nullopt;
  const auto earlier = [&](const LinearTerm& t) {
    return forms_.is_member(t.leaf.value.node) && dependent_.count(t.leaf.value.node);
  };
  if (earlier(terms[0])) std::swap(terms[0], terms[1]);
  if (earlier(terms[0]) || !earlier(terms[1]) || terms[0].scale != -terms[1].scale) return std::nullopt;
  return Shifted{terms[0], terms[1]};
}

bool SummandReader::reduces(const Leaf& reduction, const Leaf& leaf) const {
  const Form& form = forms_.form(reduction.value.node);
  const BodyNode& body = form.body.back();
  if (body.kind != BodyNode::Kind::read || !form.reads[static_cast<size_t>(body.read)].guards.empty())
    return false;
  // Its parallel axes as this member reads it, its reduction axes in turn as this member's.
  Place axes = reduction.place;
  std::vector<int> own;
  for (int a = form_->parallel_axes(); a < static_cast<int>(form_->axes.size()); ++a)
    if (!form_->axes[static_cast<size_t>(a)].extent.is(1)) own.push_back(a);
  size_t next = 0;
  for (size_t a = axes.size(); a < form.axes.size(); ++a) {
    const bool single = form.axes[a].extent.is(1);
    if (!single && next == own.size()) return false;
    axes.push_back(single ? only_element : own[next++]);
  }
  const Read& read = form.reads[static_cast<size_t>(body.read)];
  const Value operand = forms_.operand(reduction.value.node, read);
  return through_views(Leaf{operand, place_of(operand, form, read, axes)}) == through_views(leaf);
}

Part SummandReader::of_exponential(NodeId node, const BodyNode& body, const Place& place) {
  if (!depends(node, body.arguments[0])) return {};
  const auto shift = shifted(node, body.arguments[0], place);
  const Leaf reference = shift ? through_views(shift->constant.leaf) : Leaf{};
  const bool maximum = shift && shift->moving.scale > 0 && members_.count(reference.value.node) &&
                       forms_.form(reference.value.node).accumulation->combine ==
                           reference_combine(CascadeIdentity::shifted_exponential) &&
                       reduces(reference, shift->moving.leaf);
  if (!maximum)
    refuse("cascade-reference", "an exponent is not reckoned against the maximum of the same values", node);
  Part part;
  part.depends = part.exponential = true;
  part.shift = Part::Shift{CascadeIdentity::shifted_exponential, reference.value.node, reference.value.node,
                           shift->moving.scale, reference.place};
  return part;
}

std::optional<Part> SummandReader::of_square(NodeId node, const BodyNode& body, const Place& place) {
  if (!depends(node, body.arguments[0])) return std::nullopt;
  const auto shift = shifted(node, body.arguments[0], place);
  if (!shift || std::abs(shift->moving.scale) != 1) return std::nullopt;
  const Leaf mean = through_views(shift->constant.leaf);
  const auto total = total_of_mean(mean);
  if (!total || !members_.count(total->value.node) ||
      forms_.form(total->value.node).accumulation->combine !=
          reference_combine(CascadeIdentity::centred_square) ||
      !reduces(*total, shift->moving.leaf))
    refuse("cascade-reference", "a square is not reckoned against the mean of the same values", node);
  Part part;
  part.depends = true;
  part.shift =
      Part::Shift{CascadeIdentity::centred_square, total->value.node, mean.value.node, 1, total->place};
  return part;
}

std::optional<Leaf> SummandReader::total_of_mean(const Leaf& mean) const {
  if (!forms_.is_member(mean.value.node)) return std::nullopt;
  Dim count = 1;
  for (const graph::Axis& a : form_->axes)
    if (a.reduction) count = count * a.extent;
  const Form& form = forms_.form(mean.value.node);
  const BodyNode& body = form.body.back();
  if (form.accumulation || body.kind != BodyNode::Kind::apply || !count.is_constant() || count.is(0))
    return std::nullopt;
  const CascadeRole role = cascade_role(body.op);
  const auto elements = static_cast<double>(count.value());
  const DataType type = body.type;
  const auto leaf = [&](int i) -> std::optional<Leaf> {
    const BodyNode& b = form.body[static_cast<size_t>(body.arguments[static_cast<size_t>(i)])];
    if (b.kind != BodyNode::Kind::read) return std::nullopt;
    const Read& read = form.reads[static_cast<size_t>(b.read)];
    if (!read.guards.empty()) return std::nullopt;
    return operand_leaf(mean.value.node, read, mean.place);
  };
  const auto is = [&](const std::optional<Leaf>& l, double wanted) {
    const auto number = l ? literal(*l) : std::nullopt;
    return number && (*number == wanted || (type == DataType::float32 &&
                                            static_cast<float>(*number) == static_cast<float>(wanted)));
  };
  std::optional<Leaf> total;
  if (role == CascadeRole::quotient && is(leaf(1), elements)) total = leaf(0);
  if (role == CascadeRole::product && is(leaf(1), 1 / elements)) total = leaf(0);
  if (role == CascadeRole::product && is(leaf(0), 1 / elements)) total = leaf(1);
  return total ? std::optional(through_views(*total)) : std::nullopt;
}

}  // namespace fusewise::schedule::derivation

#include "schedule/cascade.h"

#include <algorithm>

#include "schedule/cascade_summand.h"

namespace fusewise::schedule {

using graph::Form;
using graph::Read;

int Cascade::member_of(NodeId node) const {
  for (size_t i = 0; i < members.size(); ++i)
    if (members[i].node == node) return static_cast<int>(i);
  return -1;
}

int block_axis(const Form& form) {
  if (!form.accumulation) return -1;
  int first = -1;
  for (int a = form.parallel_axes(); a < static_cast<int>(form.axes.size()); ++a) {
    if (first < 0) first = a;
    if (!form.axes[static_cast<size_t>(a)].extent.is(1)) return a;
  }
  return first;
}

namespace {

using derivation::Part;
using derivation::Place;
using derivation::PlaceReader;
using derivation::Refusal;
using derivation::SummandReader;

class Deriver {
 public:
  Deriver(const RegionForms& forms, NodeId last, const std::optional<std::set<NodeId>>& carried)
      : forms_(forms), last_(last), given_(carried) {}

  CascadeResult derive() {
    CascadeResult result;
    try {
      find_members();
      for (NodeId node : members_) {
        derive_member(node, result.cascade);
        check_axes(node);
      }
      check_uses(result.cascade);
    } catch (const Refusal& refusal) {
      return {refusal.verdict, {}};
    }
    return result;
  }

 private:
  const RegionForms& forms_;
  NodeId last_;
  std::optional<std::set<NodeId>> given_;
  std::set<NodeId> members_;       // ascending
  std::set<NodeId> dependent_;     // nodes that read a member other than the last, themselves included
  std::set<NodeId> exponentials_;  // members that sum nothing but shifted exponentials

  [[noreturn]] void refuse(const char* code, const char* why, NodeId node) const {
    throw Refusal{Verdict::forbid(code, why, {node})};
  }

  // ---------------------------------------------------------------- members

  // All reductions above `last`, or those given; those without which nothing depends on them are no members.
  void find_members() {
    std::set<NodeId> above = {last_};
    std::vector<NodeId> work = {last_};
    while (!work.empty()) {
      const NodeId node = work.back();
      work.pop_back();
      for (const Read& read : forms_.form(node).reads) {
        const NodeId producer = forms_.operand(node, read).node;
        if (forms_.is_member(producer) && above.insert(producer).second) work.push_back(producer);
      }
    }
    members_ = {last_};
    if (given_) {
      for (NodeId node : *given_) {
        if (!above.count(node) || !forms_.form(node).accumulation)
          refuse("cascade-axis", "a running value that the reduction does not depend on", node);
        members_.insert(node);
      }
    } else {
      discover(above);
    }
    for (NodeId node : above) {  // producers have smaller ids
      bool reads = members_.count(node) && node != last_;
      for (const Read& read : forms_.form(node).reads)
        reads = reads || dependent_.count(forms_.operand(node, read).node);
      if (reads) dependent_.insert(node);
    }
  }

  // Reductions of the same extents whose value reaches a member along a way on which it is constant along the
  // member's reduction axes. What lies along those axes (a product that makes the scores) is no member.
  void discover(const std::set<NodeId>& above) {
    std::vector<NodeId> work = {last_};
    while (!work.empty()) {
      const NodeId member = work.back();
      work.pop_back();
      const PlaceReader reader(forms_, member);
      std::map<NodeId, Place> places;
      places[member] = PlaceReader::axes_of(forms_.form(member));
      for (auto it = above.rbegin(); it != above.rend(); ++it) {
        const auto known = places.find(*it);
        if (known == places.end()) continue;
        const Place own = known->second;
        const Form& form = forms_.form(*it);
        const bool constant = *it != member && reader.is_constant(own);
        if (constant && form.accumulation && same_extents(form, forms_.form(member))) {
          if (members_.insert(*it).second) work.push_back(*it);
          continue;
        }
        if (form.accumulation && *it != member) continue;
        for (const Read& read : form.reads) {
          const Value operand = forms_.operand(*it, read);
          if (!forms_.is_member(operand.node)) continue;
          const Place there = reader.place_of(operand, form, read, own);
          const auto [slot, fresh] = places.emplace(operand.node, there);
          if (fresh) continue;
          for (size_t d = 0; d < there.size(); ++d)
            if (slot->second[d] != there[d])
              slot->second[d] =
                  reader.is_constant({slot->second[d], there[d]}) ? derivation::fixed : derivation::moving;
        }
      }
    }
  }

  static bool same_extents(const Form& a, const Form& b) {
    const auto extents = [](const Form& form) {
      std::vector<Dim> result;
      for (const graph::Axis& axis : form.axes)
        if (axis.reduction && !axis.extent.is(1)) result.push_back(axis.extent);
      return result;
    };
    return extents(a) == extents(b);
  }

  void check_axes(NodeId node) const {
    if (!same_extents(forms_.form(node), forms_.form(last_)))
      refuse("cascade-axis", "the reductions do not run over the same axes", node);
    if (members_.size() == 1) return;
    const Form& form = forms_.form(node);
    const DataType type = forms_.graph->type({node, 0}).element;
    if ((type != DataType::float32 && type != DataType::float64) || form.accumulation->accumulator != type ||
        type != forms_.graph->type({last_, 0}).element)
      refuse("cascade-type", "the reductions of a chain accumulate in another type than they deliver", node);
  }

  void derive_member(NodeId node, Cascade& cascade) {
    CascadeMember member;
    member.node = node;
    if (dependent_.count(node) || node == last_) {
      const Part part = SummandReader(forms_, node, members_, dependent_).read();
      if (part.depends) take(part, member, cascade);
      if (part.exponential) exponentials_.insert(node);
    }
    cascade.members.push_back(std::move(member));
  }

  void take(const Part& part, CascadeMember& member, Cascade& cascade) {
    if (forms_.form(member.node).accumulation->combine != Combine::sum)
      refuse("cascade-function", "a factor is pulled out of sums only", member.node);
    for (const Part::Factor& factor : part.factors) {
      const KnownRange range = derivation::range_of(forms_, exponentials_, factor.value.value);
      if (factor.divides ? !range.apart : !range.bounded)
        refuse("cascade-range",
               "a divisor that may be 0, or a factor that may be infinite, stays where it is",
               factor.value.value.node);
      member.factors.push_back(
          {factor.value.value.node, factor.divides, coordinates(member.node, factor.value.place)});
    }
    if (!part.shift) return;
    member.reference = cascade.member_of(part.shift->reference);
    if (member.reference < 0)
      refuse("cascade-reference", "what it is reckoned against is no running value", part.shift->reference);
    member.identity = part.shift->identity;
    member.scale = part.shift->scale;
    member.reference_at = coordinates(member.node, part.shift->at);
    cascade.reference_nodes[part.shift->read_at] = member.reference;
  }

  ConstantCoordinates coordinates(NodeId member, const Place& place) const {
    for (int p : place)
      if (p < derivation::only_element)
        refuse("cascade-axis", "an earlier result is read at another place", member);
    return place;
  }

  // A node that reads as 1 or as a running value in one member does so in all: no other use may see it.
  void check_uses(const Cascade& cascade) const {
    std::set<NodeId> ones;
    for (const CascadeMember& m : cascade.members)
      for (const CascadeMember::Factor& f : m.factors) ones.insert(f.node);
    for (NodeId node : ones)
      if (cascade.reference_nodes.count(PlaceReader(forms_, last_)
                                            .through_views({{node, 0},
                                                            Place(forms_.graph->type({node, 0}).shape.size(),
                                                                  derivation::only_element)})
                                            .value.node))
        refuse("cascade-reference", "a value is a reference for one reduction and a factor of another", node);
  }
};

}  // namespace

bool only_applies_factor(const RegionForms& forms, const Cascade& cascade, NodeId node) {
  const Form& form = forms.form(node);
  if (form.accumulation || form.body.size() != 3 || form.reads.size() != 2) return false;
  const auto is_factor = [&](NodeId n) {
    for (const CascadeMember& m : cascade.members)
      for (const CascadeMember::Factor& f : m.factors)
        if (f.node == n) return true;
    return false;
  };
  return std::any_of(form.reads.begin(), form.reads.end(), [&](const Read& read) {
    NodeId n = forms.operand(node, read).node;
    while (forms.is_member(n) && !is_factor(n)) {
      const Form& view = forms.form(n);
      if (view.accumulation || view.body.size() != 1 || view.reads.size() != 1) return false;
      n = forms.operand(n, view.reads[0]).node;
    }
    return is_factor(n);
  });
}

CascadeResult derive_cascade(const RegionForms& forms, NodeId last,
                             const std::optional<std::set<NodeId>>& carried) {
  return Deriver(forms, last, carried).derive();
}

}  // namespace fusewise::schedule

// How derive_cascade reads the region: at which places of a member's domain values are read, and what a summand is made
// of. Internal to the derivation.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "schedule/cascade.h"

namespace fusewise::schedule::derivation {

using graph::BodyNode;
using graph::Form;
using graph::Read;

// Where a value is read, per dimension: an axis of the member's form, its only element, something that does not move
// with the reduction, or something that does.
constexpr int only_element = -1, fixed = -2, moving = -3;
using Place = std::vector<int>;

struct Refusal {
  Verdict verdict;
};

// A value at a place.
struct Leaf {
  Value value;
  Place place;
  friend bool operator==(const Leaf&, const Leaf&) = default;
};

// How a part of a summand depends on earlier members: not at all, as a value that is constant along the axis, or as
// factors and at most one shifted part times what does not depend.
struct Part {
  bool depends = false;
  std::optional<Leaf> constant;
  struct Factor {
    Leaf value;
    bool divides = false;
  };
  std::vector<Factor> factors;
  struct Shift {
    CascadeIdentity identity;
    NodeId reference;  // the reduction
    NodeId read_at;    // whose value is the reference
    double scale = 1;
    Place at;  // of the reduction's value
  };
  std::optional<Shift> shift;
  bool exponential = false;  // nothing but a shifted exponential
};

// sum of scale * leaf.
struct LinearTerm {
  double scale = 1;
  Leaf leaf;
};

// Reads of values in the domain of one member.
class PlaceReader {
 public:
  PlaceReader(const RegionForms& forms, NodeId member)
      : forms_(forms), member_(member), form_(&forms.form(member)) {}

  static Place axes_of(const Form& form);
  // True if the value does not move with the member's reduction axes.
  bool is_constant(const Place& place) const;
  // Where `operand` is read by a node whose axes lie at `own`.
  Place place_of(Value operand, const Form& form, const Read& read, const Place& own) const;
  Leaf operand_leaf(NodeId node, const Read& read, const Place& place) const;
  // Through nodes that only pass an element on.
  Leaf through_views(Leaf leaf) const;
  std::optional<double> literal(const Leaf& leaf) const;

 protected:
  int index_place(const Form& form, const graph::IndexExpr& index, const Place& own, const Dim& extent) const;

  const RegionForms& forms_;
  NodeId member_;
  const Form* form_;
};

// What a member's summand is made of. `members`: whose values run along; `dependent`: nodes that read one of them, and
// those themselves.
class SummandReader : public PlaceReader {
 public:
  SummandReader(const RegionForms& forms, NodeId member, const std::set<NodeId>& members,
                const std::set<NodeId>& dependent)
      : PlaceReader(forms, member), members_(members), dependent_(dependent) {}
  // Throws Refusal.
  Part read();

 private:
  // Exactly one value that moves with the axis less one that is constant along it and depends on an earlier member.
  struct Shifted {
    LinearTerm moving, constant;
  };
  Part of_value(const Leaf& leaf);
  void require_type(Value value) const;
  Part of_body(NodeId node, int position, const Place& place);
  Part of_application(NodeId node, const BodyNode& body, const Place& place);
  bool depends(NodeId node, int position) const;
  // What nothing can be pulled through is refused at the operation, not inside of its operands.
  Part of_argument(NodeId node, int argument, const Place& place, CascadeRole role);
  static Part without_constant(Part part);
  Part both(NodeId node, const Part& a, const Part& b) const;
  // The terms of a sum or difference, through products with literals. False: it is no such sum.
  bool linear(NodeId node, int position, const Place& place, double scale, std::vector<LinearTerm>& terms);
  bool linear(const Leaf& leaf, double scale, std::vector<LinearTerm>& terms);
  std::optional<Shifted> shifted(NodeId node, int position, const Place& place);
  // True if the reduction reduces the values that `leaf` reads along this member's axes.
  bool reduces(const Leaf& reduction, const Leaf& leaf) const;
  Part of_exponential(NodeId node, const BodyNode& body, const Place& place);
  // The square of a value less the mean of the same values.
  std::optional<Part> of_square(NodeId node, const BodyNode& body, const Place& place);
  // The sum that this value divides by the number of elements.
  std::optional<Leaf> total_of_mean(const Leaf& mean) const;
  [[noreturn]] void refuse(const char* code, const char* why, NodeId node) const;

  const std::set<NodeId>& members_;
  const std::set<NodeId>& dependent_;
};

// What is known of a factor; `exponentials`: members that sum nothing but shifted exponentials.
KnownRange range_of(const RegionForms& forms, const std::set<NodeId>& exponentials, Value value);

// True if both operands of an operation are one value.
bool same_argument(const RegionForms& forms, NodeId node, const BodyNode& body);

}  // namespace fusewise::schedule::derivation

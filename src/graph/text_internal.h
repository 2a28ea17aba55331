// What printing and parsing share: the attributes' fields in their order, element lists, quoting.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace fusewise::graph::text_internal {

// field(name, member) for each attribute that the text states. What the result type gives is left out: the
// shapes of broadcast, reshape and slice, and whether dims is a scalar.
template <class Field>
void visit_fields(Field&&, BranchAttributes&) {}
template <class Field>
void visit_fields(Field&& field, BroadcastAttributes& a) {
  field("dims", a.dims);
}
template <class Field>
void visit_fields(Field&& field, ConcatAttributes& a) {
  field("axis", a.axis);
}
template <class Field>
void visit_fields(Field&& field, ConstantAttributes& a) {
  field("data", a.constant);
}
template <class Field>
void visit_fields(Field&& field, ConvolutionAttributes& a) {
  field("strides", a.strides);
  field("dilations", a.dilations);
  field("pad_low", a.pad_low);
  field("pad_high", a.pad_high);
  field("groups", a.groups);
}
template <class Field>
void visit_fields(Field&& field, DimsAttributes& a) {
  field("dims", a.dims);
}
template <class Field>
void visit_fields(Field&& field, DotAttributes& a) {
  field("lhs_batch", a.lhs_batch);
  field("rhs_batch", a.rhs_batch);
  field("lhs_contract", a.lhs_contract);
  field("rhs_contract", a.rhs_contract);
}
template <class Field>
void visit_fields(Field&& field, GatherAttributes& a) {
  field("axis", a.axis);
}
template <class Field>
void visit_fields(Field&& field, HostAttributes& a) {
  field("function", a.function);
  field("parameters", a.parameters);
  field("symbols", a.symbols);
}
template <class Field>
void visit_fields(Field&&, InputAttributes&) {}
template <class Field>
void visit_fields(Field&& field, IotaAttributes& a) {
  field("axis", a.axis);
}
template <class Field>
void visit_fields(Field&& field, LoopAttributes& a) {
  field("trips", a.trips);
  field("counted", a.counted);
  field("conditional", a.conditional);
  field("carried", a.carried);
  field("scanned", a.scanned);
  field("stacked", a.stacked);
}
template <class Field>
void visit_fields(Field&& field, MapAttributes& a) {
  field("op", a.op);
}
template <class Field>
void visit_fields(Field&& field, PadAttributes& a) {
  field("low", a.low);
  field("high", a.high);
}
template <class Field>
void visit_fields(Field&& field, PrefixAttributes& a) {
  field("axis", a.axis);
  field("combine", a.combine);
  field("exclusive", a.exclusive);
  field("reverse", a.reverse);
}
template <class Field>
void visit_fields(Field&& field, ReduceAttributes& a) {
  field("combine", a.combine);
  field("axes", a.axes);
}
template <class Field>
void visit_fields(Field&&, ReshapeAttributes&) {}
template <class Field>
void visit_fields(Field&&, ResultAttributes&) {}
template <class Field>
void visit_fields(Field&& field, ScatterAttributes& a) {
  field("axis", a.axis);
  field("update", a.update);
}
template <class Field>
void visit_fields(Field&& field, SliceAttributes& a) {
  field("starts", a.starts);
  field("steps", a.steps);
}
template <class Field>
void visit_fields(Field&& field, TransposeAttributes& a) {
  field("permutation", a.permutation);
}
template <class Field>
void visit_fields(Field&& field, WindowReduceAttributes& a) {
  field("combine", a.combine);
  field("window", a.window);
  field("strides", a.strides);
  field("dilations", a.dilations);
  field("pad_low", a.pad_low);
  field("pad_high", a.pad_high);
}

// The same for attributes that stay as they are.
template <class Field, class A>
void visit_fields(Field&& field, const A& a) {
  visit_fields([&](const char* name, const auto& member) { field(name, member); }, const_cast<A&>(a));
}

// The name in double quotes; quotes, backslashes and control characters are escaped.
std::string quote(std::string_view text);

// The elements by value, each after a blank, or bytes:HEX for types that nothing computes in.
std::string print_elements(const ConstantData& data);
// The bytes of a constant from its elements' text; UserError when there are too few or too many.
std::vector<std::byte> parse_elements(const TensorType& type, std::string_view text);

}  // namespace fusewise::graph::text_internal

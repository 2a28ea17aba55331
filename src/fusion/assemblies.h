// What moves elements, and needs no kernel for it. A concatenation may be put together in place: whoever computes a part
// writes it straight to where it belongs in the whole, and readers of the part find it there. A view (a reshape, slice,
// transpose or broadcast of one value) may be read where its operand lies, at other strides; or its operand is written
// to where the view's elements belong. What somebody else owns (an input, a constant, an output, a part of another
// whole) is copied. Values that lie inside of a larger one share its memory: a chain of growing concatenations is one
// array.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/form.h"
#include "schedule/schedule.h"

namespace fusewise::fusion {

// Element [i...] of a value is that number `memory` of the host's, counted from the host's first one. Where divisions
// are left in it, nobody stores or reads the value: it only says where parts and operands lie.
struct Place {
  graph::Value host;
  graph::IndexExpr memory;
  friend bool operator==(const Place&, const Place&) = default;
};

struct PartCopy {
  graph::Value part;
  graph::NodeId whole;
  Place to;
  // Code: "part-input", "part-constant", "part-output", "part-shared", "part-layout", "part-strides", "part-view",
  // "part-grown", "part-alone".
  std::string reason;
  std::string detail;
};

// Why a node is not put in place although it was asked for.
struct Refused {
  std::string reason;  // code: "view-strides", "view-output", "view-source", or one of those of PartCopy
  std::string detail;
};

// An output that is an input with something behind it (a cache that grows), for a caller who keeps both in one array
// with room to spare: such a concatenation is always put together in place.
struct Append {
  graph::Value whole, past;
  int axis = 0;
  // Symbols: the extents along the axis of the caller's arrays.
  std::string whole_capacity, past_capacity;
  friend bool operator==(const Append&, const Append&) = default;
};

// Microseconds of the kernels around a node that moves elements, with it in place and as the plan would be otherwise.
struct MovePrice {
  double in_place = 0, apart = 0;
};
using MovePrices = std::map<graph::NodeId, MovePrice>;

struct Assemblies {
  std::set<graph::NodeId> wholes;        // concatenations that are put together in place
  std::set<graph::NodeId> views;         // views without a kernel
  std::map<graph::Value, Place> places;  // of what lies inside of something else
  std::map<graph::NodeId, Refused> refused;
  MovePrices prices;             // of all that were thought of
  std::vector<PartCopy> copies;  // by whole, in the order of its operands
  const PartCopy* copy_of(graph::Value part, graph::NodeId whole) const;
  bool in_place(graph::NodeId node) const { return wholes.count(node) || views.count(node); }
};

// By node: whether only the run knows the size of a result. What has such a size, or reads such a value, cannot be put in
// place: it would have no memory yet when its first parts are written.
std::vector<bool> sized_in_run(const graph::Graph& graph);
bool can_be_in_place(const graph::Graph& graph, const std::vector<bool>& sized_in_run, graph::NodeId node);

// A view that may lie in place: one operand, read without conditions at indices that no data decides.
bool is_movable_view(const graph::Graph& graph, graph::NodeId node);

// `nodes` are concatenations and movable views whose values are no constants; `constant`: per node, made when the model is
// loaded. Those that can_be_in_place() refuses are left out. Deterministic: later nodes come first, so that earlier ones can be parts of them.
Assemblies place_in_memory(const graph::Graph& graph, const std::set<graph::NodeId>& nodes,
                           const std::vector<bool>& constant, const schedule::Layouts& layouts,
                           const std::vector<Append>& appends = {});

// The layouts of arrays with room to spare.
schedule::Layouts with_capacities(schedule::Layouts layouts, const graph::Graph& graph,
                                  const std::vector<Append>& appends);

// The layouts with what lies inside of something larger said so.
schedule::Layouts with_places(schedule::Layouts layouts, const graph::Graph& graph,
                              const Assemblies& assemblies);

}  // namespace fusewise::fusion

// Concatenations that are put together in place: whoever computes a part writes it straight to where it belongs in
// the whole, and readers of the part find it there. A part that somebody else owns (an input, a constant, an output,
// a part of another whole) is copied. Wholes that lie one after the other inside a larger whole share its memory:
// a chain of growing concatenations is one array.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "schedule/schedule.h"

namespace fusewise::fusion {

// Element [i...] of a value is element [start + i...] of `host`.
struct Place {
  graph::Value host;
  std::vector<Dim> start;
  friend bool operator==(const Place&, const Place&) = default;
};

struct PartCopy {
  graph::Value part;
  graph::NodeId whole;
  std::vector<Dim> start;  // in the whole
  // Code: "part-input", "part-constant", "part-output", "part-shared", "part-layout", "part-grown", "part-alone".
  std::string reason;
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

struct Assemblies {
  std::set<graph::NodeId> wholes;        // concatenations that are put together in place
  std::map<graph::Value, Place> places;  // of parts and of wholes that lie in a larger one
  std::vector<PartCopy> copies;          // by whole, in the order of its operands
  const PartCopy* copy_of(graph::Value part, graph::NodeId whole) const;
};

// By node: whether only the run knows the size of a result. A concatenation with such a size, or such a part, cannot be
// put together in place: it would have no memory yet when its first parts are written.
std::vector<bool> sized_in_run(const graph::Graph& graph);
bool can_be_assembled(const graph::Graph& graph, const std::vector<bool>& sized_in_run, graph::NodeId whole);

// `wholes` are concatenations whose value is no constant; `constant`: per node, made when the model is loaded.
// Those that can_be_assembled() refuses are left out. Deterministic: later wholes come first, so that earlier ones can be parts of them.
Assemblies place_parts(const graph::Graph& graph, const std::set<graph::NodeId>& wholes,
                       const std::vector<bool>& constant, const schedule::Layouts& layouts,
                       const std::vector<Append>& appends = {});

// The layouts of arrays with room to spare.
schedule::Layouts with_capacities(schedule::Layouts layouts, const graph::Graph& graph,
                                  const std::vector<Append>& appends);

// The layouts with what lies inside of something larger said so.
schedule::Layouts with_places(schedule::Layouts layouts, const graph::Graph& graph,
                              const Assemblies& assemblies);

}  // namespace fusewise::fusion

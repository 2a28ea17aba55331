// Whether a loop's condition ever ends it before its number of iterations does: frameworks write counted loops with a
// condition that says the same once more, and only without one is it known how many slices are stacked.
#pragma once

#include <optional>
#include <vector>

#include "graph/builder.h"

namespace fusewise::onnx {

struct LoopEnd {
  const graph::Graph& outside;
  const graph::Graph& body;
  Dim trips;
  std::optional<graph::Value> start;        // outside: whether to begin; always where there is none
  std::vector<graph::Value> initial;        // outside
  graph::Value counter, go_on;              // in the body
  std::vector<graph::Value> before, after;  // in the body
};

// True where the condition provably holds before every one of `trips` iterations.
bool condition_is_idle(const LoopEnd& loop);

}  // namespace fusewise::onnx

// What every rewrite is told and gives back. A rewrite is one free function
// Rewritten name(Graph, const RewriteContext&): nodes that stay are moved from the graph that it is given, not copied.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "graph/graph.h"

namespace fusewise::rewrite {

struct Rewritten {
  graph::Graph graph;
  bool changed = false;  // something was replaced or went away
};

struct RewriteContext {
  // A constant that is computed at compile time may be this much larger than what it is computed from.
  int64_t most_growth_bytes = 64 << 10;
  // A constant larger than this that only moves (a transposed weight) stays a view of the file's bytes: packing reads
  // through it, and no second copy of the weight is made.
  int64_t most_moved_bytes = 1 << 20;
  // Arithmetic operations that a single node may cost to fold.
  int64_t most_fold_operations = 200'000'000;
  ThreadPool* pool = nullptr;  // only splits the work
};

}  // namespace fusewise::rewrite

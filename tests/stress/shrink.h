// Makes a graph on which something fails smaller, as long as it still fails: fewer outputs and nodes, inputs in place
// of what computes them, no symbols, smaller sizes, plainer numbers.
#pragma once

#include "base/function_ref.h"
#include "stress/graph_runner.h"

namespace fusewise::test {

struct ShrinkOptions {
  int64_t most_tries = 1500;
};

// `fails` holds for what is given and for what is returned. It may throw for graphs that cannot be: they do not count.
GraphCase shrink(GraphCase what, FunctionRef<bool(const GraphCase&)> fails,
                 const ShrinkOptions& options = {});

// A failure of run_graph, with settings as plain as it still happens with.
struct GraphFailure {
  GraphCase what;
  GraphSettings settings;
  std::string words;
};
GraphFailure shrink_failure(GraphCase what, GraphSettings settings, const ShrinkOptions& options = {});

}  // namespace fusewise::test

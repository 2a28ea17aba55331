// Runs the rewrites in their order: the only place that knows it. Which of them run depends on the numerics
// mode and on nothing about fusion.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "rewrite/context.h"
#include "rewrite/list.h"

namespace fusewise::rewrite {

// One stage of the order: its rewrites, run in turn; again from the first one while something changes, up to
// a number of rounds.
struct Stage {
  std::string_view reason;
  std::vector<std::string_view> rewrites;
  int most_rounds = 1;
};
const std::vector<Stage>& stages();

// What one run of a rewrite did.
struct Step {
  const Rewrite& rewrite;
  size_t nodes_before = 0, nodes_after = 0;
  bool changed = false;
  double milliseconds = 0;
};

struct DriverOptions {
  // strict mode: Exactness::exact; the others: changes_rounding, which includes the exact ones.
  Exactness allowed = Exactness::changes_rounding;
  std::vector<std::string> skip;  // names of rewrites not to run; other names are not looked at
  RewriteContext context;
  // After each run of a rewrite, with the graph that it left. One that just found nothing in the same graph is not run.
  std::function<void(const Step& step, const graph::Graph& graph)> observe;
};

// The graph after every rewrite that may run. Verified after each round that changed something: InternalError names
// the rewrites that did.
graph::Graph run_rewrites(graph::Graph graph, const DriverOptions& options = {});

}  // namespace fusewise::rewrite

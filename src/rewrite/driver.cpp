#include "rewrite/driver.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "base/error.h"
#include "graph/verifier.h"

namespace fusewise::rewrite {

using graph::Graph;
using graph::NodeId;

const std::vector<Stage>& stages() {
  // Each may give the others new work: folding leaves constants that algebra looks for, what is equal shows
  // only in canonical form, and views that sank meet others. The rounds end when a whole round changes
  // nothing; real models need two or three.
  static const std::vector<std::string_view> clean_up{
      "fold_constants", "simplify_control",  "simplify_algebra", "canonicalize_views",
      "sink_views",     "cancel_transposes", "merge_equal_nodes"};
  constexpr int most_rounds = 8;
  static const std::vector<Stage> order{
      {"uses by dead nodes would keep others from applying", {"remove_dead_nodes"}},
      {"to the canonical form", clean_up, most_rounds},
      {"on the canonical form, where constants and chains show; divisions first, so that scales are products",
       {"pow_to_multiply", "divide_to_multiply", "fold_scale_into_weights"}},
      {"what these leave, to the canonical form again", clean_up, most_rounds},
      {"where captured constants are in the bodies and views in canonical form", {"hoist_invariants"}},
      {"where no reshape below a contraction is going to cancel any more", {"unmerge_contractions"}},
      {"the views that this adds",
       {"fold_constants", "canonicalize_views", "merge_equal_nodes"},
       most_rounds},
  };
  return order;
}

namespace {

bool has_bodies(const Graph& graph) {
  for (NodeId id = 0; id < graph.size(); ++id)
    if (!graph.node(id).bodies.empty()) return true;
  return false;
}

// The rewrite on the graph, then on the bodies in it; those are nested no deeper than graph::deepest_body. No rewrite
// makes bodies where there were none.
Rewritten apply_everywhere(const Rewrite& rewrite, Graph graph, bool bodies, const RewriteContext& context) {
  Rewritten result = rewrite.apply(std::move(graph), context);
  if (!bodies) return result;
  for (NodeId id = 0; id < result.graph.size(); ++id) {
    if (result.graph.node(id).bodies.empty()) continue;
    for (graph::Body& body : result.graph.mutable_node(id).bodies) {
      Rewritten inside = apply_everywhere(rewrite, *body, true, context);
      if (!inside.changed) continue;
      body = std::make_shared<const Graph>(std::move(inside.graph));
      result.changed = true;
    }
  }
  return result;
}

class Driver {
 public:
  Driver(Graph graph, const DriverOptions& options)
      : graph_(std::move(graph)), bodies_(has_bodies(graph_)), options_(options) {}

  Graph run() {
    for (const Stage& stage : stages())
      for (int round = 0; round < stage.most_rounds && run_round(stage); ++round) continue;
    return std::move(graph_);
  }

 private:
  bool run_round(const Stage& stage) {
    std::string changing;
    for (std::string_view name : stage.rewrites) {
      const Rewrite* rewrite = find_rewrite(name);
      check(rewrite != nullptr, "a stage names a rewrite that is not in the list");
      if (may_run(*rewrite) && !found_nothing_.contains(name) && apply(*rewrite))
        changing += (changing.empty() ? "" : ", ") + std::string(name);
    }
    if (changing.empty()) return false;
    named(changing, [&] { graph::verify(graph_); });
    return true;
  }

  template <class Work>
  static void named(std::string_view rewrite, const Work& work) {
    try {
      work();
    } catch (const InternalError& error) {
      throw InternalError(fmt::format("rewrite {}: {}", rewrite, error.what()));
    }
  }

  bool may_run(const Rewrite& rewrite) const {
    if (rewrite.exactness == Exactness::changes_rounding && options_.allowed == Exactness::exact)
      return false;
    return std::ranges::find(options_.skip, rewrite.name) == options_.skip.end();
  }

  bool apply(const Rewrite& rewrite) {
    const auto begin = std::chrono::steady_clock::now();
    Step step{rewrite, graph_.size(), graph_.size(), false, 0};
    named(rewrite.name, [&] {
      Rewritten rewritten = apply_everywhere(rewrite, std::move(graph_), bodies_, options_.context);
      graph_ = std::move(rewritten.graph);
      step.changed = rewritten.changed;
    });
    step.nodes_after = graph_.size();
    step.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    if (options_.observe) options_.observe(step, graph_);
    if (step.changed)
      found_nothing_.clear();
    else
      found_nothing_.insert(rewrite.name);
    return step.changed;
  }

  Graph graph_;
  const bool bodies_;
  std::set<std::string_view> found_nothing_;  // rewrites that ran on the graph as it is and did not change it
  const DriverOptions& options_;
};

}  // namespace

Graph run_rewrites(Graph graph, const DriverOptions& options) {
  return Driver(std::move(graph), options).run();
}

}  // namespace fusewise::rewrite

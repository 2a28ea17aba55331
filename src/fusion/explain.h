// Why nodes of the model run in one kernel or not, in words and numbers. Rows come from the plan alone; a pair is
// priced the other way too when asked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusion/planner.h"

namespace fusewise::fusion {

struct ExplainRow {
  uint32_t from = 0, to = 0;  // model nodes: `to` reads what `from` computes
  bool fused = false;
  std::string reason;                 // "fused", "cost", "mode", "pinned", "budget" or the code of a refusal
  std::string detail;                 // the reason in a sentence
  double ms_now = 0;                  // of the kernels that compute them
  std::optional<double> ms_if_fused;  // of the one kernel; nothing where none is possible
  std::optional<double> ms_if_apart;  // fused pairs, when asked: of two kernels, cut between them
  std::string needs;                  // what would have to change
};

// A row for each pair of model nodes with an edge between them.
std::vector<ExplainRow> explain_model(const graph::Graph& graph, const FusionPlan& plan);
// The rows that a node is part of.
std::vector<ExplainRow> explain_node(const graph::Graph& graph, const FusionPlan& plan, uint32_t model_node);
// Two model nodes, neighbours or not, priced both ways. Options as given to make_plan.
ExplainRow explain_pair(const graph::Graph& graph, const FusionPlan& plan, const PlanOptions& options,
                        uint32_t from, uint32_t to);
// The kernels that compute a model node: members and price, term by term.
std::string describe_kernels(const graph::Graph& graph, const FusionPlan& plan, const PlanOptions& options,
                             uint32_t model_node);

// The fields of the contract: from, to, fused, reason, ms_now, ms_if_fused, needs, and detail.
std::string explain_to_json_text(const graph::Graph& graph, const std::vector<ExplainRow>& rows);
std::string explain_to_text(const graph::Graph& graph, const std::vector<ExplainRow>& rows);

}  // namespace fusewise::fusion

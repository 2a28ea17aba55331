#include "fusion/explain_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "fusion/model_nodes.h"

namespace fusewise::fusion {

namespace {

struct Need {
  std::string_view reason, needs;
};

constexpr Need needs[] = {
    {"mode", "--fusion on"},
    {"pinned", "a plan file that does not pin one of the two groups"},
    {"budget", "a larger search budget"},
    {"forbidden", "the edge to be allowed again"},
    {"barrier", "the tensor not to be asked for as stored"},
    {"once", "nothing: the constant part runs when the model is loaded, not in every run"},
    {"in-place", "nothing: no copy is made, the tensor is written to where it belongs from the start"},
    {"view", "nothing: no copy is made, the view is read where its operand lies"},
    {"assembled", "nothing: no copy is made, the concatenation is read where its parts were written"},
    {"part-input", "--in-place, where the caller keeps the input and the concatenation in the same memory"},
    {"part-grown", "nothing: where the caller keeps both in one array, nothing is copied"},
    {"part-constant", "nothing: it is not computed"},
    {"part-output", "the tensor not to be an output of the model"},
    {"part-shared", "the concatenations to share their order, so that one lies inside of the other"},
    {"part-layout", "readers of the part that want it in the concatenation's layout"},
    {"part-alone",
     "nothing: steps that are no loops over independent elements want their tensors in one piece"},
    {"alone", "nothing: it is a step of its own"},
    {"part-strides", "nothing: the elements would lie in an order that no reader of rows wants"},
    {"part-view", "the tensor not to be a view of one that lies elsewhere"},
    {"cycle", "the kernel in between to be part of the group as well"},
    {"region-size", "a smaller group around them"},
    {"arguments", "fewer tensors at the group's border"},
    {"gathered-operand", "the gathered tensor to be cheap to compute for a single element"},
    {"scratch", "smaller tiles, or a machine with a larger private cache"},
    {"phases", "a kernel with a barrier inside, which costs what a second kernel costs"},
    {"not-visible", "a common tile: the value is computed in another part of the loops than it is read in"},
    {"not-owned", "tiles of the stored tensor that do not overlap"},
    {"registers", "an elementwise reader of the register tile"},
    {"missing-stage", "a schedule that stores every reduction"},
    {"code-size", "less unrolling: the kernel would be too long"},
};

}  // namespace

std::string needs_of(const ExplainRow& row) {
  if (row.fused) return {};
  if (row.reason == "cost" && row.ms_if_fused) {
    const double loss = *row.ms_if_fused - row.ms_now;
    if (loss > 0)
      return fmt::format("one kernel to take {:.4g} ms less than it would ({:.4g} ms)", loss,
                         *row.ms_if_fused);
    return fmt::format(
        "a stronger search: when the pair was tried, the gain of {:.4g} ms was too small to trust or not "
        "there yet",
        -loss);
  }
  const auto it =
      std::find_if(std::begin(needs), std::end(needs), [&](const Need& n) { return n.reason == row.reason; });
  return it == std::end(needs) ? std::string() : std::string(it->needs);
}

std::string move_words(const Assemblies& assemblies, graph::NodeId from, graph::NodeId to) {
  for (const graph::NodeId node : {to, from}) {
    const auto price = assemblies.prices.find(node);
    if (price == assemblies.prices.end()) continue;
    const char* words =
        assemblies.in_place(node)
            ? "; the kernels around take {:.4g} ms with it in place, with kernels for it {:.4g} ms"
            : "; with it in place the kernels around would take {:.4g} ms, as it is {:.4g} ms";
    return fmt::format(fmt::runtime(words), price->second.in_place / 1e3, price->second.apart / 1e3);
  }
  return {};
}

std::string kernel_title(const graph::Graph& graph, const graph::Region& region, int number) {
  const bool is_control = graph::kind_of(graph.node(region.nodes.front()).op) == graph::Kind::control;
  std::string text = fmt::format("{} {}:", is_control ? "control flow" : "kernel", number);
  std::string_view comma;
  for (const uint32_t source : model_nodes_of(graph, region)) {
    text +=
        fmt::format("{} {} '{}'", comma, graph.model_nodes[source].op_type, model_node_name(graph, source));
    comma = ",";
  }
  return text + "\n";
}

std::string explain_to_json_text(const graph::Graph& graph, const std::vector<ExplainRow>& rows) {
  nlohmann::ordered_json json;
  json["schema"] = "fusewise.explain/1";
  json["rows"] = nlohmann::ordered_json::array();
  const auto number = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  };
  for (const ExplainRow& row : rows) {
    nlohmann::ordered_json one = {{"from", model_node_name(graph, row.from)},
                                  {"to", model_node_name(graph, row.to)},
                                  {"fused", row.fused},
                                  {"reason", row.reason},
                                  {"ms_now", row.ms_now},
                                  {"ms_if_fused", number(row.ms_if_fused)},
                                  {"needs", row.needs},
                                  {"detail", row.detail},
                                  {"from_node", row.from},
                                  {"to_node", row.to}};
    if (row.ms_if_apart) one["ms_if_apart"] = *row.ms_if_apart;
    json["rows"].push_back(std::move(one));
  }
  return json.dump();
}

std::string explain_to_text(const graph::Graph& graph, const std::vector<ExplainRow>& rows) {
  using Align = TextTable::Align;
  TextTable table({{"from"},
                   {"to"},
                   {"fused"},
                   {"reason"},
                   {"ms now", Align::right},
                   {"ms if fused", Align::right},
                   {"needs"}});
  for (const ExplainRow& row : rows)
    table.add_row({model_node_name(graph, row.from), model_node_name(graph, row.to), row.fused ? "yes" : "no",
                   row.reason, fmt::format("{:.4f}", row.ms_now),
                   row.ms_if_fused ? fmt::format("{:.4f}", *row.ms_if_fused) : "-", row.needs});
  return table.to_string();
}

}  // namespace fusewise::fusion

// Which running state follows from a region's expressions, or why none does.
#include "schedule/cascade.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "graph/text.h"
#include "support/case_file.h"

namespace fusewise::schedule {
namespace {

std::string_view word(Combine combine) { return graph::name_of(combine); }

std::string to_text(const RegionForms& forms, const Cascade& cascade) {
  std::string text;
  for (const CascadeMember& m : cascade.members) {
    text += fmt::format("%{} {}", m.node, word(forms.form(m.node).accumulation->combine));
    if (m.reference >= 0) {
      text += fmt::format(" against %{} [{}] by {}", cascade.members[static_cast<size_t>(m.reference)].node,
                          fmt::join(m.reference_at, " "), name_of(m.identity));
      if (m.scale != 1) text += fmt::format(" scale {}", m.scale);
    }
    for (const CascadeMember::Factor& f : m.factors)
      text +=
          fmt::format("{} %{} [{}]", f.divides ? ", divided by" : ", times", f.node, fmt::join(f.at, " "));
    text += '\n';
  }
  for (const auto& [node, member] : cascade.reference_nodes)
    text +=
        fmt::format("%{} reads the state of %{}\n", node, cascade.members[static_cast<size_t>(member)].node);
  return text;
}

TEST(Cascade, Cases) {
  test::run_cases("schedule/cascade.case", [](const test::Case& c) {
    const graph::Graph graph = graph::parse(c.text("input"));
    Region region;
    for (NodeId n = 0; n < graph.size(); ++n)
      if (graph::has_form(graph, n)) region.nodes.push_back(n);
    for (const graph::GraphOutput& o : graph.outputs) region.outputs.push_back(o.value);
    const RegionForms forms = region_forms(graph, region);
    // Of the last reduction.
    NodeId last = graph::no_node;
    for (NodeId n : region.nodes)
      if (forms.form(n).accumulation) last = n;
    const CascadeResult result = derive_cascade(forms, last, std::nullopt);
    return result.verdict ? to_text(forms, result.cascade)
                          : fmt::format("{} at %{}: {}\n", result.verdict.code, result.verdict.nodes[0],
                                        result.verdict.detail);
  });
}

}  // namespace
}  // namespace fusewise::schedule

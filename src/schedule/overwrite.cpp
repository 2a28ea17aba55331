#include "schedule/overwrite.h"

#include <algorithm>
#include <map>
#include <set>

namespace fusewise::schedule {

using graph::Form;
using graph::Read;

namespace {

Layout layout_of(const RegionForms& forms, const Tree& tree, Value v) {
  const auto it = tree.layouts.find(v);
  return it != tree.layouts.end() ? it->second : row_major(forms.graph->type(v).rank());
}

// True if every read of `input` in the region happens in the body of `root` at the very element that is stored.
bool read_in_place(const RegionForms& forms, const Stage& root, Value input) {
  // Per node of the body: the root's axis behind each of its axes; empty where that is no one-to-one copy.
  std::map<NodeId, std::vector<int>> axes;
  const Form& own = forms.form(root.node);
  for (int a = 0; a < own.parallel_axes(); ++a) axes[root.node].push_back(a);
  axes[root.node];
  std::vector<NodeId> body = {root.node};
  body.insert(body.end(), root.inlined.rbegin(), root.inlined.rend());
  const std::set<NodeId> members(body.begin(), body.end());
  for (NodeId node : forms.region.nodes)
    if (!members.count(node))
      for (const Read& read : forms.form(node).reads)
        if (forms.operand(node, read) == input) return false;
  for (NodeId node : body) {
    const auto it = axes.find(node);
    if (it == axes.end()) continue;
    const std::vector<int> reader = it->second;
    const Form& form = forms.form(node);
    for (const Read& read : form.reads) {
      const Value operand = forms.operand(node, read);
      const bool inner = members.count(operand.node) != 0;
      if (!inner && operand != input) continue;
      const Shape& shape = forms.graph->type(operand).shape;
      bool identity =
          read.guards.empty() && !form.accumulation && !(reader.empty() && own.parallel_axes() > 0);
      std::vector<int> mapped;
      for (size_t d = 0; d < shape.size() && identity; ++d) {
        const int a = identity_axis(form, read, static_cast<int>(d), shape[d]);
        identity = a >= 0 && static_cast<size_t>(a) < reader.size();
        if (identity) mapped.push_back(reader[static_cast<size_t>(a)]);
      }
      if (!inner) {
        bool straight = identity && static_cast<int>(mapped.size()) == own.parallel_axes();
        for (size_t d = 0; d < mapped.size() && straight; ++d) straight = mapped[d] == static_cast<int>(d);
        if (!straight) return false;
        continue;
      }
      if (!identity) mapped.clear();
      const auto [place, first] = axes.emplace(operand.node, mapped);
      if (!first && place->second != mapped) place->second.clear();
    }
  }
  return true;
}

}  // namespace

std::vector<std::pair<Value, Value>> overwritable(const RegionForms& forms, const Tree& tree) {
  std::vector<std::pair<Value, Value>> result;
  const auto roots =
      std::count_if(tree.stages.begin(), tree.stages.end(), [](const Stage& s) { return s.parent < 0; });
  if (roots != 1 || tree.phases != 1) return result;
  const Stage& root = tree.stages.front();
  const Value output{root.node, 0};
  for (Value input : forms.inputs) {
    const graph::TensorType &in = forms.graph->type(input), &out = forms.graph->type(output);
    if (in.element != out.element || in.shape != out.shape) continue;
    if (layout_of(forms, tree, input) != layout_of(forms, tree, output)) continue;
    if (read_in_place(forms, root, input)) result.push_back({output, input});
  }
  return result;
}

}  // namespace fusewise::schedule

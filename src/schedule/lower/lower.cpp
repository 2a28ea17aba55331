#include "schedule/lower.h"

#include <algorithm>

#include "base/error.h"
#include "kernel/sizes.h"
#include "schedule/lower/lowering.h"

namespace fusewise::schedule {

Lowering::Lowering(const RegionForms& forms, const Tree& tree, const LowerOptions& options)
    : forms_(forms), tree_(tree), options_(options) {
  storage_.resize(tree.stages.size());
  ring_done_.resize(tree.stages.size(), kernel::none);
  for (Value v : forms_.inputs) add_argument(*forms_.graph, v, false);
  for (Value v : forms_.region.outputs) add_argument(*forms_.graph, v, true);
  for (Value v : tree_.temporaries) add_argument(*forms_.graph, v, true);
  for (const Chain& chain : tree_.chains) {
    partials_.emplace_back();
    if (!chain.split()) continue;
    const Stage& runner = stage(chain.runner);
    const Form& form = forms_.form(runner.node);
    const Dim& extent = form.axes[static_cast<size_t>(block_axis(form))].extent;
    const Dim parts = ceil_div(extent, Dim(runner.loops[static_cast<size_t>(chain.part_loop)].tile));
    for (const CascadeMember& member : chain.cascade.members) {
      kernel::Buffer buffer;
      buffer.name = "p" + std::to_string(result_.partials.size());
      buffer.element = forms_.form(member.node).accumulation->accumulator;
      buffer.written = true;
      partials_.back().push_back(builder_.buffer(buffer));
      result_.partials.push_back({buffer.element, parts * product(shape_of(member.node))});
    }
  }
}

LoweredKernel Lowering::run() {
  for (int phase = 0; phase < tree_.phases; ++phase) {
    std::vector<int> roots;
    for (size_t i = 0; i < tree_.stages.size(); ++i)
      if (tree_.stages[i].parent < 0 && tree_.stages[i].phase == phase) roots.push_back(static_cast<int>(i));
    if (!roots.empty()) result_.kernel.phases.push_back(emit_phase(roots));
  }
  return std::move(result_);
}

std::optional<int64_t> shared_bytes(const LoweredKernel& lowered) {
  return kernel::shared_bytes(lowered.kernel);
}

LoweredKernel lower(const RegionForms& forms, const Tree& tree, const LowerOptions& options) {
  return Lowering(forms, tree, options).run();
}

}  // namespace fusewise::schedule

#include "fusion/plain_schedule.h"

#include "schedule/footprint.h"

namespace fusewise::fusion {

using schedule::StageChoice;

std::optional<schedule::Schedule> plain_schedule(const schedule::RegionForms& forms,
                                                 const machine::Machine& machine, const ReductionOrder& order,
                                                 const SymbolValues& usual) {
  if (forms.region.outputs.size() != 1) return std::nullopt;
  StageChoice stage;
  stage.node = forms.region.outputs[0].node;
  for (const auto& [node, form] : forms.forms)
    if (form.accumulation && node != stage.node) return std::nullopt;
  const graph::Form& form = forms.form(stage.node);
  const int rank = form.parallel_axes();
  const auto extent = [&](int a) {
    return schedule::usual_value(form.axes[static_cast<size_t>(a)].extent, usual);
  };
  for (int a = rank; a-- > 0 && stage.vector_axis < 0;)
    if (extent(a) > 1) stage.vector_axis = a;
  for (int a = 0; a < rank; ++a) {
    stage.storage.push_back(a);
    if (a != stage.vector_axis && !form.axes[static_cast<size_t>(a)].extent.is(1))
      stage.loops.push_back({a, 1});
  }
  stage.grid_loops = static_cast<int>(stage.loops.size());
  if (stage.vector_axis >= 0) stage.loops.push_back({stage.vector_axis, machine.lanes(DataType::float32)});
  schedule::Schedule result;
  result.order = order;
  result.stages.push_back(std::move(stage));
  return result;
}

}  // namespace fusewise::fusion

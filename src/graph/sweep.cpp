#include "graph/sweep.h"

#include "base/error.h"

namespace fusewise::graph {

std::optional<Combine> combine_of(Update update) {
  switch (update) {
    case Update::replace:
      return std::nullopt;
    case Update::sum:
      return Combine::sum;
    case Update::product:
      return Combine::product;
    case Update::max:
      return Combine::max;
    case Update::min:
      return Combine::min;
  }
  throw InternalError("unknown kind of update");
}

Sweep sweep_of(const Node& node) {
  Sweep sweep;
  if (const auto* prefix = std::get_if<PrefixAttributes>(&node.attributes)) {
    sweep.axis = prefix->axis;
    sweep.combine = prefix->combine;
    sweep.exclusive = prefix->exclusive;
    sweep.reverse = prefix->reverse;
    return sweep;
  }
  const auto& scatter = attributes<ScatterAttributes>(node);
  sweep.axis = scatter.axis;
  sweep.combine = combine_of(scatter.update);
  sweep.base = 0;
  sweep.index = 1;
  sweep.value = 2;
  return sweep;
}

}  // namespace fusewise::graph

// Lowers a node of kind sweep (graph/sweep.h) to a kernel of its own: the lines of the swept axis are its blocks, or
// pieces of neighbouring lines where these lie along the innermost dimension.
#pragma once

#include "schedule/lower.h"

namespace fusewise::schedule {

// Operands and result in row-major order.
LoweredKernel lower_sweep(const Graph& graph, NodeId node);

}  // namespace fusewise::schedule

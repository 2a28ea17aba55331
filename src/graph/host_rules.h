// The types of what a host function makes (hostops/hostops.h).
#pragma once

#include <span>

#include "graph/shape_rules.h"

namespace fusewise::graph {

// UserError for operands, parameters or symbols that do not fit the function.
Inference infer_host(const HostAttributes& attributes, std::span<const TensorType> operands);

}  // namespace fusewise::graph

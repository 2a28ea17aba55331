// The order in which the nodes of a graph are imported.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "import/onnx/call.h"
#include "import/onnx/model.h"

namespace fusewise::onnx {

// The nodes that `results` depend on, every node behind what it reads, otherwise in file order. Names that
// are not made by a node must be visible in `scope`. Throws UserError for a name that nothing makes, a name
// made twice, and a cycle, whose tensors it names.
std::vector<uint32_t> sorted_nodes(const std::vector<Node>& nodes, const Scope& scope,
                                   const std::vector<std::string_view>& results);

}  // namespace fusewise::onnx

// Outputs that somebody else computed, from files.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/interpreter/tensor.h"
#include "session/session.h"

namespace fusewise::session {

// By output, nothing where the source has none. `source` is a .npz file with exact names, a folder that `run
// --output-dir` wrote (outputs.json), an ONNX test's folder (output_N.pb), or a folder with NAME.npy files.
std::vector<std::optional<graph::Tensor>> read_expected_outputs(std::span<const OutputInfo> outputs,
                                                                const std::string& source);

}  // namespace fusewise::session

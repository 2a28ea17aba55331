// Outputs that somebody else computed, from files.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/interpreter/tensor.h"
#include "session/session.h"

namespace fusewise::session {

// By output, nothing where the source has none. `source` is a .npz file with exact names, a folder that `run
// --output-dir` wrote (outputs.json), an ONNX test's folder (output_N.pb), or a folder with NAME.npy files.
// Warns of names that belong to no output.
std::vector<std::optional<graph::Tensor>> read_expected_outputs(
    std::span<const OutputInfo> outputs, const std::string& source,
    const std::function<void(const std::string&)>& warn);

}  // namespace fusewise::session

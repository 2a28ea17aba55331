// verify --reduce: a small model that fails as the given one does, with the inputs that it fails on.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/session_options.h"
#include "session/verify.h"

namespace fusewise::cli {

// What a compiled run's outputs are worth.
using Judge = std::function<std::vector<session::OutputVerdict>(const graph::Graph& graph,
                                                                std::span<const graph::Tensor> inputs,
                                                                std::span<const graph::Tensor> outputs)>;

// Writes `out`, and beside it a folder of its name with ".data" in place of the suffix, in the form of ONNX's test
// data: inputs, and the outputs that the interpreter gives. Says what it found; null when the model does not fail.
nlohmann::ordered_json reduce_failure(const CompileFlags& flags, const Judge& judge, const std::string& out,
                                      Console& console);

}  // namespace fusewise::cli

// Tensors for a model's inputs, from files.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "session/inputs.h"

namespace fusewise::session {

// A .npy or .pb file.
graph::Tensor read_tensor_file(const std::string& path);

// By input; nothing where no file gives the input. UserError where a tensor's type is not the input's.
std::vector<std::optional<graph::Tensor>> read_inputs(std::span<const InputInfo> inputs,
                                                      const InputRequest& request,
                                                      const std::function<void(const std::string&)>& warn);

}  // namespace fusewise::session

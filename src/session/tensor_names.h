// Which tensors of a model file people mean.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace fusewise::session {

// The tensors that `wanted` names and the model does not deliver anyway, each once: a tensor's name, else a pattern
// with * and ? for what nodes make, else a node (fusion/model_nodes.h says how nodes are named), whose outputs they
// are. Tensors inside of nested graphs have no name here. UserError with the nearest names where nothing fits.
std::vector<std::string> resolve_tensors(const std::string& model_path, std::span<const std::string> wanted);

}  // namespace fusewise::session

// NumPy's archives of arrays (.npz): zip files, stored or deflated, of any size.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "graph/interpreter/tensor.h"

namespace fusewise::session {

// Arrays by their exact names, in the order of the archive.
std::vector<std::pair<std::string, graph::Tensor>> read_npz(const std::filesystem::path& path);

}  // namespace fusewise::session

// Tensors as results: in a few words, as JSON, and as files.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/console.h"
#include "graph/interpreter/tensor.h"

namespace fusewise::cli {

struct NamedTensor {
  std::string name;
  graph::Tensor tensor;
};

// "float32[1, 1000]"
std::string type_text(const graph::Tensor& tensor);
// A table: name, type, range, mean, what is not finite, first elements.
std::string summary_table(const std::vector<NamedTensor>& tensors);
nlohmann::ordered_json summary_json(const std::vector<NamedTensor>& tensors);

// DIR/0.npy, 1.npy, ... and outputs.json; makes the folder. `format` is "npy" or "pb".
void write_outputs(const std::string& folder, const std::string& format,
                   const std::vector<NamedTensor>& tensors);

}  // namespace fusewise::cli

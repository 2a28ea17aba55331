// Embedded models: the acceptance networks with seeded random weights, written as ONNX files the way
// exporters write them (batch normalisation kept, GELU as a chain around Erf, ...), each in full and in a
// tiny size.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "export/onnx_builder.h"

namespace fusewise {

struct ZooEntry {
  std::string name;
  std::string description;
};

std::vector<ZooEntry> zoo_models();

// The model; its weights are made when it is written. UserError for a name that is not in the list.
OnnxBuilder build_zoo(std::string_view name);

void write_zoo(std::string_view name, const std::filesystem::path& path);

}  // namespace fusewise

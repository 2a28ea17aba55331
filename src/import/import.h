// Imports model files: ONNX in, a Graph of primitives out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace fusewise {

struct ImportOptions {
  // Takes zeros where a file of external data is missing: for looking at a model without its weights.
  bool allow_missing_external_data = false;
  // Inputs that are constants in this import, by name: for models whose shapes depend on an input's values.
  // They are no inputs of the graph.
  std::map<std::string, graph::ConstantData> bound_inputs = {};
  // Symbols of the model's inputs that have a value in this import.
  std::map<std::string, int64_t> symbol_values = {};
};

// Throws UserError for what is wrong with the file, and UnsupportedError with an entry for each kind of thing
// in the whole model that is not imported.
graph::Graph import_onnx(const std::string& path, const ImportOptions& options = {});
// `path` serves messages and external data; the bytes must live as long as `owner`, which the graph keeps.
graph::Graph import_onnx(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                         const std::string& path, const ImportOptions& options = {});

// What a model file states about itself, without importing it.
struct ModelSummary {
  struct Tensor {
    std::string name;
    std::string type;  // "float32[batch, 3, 224, 224]"
  };
  int64_t ir_version = 0;
  std::string producer;
  std::vector<std::pair<std::string, int64_t>> opsets;  // domain and version
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<Tensor> inputs, outputs;
  std::vector<std::string> symbols;
  std::map<std::string, int64_t> op_counts;  // nested graphs and functions included
  int64_t nodes = 0;
  int64_t functions = 0;
  int64_t initializers = 0;
  int64_t parameters = 0;       // elements of floating-point initializers and constants
  int64_t parameter_bytes = 0;  // of all initializers and constants
};
ModelSummary summarize_onnx(const std::string& path);

// A tensor file of ONNX's test folders (a serialized TensorProto).
graph::ConstantData read_onnx_tensor(const std::string& path);

}  // namespace fusewise

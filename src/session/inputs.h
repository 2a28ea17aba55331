// What a model is run on: tensors from files where they are given, seeded random ones elsewhere, in shapes that fit
// together.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/interpreter/tensor.h"
#include "session/random_inputs.h"

namespace fusewise::session {

struct InputInfo {
  std::string name;
  DataType type = DataType::undefined;
  Shape shape;
  std::optional<Dim> index_extent;  // random_inputs.h
};
std::vector<InputInfo> inputs_of(const graph::Graph& graph);

// A file name in a folder of inputs: '/' and ':' become '_'.
std::string file_name_of(const std::string& tensor_name);
// Whether `name` matches a pattern with * and ?.
bool matches(const std::string& pattern, const std::string& name);

struct InputRequest {
  // A folder with NAME.npy per input, a .npz with exact names, or a folder of ONNX's tests with input_N.pb.
  std::string source = {};
  std::vector<std::pair<std::string, std::string>> files = {};            // input name, file
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes = {};  // pattern, shape
  SymbolValues dims = {};
  std::vector<std::pair<std::string, ValueRange>> ranges = {};  // pattern
  uint64_t seed = 0;
  bool warn_of_random = false;  // say which inputs no file gives, where others have one
};

struct PreparedInputs {
  std::vector<graph::Tensor> tensors;  // in the model's order
  SymbolValues symbols;
};

// UserError for what does not fit the model: unknown names, other types, contradicting shapes.
PreparedInputs prepare_inputs(std::span<const InputInfo> inputs, const InputRequest& request,
                              const std::function<void(const std::string&)>& warn);
// What of the inputs the request leaves open, in words that say how to give it: the sizes, which are 1 then, and the
// values of the integers named in `valued`, which are random. Empty where nothing is open.
std::string open_choices(std::span<const InputInfo> inputs, const InputRequest& request,
                         std::span<const std::string> valued);
// The symbols alone, from files, --dim and --shape; symbols that stay open are missing.
SymbolValues requested_symbols(std::span<const InputInfo> inputs, const InputRequest& request);

}  // namespace fusewise::session

// A small part of a model that fails as the whole does. The parts get their inputs from a run of the whole by the
// interpreter, so that each can be judged on its own. Deterministic: the same model, inputs and judge give the same
// part.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "export/onnx_builder.h"
#include "graph/interpreter/tensor.h"
#include "session/model_parts.h"

namespace fusewise::session {

// Whether a model, run on its inputs, fails as the whole did.
using StillFails = std::function<bool(const OnnxBuilder& model, std::span<const graph::Tensor> inputs)>;

struct ReduceOptions {
  int64_t most_tries = 400;
  int threads = 1;  // of the interpreter
  std::function<void(int64_t tried, size_t nodes)> progress = {};
};

struct ReducedModel {
  OnnxBuilder model;
  std::vector<std::string> input_names;
  std::vector<graph::Tensor> inputs;
  std::vector<std::string> output_names;
  std::vector<std::string> node_names;  // as the file has them
  uint32_t nodes_before = 0;
  int64_t tried = 0;
  bool complete =
      true;  // without any one of its nodes it would not fail; otherwise there were too many to try
};

// The tensors of a run: inputs, and what each node makes. UnsupportedError where the interpreter cannot give them.
RecordedTensors record_tensors(const std::string& path, std::span<const graph::Tensor> inputs, int threads);

// Nothing when the whole does not fail.
std::optional<ReducedModel> reduce_model(const std::string& path, std::span<const graph::Tensor> inputs,
                                         const StillFails& still_fails, const ReduceOptions& options = {});

}  // namespace fusewise::session

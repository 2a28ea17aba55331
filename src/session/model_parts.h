// Parts of a model file as models of their own: some of its nodes, with what comes from elsewhere as inputs.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "export/onnx_builder.h"
#include "graph/interpreter/tensor.h"
#include "numerics/dim.h"

namespace fusewise::session {

// A tensor as it was in a run of the whole, and as the whole declares it.
struct RecordedTensor {
  graph::Tensor value;
  Shape declared;
};
using RecordedTensors = std::map<std::string, RecordedTensor>;

struct ModelPart {
  std::vector<uint32_t> nodes;       // of the file, ascending
  std::vector<std::string> outputs;  // tensors that these nodes make
  std::set<std::string> constants;   // tensors from elsewhere that the part holds instead of taking them
  friend auto operator<=>(const ModelPart&, const ModelPart&) = default;
};

class ModelParts {
 public:
  // UserError for a file that cannot be read.
  explicit ModelParts(const std::string& path);
  ~ModelParts();
  ModelParts(const ModelParts&) = delete;
  ModelParts& operator=(const ModelParts&) = delete;

  uint32_t size() const;                                  // nodes, those of nested graphs not counted
  std::vector<std::string> outputs() const;               // of the model
  std::vector<std::string> made_by(uint32_t node) const;  // its outputs that have a name
  // Of all nodes.
  std::vector<std::string> made() const;
  // Those of `nodes` that `outputs` depend on.
  std::vector<uint32_t> needed(const std::vector<uint32_t>& nodes,
                               const std::vector<std::string>& outputs) const;
  // Tensors that `nodes` make and do not use, and outputs of the model among what they make.
  std::vector<std::string> ends_of(const std::vector<uint32_t>& nodes) const;
  // Tensors that the part takes from elsewhere, weights aside; in the order of their first use.
  std::vector<std::string> inputs_of(const ModelPart& part) const;

  // The part with its weights. Its inputs are inputs_of(part), declared as the recorded tensors are. UnsupportedError
  // for what cannot be written: an input that is no tensor, a kind of attribute.
  OnnxBuilder build(const ModelPart& part, const RecordedTensors& recorded) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fusewise::session

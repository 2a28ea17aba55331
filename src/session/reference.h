// What the interpreter says of a model's outputs, to hold compiled ones to.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/interpreter/double_interpreter.h"
#include "graph/interpreter/tensor.h"
#include "session/verify.h"

namespace fusewise::session {

struct ReferenceOptions {
  bool bounds = true;  // also what `rounded_otherwise` needs
  graph::ErrorModel model = graph::ErrorModel::probable;
  int threads = 1;
  std::function<void(const char* what, graph::NodeId node, size_t nodes)> progress = {};
};

class Reference {
 public:
  Reference(const graph::Graph& graph, std::span<const graph::Tensor> inputs,
            const ReferenceOptions& options = {});

  // What strict mode promises.
  std::vector<OutputVerdict> exact(std::span<const graph::Tensor> outputs) const;
  // What default mode promises: inside the propagated bound, and no farther from the exact results than rounding
  // explains (spread.h).
  std::vector<OutputVerdict> rounded_otherwise(std::span<const graph::Tensor> outputs) const;
  // compare_within.
  std::vector<OutputVerdict> within(std::span<const graph::Tensor> outputs, double relative) const;

 private:
  std::vector<std::string> names_;
  std::vector<graph::Tensor> strict_;
  std::vector<graph::BoundedTensor> bounded_;
  bool decides_ = false;
};

bool all_passed(std::span<const OutputVerdict> verdicts);

}  // namespace fusewise::session

// Compiled kernels one by one against the reference interpreter: every value that a kernel stores is compared, in the
// order of the plan, so that the first one that is off names the kernel to look at.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "graph/interpreter/tensor.h"
#include "session/reference.h"

namespace fusewise::session {

struct KernelVerdict {
  std::string kernel;              // its symbol
  std::vector<std::string> nodes;  // of the model, that it computes
  bool once = false;               // runs when the program is loaded
  int phases = 1;
  OutputVerdict verdict;  // of one stored value, named after the tensor of the model that it belongs to
};

struct KernelCheckOptions {
  ReferenceOptions reference;
  int threads = 1;
  // Which of the reference's verdicts counts.
  std::function<std::vector<OutputVerdict>(const Reference&, std::span<const graph::Tensor>)> judge;
};

// In plan order, a verdict per kernel and stored value. The reference interprets the rewritten graph: what rewrites
// changed is not in question here. UserError when the inputs do not fit.
std::vector<KernelVerdict> check_kernels(const compiler::Compiled& compiled,
                                         std::span<const graph::Tensor> inputs,
                                         const KernelCheckOptions& options);

}  // namespace fusewise::session

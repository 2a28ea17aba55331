// Calls of host functions from operator tables.
#pragma once

#include <vector>

#include "import/onnx/call.h"

namespace fusewise::onnx {

struct HostRequest {
  hostops::Function function;
  std::vector<graph::Value> operands;
  std::vector<Dim> parameters;
  int symbols = 0;  // that it binds; named after the node
};
// All results. Where the operands depend on constants alone they are constants, and no symbol is needed.
std::vector<graph::Value> host_call(Call& call, const HostRequest& request);

}  // namespace fusewise::onnx

// Tensors as ONNX's test folders hold them: serialized TensorProto messages.
#pragma once

#include <filesystem>
#include <string>

#include "graph/interpreter/tensor.h"

namespace fusewise::session {

void write_tensor_proto(const std::filesystem::path& path, const std::string& name,
                        const graph::Tensor& tensor);

}  // namespace fusewise::session

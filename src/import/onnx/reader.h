// Reads the protobuf wire format of ONNX. The file may be hostile: whatever is wrong with it becomes a
// UserError that names the file.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "import/onnx/model.h"

namespace fusewise::onnx {

// Maps the file and reads it.
Model read_model(const std::string& path);

// `path` only serves messages and external data. The bytes must stay alive as long as `owner`.
Model read_model(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                 const std::string& path);

// A serialized TensorProto, as ONNX's test folders hold them.
Tensor read_tensor(std::span<const std::byte> bytes, const std::string& path);

}  // namespace fusewise::onnx

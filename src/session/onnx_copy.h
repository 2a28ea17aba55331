// What was read from a model file, in the form in which model files are written.
#pragma once

#include "export/onnx_builder.h"
#include "import/onnx/model.h"
#include "import/onnx/tensor_data.h"

namespace fusewise::session {

// External data comes along. UserError when it is missing.
OnnxTensor copy_of(const onnx::Tensor& tensor, onnx::TensorLoader& loader);
// UnsupportedError for attributes that the writer does not know.
OnnxNode copy_of(const onnx::Node& node, onnx::TensorLoader& loader);
OnnxFunction copy_of(const onnx::Function& function, onnx::TensorLoader& loader);

}  // namespace fusewise::session

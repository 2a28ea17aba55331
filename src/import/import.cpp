#include "import/import.h"

#include "base/mapped_file.h"
#include "import/onnx/importer.h"
#include "import/onnx/reader.h"

namespace fusewise {

graph::Graph import_onnx(const std::string& path, const ImportOptions& options) {
  const onnx::Model model = onnx::read_model(path);
  return onnx::Importer(model, options).run();
}

graph::Graph import_onnx(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                         const std::string& path, const ImportOptions& options) {
  const onnx::Model model = onnx::read_model(bytes, std::move(owner), path);
  return onnx::Importer(model, options).run();
}

graph::ConstantData read_onnx_tensor(const std::string& path) {
  auto file = std::make_shared<const MappedFile>(path);
  const onnx::Tensor tensor = onnx::read_tensor(file->bytes(), path);
  return onnx::TensorLoader(path, file, false).load(tensor);
}

}  // namespace fusewise

// The data of a model file's tensor as a graph constant: raw and external data stay where they are (in the
// mapped files), typed fields are converted.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/mapped_file.h"
#include "graph/graph.h"
#include "import/onnx/model.h"

namespace fusewise::onnx {

// The type of an element type's number; nothing for one that the format does not know.
std::optional<DataType> data_type_of_number(int32_t number);

// A number that later versions of the format have given to a type that is not known here.
bool is_later_element_type(int64_t number);

// Maps files of external data, each once.
class TensorLoader {
 public:
  // `model_path` locates external data: relative to the folder that the model lies in.
  TensorLoader(std::string model_path, std::shared_ptr<const void> model_owner, bool allow_missing_external);

  // Throws UserError that names the tensor when its data does not fit its shape or type, when external data
  // is missing, too short or outside of the model's folder.
  graph::ConstantData load(const Tensor& tensor);

 private:
  std::span<const std::byte> external_bytes(const Tensor& tensor, size_t size,
                                            std::shared_ptr<const void>& owner);
  std::shared_ptr<const MappedFile> map(const Tensor& tensor, std::string_view location);

  std::string model_path_;
  std::shared_ptr<const void> model_owner_;
  bool allow_missing_;
  std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> files_;
  std::shared_ptr<const void> zeros_;  // stands in for external data that may be missing
  size_t zeros_size_ = 0;
};

// The number of elements of a static shape; UserError when it is negative or leaves 63 bits.
int64_t element_count(const std::vector<int64_t>& dims, std::string_view tensor_name);

}  // namespace fusewise::onnx

// What the files about known tensors share.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "import/onnx/call.h"
#include "import/onnx/known_tensor.h"

namespace fusewise::onnx::known {

using Results = std::optional<std::vector<KnownTensor>>;

// The number of elements; anything above KnownTensor::max_elements when it is too large to be followed.
int64_t count_of(const std::vector<int64_t>& shape);
Results one(std::optional<KnownTensor> result);

// Operators that rearrange elements.
Results concat(Call& call);
Results gather(Call& call);
Results reshape(Call& call);
Results slice(Call& call);
Results squeeze(Call& call);
Results transpose(Call& call);
Results unsqueeze(Call& call);

}  // namespace fusewise::onnx::known

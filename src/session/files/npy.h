// NumPy's array files (.npy): format versions 1 to 3, both byte orders and both storage orders.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "graph/interpreter/tensor.h"

namespace fusewise::session {

// `what` names the file (and the array in it) in messages. Shares the bytes where they can be used as they are.
graph::Tensor parse_npy(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                        const std::string& what);
graph::Tensor read_npy(const std::filesystem::path& path);

// The element type under which NumPy can hold the elements: the type itself, or the unsigned integer of the same
// size for bfloat16 and the 8-bit floats, which NumPy lacks. UnsupportedError for packed and string types.
DataType npy_type(DataType type);

// Atomically; the type as npy_type says.
void write_npy(const std::filesystem::path& path, const graph::Tensor& tensor);

}  // namespace fusewise::session

// The header of a .npy file: a Python dictionary in text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "numerics/data_type.h"

namespace fusewise::session {

struct NpyHeader {
  DataType type = DataType::undefined;
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Throws UserError without the file's name, UnsupportedError for types that no tensor has.
NpyHeader parse_npy_header(std::string_view text);
// "<f4" and the like.
std::string npy_descriptor(DataType type);

}  // namespace fusewise::session

// A program as one file: a header, the program's tables, the shared object, and the data (embedded constants
// and results of once steps), each part found by offset and covered by a checksum. The data is used where the
// mapping has it, so that processes share it and a warm start touches only what it reads.
#pragma once

#include <filesystem>

#include "program/program.h"

namespace fusewise::program {

// Grows with every change of the format or of the kernels' interface; other versions are refused.
inline constexpr uint32_t format_version = 5;

struct SaveOptions {
  bool embed_constants = false;  // also those that lie in a file of their own: the program file stands alone
};

// Writes the program, atomically. Once results are stored where once buffers have content; constants that no
// run step reads are then left out.
void save(const Program& program, const std::filesystem::path& path, const SaveOptions& options = {});

struct LoadOptions {
  bool verify_data = true;  // check the data against its checksum: reads all of it
  bool verify_constants =
      true;  // check constants in files that changed since they were hashed (identity, not time)
};

// Throws UserError that names the file when it is no program of this version, damaged, or does not match the
// constants' files.
Program load(const std::filesystem::path& path, const LoadOptions& options = {});

}  // namespace fusewise::program

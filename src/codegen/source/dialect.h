// What C-like languages of GPUs differ in, as data: spellings, and a prelude of the helpers that printed kernels call.
// Types are called char, uchar, short, ushort, int, uint, long (64 bits), ulong, float, double; a dialect whose compiler
// does not know them defines them in its prelude.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fusewise::codegen {

struct Dialect {
  std::string_view name;
  std::string_view suffix;         // of a file with such text
  std::string_view kernel;         // in front of a kernel's name
  std::string_view global_memory;  // in front of the element type of an argument
  std::string_view shared_memory;  // in front of the declaration of memory that a group shares
  std::string_view restrict_;      // of a pointer that no other overlaps
  std::string_view group, thread;
  std::string_view
      group_size_before;  // an attribute that states the threads of a group: printed with {} = threads
  std::string_view barrier;
  std::string_view prelude;         // in front of everything
  std::string_view double_prelude;  // behind it, where a kernel uses double
};

const Dialect& opencl_dialect();

// All of them, sorted by name.
std::span<const Dialect* const> dialects();
// UserError names those that are known.
const Dialect& dialect_named(std::string_view name);

}  // namespace fusewise::codegen

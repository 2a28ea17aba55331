// The border between this room and the module that holds LLVM: one abstract class, found by one C symbol.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "codegen/codegen.h"

namespace fusewise::codegen {

class LlvmCompiler {
 public:
  virtual ~LlvmCompiler() = default;
  virtual CpuTarget host() const = 0;
  virtual ObjectFile compile(std::span<const kernel::Kernel> kernels, const CpuTarget& target) const = 0;
  virtual std::string text(const kernel::Kernel& kernel, const CpuTarget& target, TextForm form) const = 0;
  virtual void link(std::span<const ObjectFile> objects, const std::filesystem::path& output) const = 0;
};

// The C symbol of the module; its result lives as long as the process.
inline constexpr const char* llvm_compiler_symbol = "fusewise_llvm_compiler";
using LlvmCompilerFunction = const LlvmCompiler*();

// Opens the module at the first call; UserError that says where it was looked for when it is not there.
const LlvmCompiler& llvm_compiler();

}  // namespace fusewise::codegen

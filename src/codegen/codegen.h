// From Kernel IR to machine code of a CPU: objects, one shared object linked of them, and texts to look at. The
// compiler itself is a module that is opened at first need (llvm/), so a process that finds its kernels in the cache
// never maps it.
//
// What a kernel NAME becomes, for each phase I, with C linkage:
//   void NAME_pI(void* const* buffers, const int64_t* parameters, char* scratch, int64_t begin, int64_t end)
//     runs the blocks [begin, end) of the phase. `buffers` are the argument buffers in call order; `scratch` is private
//     memory of the calling worker, aligned to 64, of kernel.scratch_bytes (kernel/passes/place_scratch.h).
//   int64_t NAME_pI_blocks(const int64_t* parameters)
//     the number of blocks of the phase.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "kernel/kernel.h"

namespace fusewise::codegen {

// A processor as the compiler names it.
struct CpuTarget {
  std::string triple;
  std::string cpu;        // "znver5", "x86-64-v3"
  std::string features;   // "+avx2,-avx512f", what `cpu` does not say
  int vector_bits = 256;  // of the widest registers that kernels should use
};

// The processor that this runs on, or by name: "native", "x86-64-v3" (AVX2), "x86-64-v4" (AVX-512), "aarch64" (NEON).
CpuTarget host_target();
CpuTarget target_named(const std::string& name);
// Whether code for the target named "x86-64-v3" or "x86-64-v4" runs here. Loads nothing.
bool host_runs(const std::string& name);

// The bytes of a relocatable object of the target's format.
struct ObjectFile {
  std::string bytes;
};

// Compiles with up to `threads` threads; which kernels share an object does not depend on `threads`.
std::vector<ObjectFile> compile_objects(std::span<const kernel::Kernel> kernels, const CpuTarget& target,
                                        int threads);

// The shared object linked of them, as bytes or written to a file.
std::string link_shared(std::span<const ObjectFile> objects);
void link_shared(std::span<const ObjectFile> objects, const std::filesystem::path& path);

enum class TextForm : uint8_t { llvm_ir, assembly };
std::string emit_text(const kernel::Kernel& kernel, const CpuTarget& target, TextForm form);

// Names of the functions above.
inline std::string phase_symbol(const kernel::Kernel& kernel, size_t phase) {
  return kernel.name + "_p" + std::to_string(phase);
}
inline std::string block_count_symbol(const kernel::Kernel& kernel, size_t phase) {
  return phase_symbol(kernel, phase) + "_blocks";
}

}  // namespace fusewise::codegen

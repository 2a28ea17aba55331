// What the processor that runs us can do, asked of the processor itself (and of the operating system, which
// must save the registers).
#pragma once

#include <string_view>

namespace fusewise::runtime {

struct CpuFeatures {
  bool avx2_fma = false;
  bool avx512 = false;  // F, BW, DQ and VL together: what our 512-bit kernels need
};
CpuFeatures cpu_features();

// By the name used in /proc/cpuinfo and by LLVM: "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq",
// "avx512vl", "avx512vnni", "avx512bf16", ... An unknown name counts as not there.
bool cpu_has(std::string_view feature);

}  // namespace fusewise::runtime

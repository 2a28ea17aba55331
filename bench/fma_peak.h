// The machine's float32 multiply-add peak, by a loop of independent instructions without memory. It moves with the
// clock, so measurements are interleaved with it.
#pragma once

#include <immintrin.h>

#include <chrono>
#include <ctime>

namespace fusewise::bench {

// Processor time of this thread: what a busy machine gives to others does not count.
inline double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

__attribute__((always_inline, target("avx512f"))) inline void multiply_add(__m512& sum, __m512 x) {
  asm volatile("vfmadd231ps %1, %1, %0" : "+v"(sum) : "v"(x));
}
__attribute__((always_inline, target("avx2,fma"))) inline void multiply_add(__m256& sum, __m256 x) {
  asm volatile("vfmadd231ps %1, %1, %0" : "+x"(sum) : "x"(x));
}

__attribute__((noinline, target("avx512f"))) inline void chains_512(int64_t rounds) {
  const __m512 x = _mm512_setzero_ps();
  __m512 a = x, b = x, c = x, d = x, e = x, f = x, g = x, h = x, i = x, j = x, k = x, l = x;
  for (int64_t round = 0; round < rounds; ++round) {
    multiply_add(a, x), multiply_add(b, x), multiply_add(c, x), multiply_add(d, x);
    multiply_add(e, x), multiply_add(f, x), multiply_add(g, x), multiply_add(h, x);
    multiply_add(i, x), multiply_add(j, x), multiply_add(k, x), multiply_add(l, x);
  }
}

__attribute__((noinline, target("avx2,fma"))) inline void chains_256(int64_t rounds) {
  const __m256 x = _mm256_setzero_ps();
  __m256 a = x, b = x, c = x, d = x, e = x, f = x, g = x, h = x, i = x, j = x, k = x, l = x;
  for (int64_t round = 0; round < rounds; ++round) {
    multiply_add(a, x), multiply_add(b, x), multiply_add(c, x), multiply_add(d, x);
    multiply_add(e, x), multiply_add(f, x), multiply_add(g, x), multiply_add(h, x);
    multiply_add(i, x), multiply_add(j, x), multiply_add(k, x), multiply_add(l, x);
  }
}

// GFLOP/s of one core with registers of this many bits.
inline double fma_peak(int vector_bits) {
  constexpr int64_t rounds = 20000;
  constexpr double chains = 12;
  const double start = processor_seconds();
  if (vector_bits == 512)
    chains_512(rounds);
  else
    chains_256(rounds);
  const double flops = static_cast<double>(rounds) * chains * 2 * vector_bits / 32;
  return flops / (processor_seconds() - start) * 1e-9;
}

}  // namespace fusewise::bench

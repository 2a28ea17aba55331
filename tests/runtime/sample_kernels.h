// The kernels of the sample program (tests/program/sample.h) as plain functions, and a resolver for them.
// What the program computes: y = 2 * max(x + w, 0), and the shape of x.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "../program/sample.h"

namespace fusewise::runtime {

using Phase = void (*)(void* const*, const int64_t*, char*, int64_t, int64_t);
using Blocks = int64_t (*)(const int64_t*);

class KernelTable {
 public:
  void add(const std::string& symbol, Phase run, Blocks blocks) {
    symbols_[symbol] = reinterpret_cast<void*>(run);
    symbols_[symbol + "_blocks"] = reinterpret_cast<void*>(blocks);
  }
  std::function<void*(const std::string&)> resolver() const {
    return [symbols = symbols_](const std::string& symbol) -> void* {
      const auto found = symbols.find(symbol);
      return found == symbols.end() ? nullptr : found->second;
    };
  }

 private:
  std::map<std::string, void*> symbols_;
};

inline int64_t one_block(const int64_t*) { return 1; }
inline int64_t first_parameter(const int64_t* parameters) { return parameters[0]; }

inline void pack_phase(void* const* buffers, const int64_t*, char*, int64_t, int64_t) {
  std::copy_n(static_cast<const float*>(buffers[0]), 4, static_cast<float*>(buffers[1]));
}

// One block per row; goes through scratch, of which every worker has its own.
inline void add_phase(void* const* buffers, const int64_t* parameters, char* scratch, int64_t begin,
                      int64_t end) {
  const float* x = static_cast<const float*>(buffers[0]);
  const float* w = static_cast<const float*>(buffers[1]);
  float* y = static_cast<float*>(buffers[2]);
  float* row = reinterpret_cast<float*>(scratch);
  const int64_t width = parameters[1];
  for (int64_t b = begin; b < end; ++b) {
    for (int64_t j = 0; j < width; ++j) row[j] = x[b * width + j] + w[j];
    std::copy_n(row, width, y + b * width);
  }
}

inline void relu_phase(void* const* buffers, const int64_t*, char*, int64_t begin, int64_t end) {
  const float* x = static_cast<const float*>(buffers[0]);
  for (int64_t i = begin; i < end; ++i) static_cast<float*>(buffers[1])[i] = std::max(x[i], 0.0F);
}

inline void double_phase(void* const* buffers, const int64_t*, char*, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) static_cast<float*>(buffers[1])[i] *= 2;
}

inline KernelTable sample_kernels() {
  KernelTable table;
  table.add("pack_p0", pack_phase, one_block);
  table.add("add_p0", add_phase, first_parameter);
  table.add("relu_p0", relu_phase, first_parameter);
  table.add("relu_p1", double_phase, first_parameter);
  return table;
}

}  // namespace fusewise::runtime

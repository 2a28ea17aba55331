// Memory for outputs whose size only the run knows.
#pragma once

#include <cstdint>
#include <span>

namespace fusewise::runtime {

class OutputMemory {
 public:
  // Asked once in a run for each such output, by its number; the memory holds a tensor of this shape and may be null
  // only where that has no elements. What was given counts until the output is asked for again.
  virtual void* place(uint32_t output, std::span<const int64_t> shape) = 0;

 protected:
  ~OutputMemory() = default;
};

}  // namespace fusewise::runtime

// Mixes words into a hash of 64 bits, the same on every machine: for tables, where collisions cost time alone, and for
// signatures. What must not collide is hashed by Hasher (base/hash.h).
#pragma once

#include <cstdint>

#include "numerics/dim.h"

namespace fusewise {

class Mixer {
 public:
  void add(uint64_t word) {
    state_ = (state_ ^ word) * 0x9E3779B97F4A7C15ULL;
    state_ ^= state_ >> 29;
    state_ *= 0xBF58476D1CE4E5B9ULL;
    state_ ^= state_ >> 32;
  }
  void add(const Dim& dim) {
    add(dim.is_constant() ? static_cast<uint64_t>(dim.constant_part()) : dim.hash() | 1ULL << 63);
  }
  uint64_t hash() const { return state_; }

 private:
  uint64_t state_ = 0x243F6A8885A308D3ULL;
};

}  // namespace fusewise

// A 64-bit signature of what a node computes: its form, its operands' types and its result's. Names and node ids
// do not enter, so that equal layers have equal signatures.
#pragma once

#include "graph/form.h"

namespace fusewise::cost {

// Mixes words into a hash, the same on every machine.
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

// `form` is null for sources that have none.
uint64_t signature_of(const graph::Graph& graph, graph::NodeId node, const graph::Form* form);

}  // namespace fusewise::cost

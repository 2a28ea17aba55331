// Buffers as the interpreter sees them: elements, which of them were stored, and who touched them last.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "numerics/data_type.h"

namespace fusewise::kernel {

// Who touched an element last. Two readers are kept: a store conflicts with whichever is not the storing one.
struct Access {
  uint32_t agent = UINT32_MAX;
  uint32_t interval = 0;
};
struct Cell {
  uint32_t epoch = 0;
  Access writer, reader, earlier_reader;
};

struct Memory {
  char* data = nullptr;
  int64_t count = 0;
  DataType type = DataType::float32;
  int bytes = 1;                    // of one element
  std::unique_ptr<char[]> storage;  // not for arguments
  std::vector<uint32_t> stored;     // the epoch in which each element was stored; empty: all count as stored
  std::vector<Cell> cells;
  uint32_t epoch = 1;           // what happened in earlier ones is forgotten
  uint32_t owner = UINT32_MAX;  // the agent that allocated it
  bool watched = false;         // for races

  int64_t load(int64_t index) const;  // bits as constants have them
  void store(int64_t index, int64_t bits);
};

struct View {
  Memory* memory = nullptr;
  int64_t offset = 0;
};

// The tree of blocks and threads of one phase. Two agents are concurrent when their ways part at one fork, and,
// for threads, no barrier came between their accesses.
class Agents {
 public:
  void clear() { agents_.assign(1, {}); }
  uint32_t add(uint32_t parent, uint32_t fork, bool is_block) {
    agents_.push_back({parent, fork, agents_[parent].depth + 1, is_block});
    return static_cast<uint32_t>(agents_.size() - 1);
  }
  bool concurrent(const Access& earlier, const Access& now) const;
  bool part_as_blocks(uint32_t a, uint32_t b) const;

 private:
  struct Agent {
    uint32_t parent = 0;
    uint32_t fork = 0;
    uint32_t depth = 0;
    bool is_block = false;
  };
  // The two children of the lowest common ancestor; equal when one descends from the other.
  std::pair<uint32_t, uint32_t> parting(uint32_t a, uint32_t b) const;
  std::vector<Agent> agents_ = std::vector<Agent>(1);
};

}  // namespace fusewise::kernel

#include "kernel/interpreter/memory.h"

#include <cstring>

#include "base/error.h"

namespace fusewise::kernel {

namespace {

template <class T>
int64_t load_as(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<int64_t>(value);
}

}  // namespace

int64_t Memory::load(int64_t index) const {
  const char* at = data + index * bytes;
  switch (type) {
    case DataType::boolean:
      return *at != 0 ? 1 : 0;
    case DataType::int8:
      return load_as<int8_t>(at);
    case DataType::int16:
      return load_as<int16_t>(at);
    case DataType::int32:
      return load_as<int32_t>(at);
    default:
      break;
  }
  switch (bytes) {
    case 1:
      return load_as<uint8_t>(at);
    case 2:
      return load_as<uint16_t>(at);
    case 4:
      return load_as<uint32_t>(at);
    case 8:
      return load_as<int64_t>(at);
    default:
      throw InternalError("an element of an unknown size");
  }
}

void Memory::store(int64_t index, int64_t bits) {
  std::memcpy(data + index * bytes, &bits, static_cast<size_t>(bytes));
}

std::pair<uint32_t, uint32_t> Agents::parting(uint32_t a, uint32_t b) const {
  while (agents_[a].depth > agents_[b].depth) a = agents_[a].parent;
  while (agents_[b].depth > agents_[a].depth) b = agents_[b].parent;
  while (a != b && agents_[a].parent != agents_[b].parent) {
    a = agents_[a].parent;
    b = agents_[b].parent;
  }
  return {a, b};
}

bool Agents::concurrent(const Access& earlier, const Access& now) const {
  if (earlier.agent == now.agent) return false;
  const auto [a, b] = parting(earlier.agent, now.agent);
  if (a == b || agents_[a].fork != agents_[b].fork) return false;
  return agents_[a].is_block || earlier.interval == now.interval;
}

bool Agents::part_as_blocks(uint32_t a, uint32_t b) const { return agents_[parting(a, b).first].is_block; }

}  // namespace fusewise::kernel

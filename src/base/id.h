// Strongly typed 32-bit ids: an Id<Tag> indexes a table that its owner keeps, and ids of different tags
// do not mix. Ids, not pointers, stand in plans and schedules, so that they survive edits and files.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace fusewise {

template <class Tag>
struct Id {
  static constexpr uint32_t none = UINT32_MAX;

  uint32_t index = none;

  constexpr bool valid() const { return index != none; }
  friend constexpr bool operator==(Id, Id) = default;
  friend constexpr auto operator<=>(Id, Id) = default;
};

}  // namespace fusewise

template <class Tag>
struct std::hash<fusewise::Id<Tag>> {
  size_t operator()(fusewise::Id<Tag> id) const noexcept {
    // Neighbouring ids are spread out: tables with a power-of-two size look at the low bits only.
    const uint64_t product = uint64_t{id.index} * 0x9E3779B97F4A7C15ULL;
    return static_cast<size_t>(product ^ (product >> 32));
  }
};

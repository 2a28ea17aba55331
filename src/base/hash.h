// Content hashes of 128 bits (XXH3): names for kernels, cached programs and structurally equal regions.
// The value depends on the content alone, never on addresses, and is the same on every machine.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace fusewise {

struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;

  std::string to_hex() const;  // 32 digits, most significant first
  static std::optional<Hash128> from_hex(std::string_view text);

  friend constexpr bool operator==(const Hash128&, const Hash128&) = default;
  friend constexpr auto operator<=>(const Hash128&, const Hash128&) = default;
};

Hash128 hash_bytes(std::span<const std::byte> bytes);
Hash128 hash_text(std::string_view text);

// Hashes a sequence of values. Whatever has a length is preceded by it, so that ("ab", "c") and
// ("a", "bc") differ. Integers of all widths count as 64 bits: 3 hashes the same in an int and an int64_t.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  template <std::integral T>
  Hasher& add(T value) {
    return add_word(static_cast<uint64_t>(static_cast<int64_t>(value)));
  }
  template <class T>
    requires std::is_enum_v<T>
  Hasher& add(T value) {
    return add(static_cast<std::underlying_type_t<T>>(value));
  }
  Hasher& add(double value);  // by bits: -0 and +0 differ, and so do NaN payloads
  Hasher& add(std::string_view text);
  Hasher& add(const Hash128& hash);
  Hasher& add_bytes(std::span<const std::byte> bytes);
  template <std::integral T>
  Hasher& add(std::span<const T> values) {
    add_word(values.size());
    for (T value : values) add(value);
    return *this;
  }

  // The hash of all that was added so far; more may be added afterwards.
  Hash128 finish() const;

 private:
  Hasher& add_word(uint64_t word);
  void update(const void* data, size_t size);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fusewise

template <>
struct std::hash<fusewise::Hash128> {
  size_t operator()(const fusewise::Hash128& value) const noexcept { return static_cast<size_t>(value.low); }
};

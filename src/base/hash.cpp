#include "base/hash.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <bit>
#include <charconv>
#include <new>

namespace fusewise {

namespace {

Hash128 from_xxhash(XXH128_hash_t hash) { return {hash.high64, hash.low64}; }

std::optional<uint64_t> parse_hex_word(std::string_view digits) {
  uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::string Hash128::to_hex() const { return fmt::format("{:016x}{:016x}", high, low); }

std::optional<Hash128> Hash128::from_hex(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  const auto high = parse_hex_word(text.substr(0, 16));
  const auto low = parse_hex_word(text.substr(16));
  if (!high || !low) return std::nullopt;
  return Hash128{*high, *low};
}

Hash128 hash_bytes(std::span<const std::byte> bytes) {
  return from_xxhash(XXH3_128bits(bytes.data(), bytes.size()));
}

Hash128 hash_text(std::string_view text) { return hash_bytes(std::as_bytes(std::span(text))); }

struct Hasher::State {
  State() : xxhash(XXH3_createState()) {
    if (!xxhash) throw std::bad_alloc();
    XXH3_128bits_reset(xxhash);
  }
  ~State() { XXH3_freeState(xxhash); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  XXH3_state_t* xxhash;
};

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::update(const void* data, size_t size) { XXH3_128bits_update(state_->xxhash, data, size); }

Hasher& Hasher::add_word(uint64_t word) {
  unsigned char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(word >> (8 * i));
  update(bytes, sizeof bytes);
  return *this;
}

Hasher& Hasher::add(double value) { return add_word(std::bit_cast<uint64_t>(value)); }

Hasher& Hasher::add(std::string_view text) { return add_bytes(std::as_bytes(std::span(text))); }

Hasher& Hasher::add(const Hash128& hash) { return add_word(hash.high).add_word(hash.low); }

Hasher& Hasher::add_bytes(std::span<const std::byte> bytes) {
  add_word(bytes.size());
  update(bytes.data(), bytes.size());
  return *this;
}

Hash128 Hasher::finish() const { return from_xxhash(XXH3_128bits_digest(state_->xxhash)); }

}  // namespace fusewise

// The tables of a program as bytes. One list of fields per struct (transfer() in tables.h) serves both
// directions: a Codec is an Encoder, which appends, or a Decoder, which checks every length before it
// believes it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "program/program.h"

namespace fusewise::program {

static_assert(std::endian::native == std::endian::little,
              "the file format is little-endian, and so is the code");

inline constexpr uint64_t section_alignment = 64;

// A piece of the data part of the file.
struct Section {
  uint64_t offset = 0;
  uint64_t length = 0;
};

class Encoder {
 public:
  std::vector<std::byte> bytes;
  std::vector<std::span<const std::byte>> sections;  // in the order of their offsets
  uint64_t data_bytes = 0;

  template <class T>
    requires std::is_arithmetic_v<T>
  void number(T& value) {
    append(&value, sizeof(value));
  }
  template <class T>
  void enumeration(T& value, T) {
    append(&value, sizeof(value));
  }
  void flag(bool& value) { append(&value, 1); }
  void text(std::string& value) {
    length(value.size());
    append(value.data(), value.size());
  }
  void dim(Dim& value);
  // Bytes within the tables.
  void blob(Bytes& value) {
    length(value.span.size());
    append(value.span.data(), value.span.size());
  }
  // Bytes in the data part.
  void section(Bytes& value);
  template <class T, class Each>
  void list(std::vector<T>& values, Each each) {
    length(values.size());
    for (T& value : values) each(value);
  }
  template <class T, class Each>
  void optional(std::optional<T>& value, Each each) {
    bool there = value.has_value();
    flag(there);
    if (there) each(*value);
  }

 private:
  void length(uint64_t value) { append(&value, sizeof(value)); }
  void append(const void* data, size_t size);

  std::map<Dim, uint32_t> dims_;
};

class Decoder {
 public:
  // `data` is the data part of the file; both live as long as `owner`.
  Decoder(std::span<const std::byte> tables, std::span<const std::byte> data,
          std::shared_ptr<const void> owner)
      : rest_(tables), data_(data), owner_(std::move(owner)) {}

  std::vector<Section> sections;

  template <class T>
    requires std::is_arithmetic_v<T>
  void number(T& value) {
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
  }
  template <class T>
  void enumeration(T& value, T last) {
    std::underlying_type_t<T> raw = 0;
    number(raw);
    if (raw > static_cast<std::underlying_type_t<T>>(last)) fail();
    value = static_cast<T>(raw);
  }
  void flag(bool& value) {
    uint8_t raw = 0;
    number(raw);
    if (raw > 1) fail();
    value = raw == 1;
  }
  void text(std::string& value);
  void dim(Dim& value);
  void blob(Bytes& value) { value = {take(length()), owner_}; }
  void section(Bytes& value);
  template <class T, class Each>
  void list(std::vector<T>& values, Each each) {
    // Grows with what is really there: each element takes at least one byte of the tables.
    for (uint64_t left = length(); left > 0; --left) {
      values.emplace_back();
      each(values.back());
    }
  }
  template <class T, class Each>
  void optional(std::optional<T>& value, Each each) {
    bool there = false;
    flag(there);
    if (there) each(value.emplace());
  }
  void expect_end() const {
    if (!rest_.empty()) fail();
  }

 private:
  [[noreturn]] static void fail();
  uint64_t length();
  std::span<const std::byte> take(uint64_t size);

  std::span<const std::byte> rest_;
  std::span<const std::byte> data_;
  std::shared_ptr<const void> owner_;
  std::vector<Dim> dims_;
};

}  // namespace fusewise::program

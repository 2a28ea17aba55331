#include "program/codec.h"

#include "base/error.h"

namespace fusewise::program {
namespace {

// A dimension is a constant or the number of a symbolic one; a number not seen before is followed by its
// text.
enum class DimCode : uint8_t { constant, symbolic };

uint64_t aligned(uint64_t offset) {
  return (offset + section_alignment - 1) / section_alignment * section_alignment;
}

}  // namespace

void Encoder::append(const void* data, size_t size) {
  const std::byte* begin = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), begin, begin + size);
}

void Encoder::dim(Dim& value) {
  DimCode code = value.is_constant() ? DimCode::constant : DimCode::symbolic;
  enumeration(code, DimCode::symbolic);
  if (code == DimCode::constant) {
    int64_t constant = value.value();
    return number(constant);
  }
  const auto [place, is_new] = dims_.emplace(value, static_cast<uint32_t>(dims_.size()));
  number(place->second);
  if (!is_new) return;
  std::string words = value.to_string();
  text(words);
}

void Encoder::section(Bytes& value) {
  bool there = !value.span.empty();
  flag(there);
  if (!there) return;
  Section place{aligned(data_bytes), value.span.size()};
  number(place.offset);
  number(place.length);
  sections.push_back(value.span);
  data_bytes = place.offset + place.length;
}

void Decoder::fail() { throw UserError("its tables are damaged"); }

std::span<const std::byte> Decoder::take(uint64_t size) {
  if (size > rest_.size()) fail();
  const std::span<const std::byte> taken = rest_.first(size);
  rest_ = rest_.subspan(size);
  return taken;
}

uint64_t Decoder::length() {
  uint64_t value = 0;
  number(value);
  if (value > rest_.size()) fail();
  return value;
}

void Decoder::text(std::string& value) {
  const std::span<const std::byte> characters = take(length());
  value.assign(reinterpret_cast<const char*>(characters.data()), characters.size());
}

void Decoder::dim(Dim& value) {
  DimCode code = DimCode::constant;
  enumeration(code, DimCode::symbolic);
  if (code == DimCode::constant) {
    int64_t constant = 0;
    number(constant);
    value = Dim(constant);
    return;
  }
  uint32_t index = 0;
  number(index);
  if (index > dims_.size()) fail();
  if (index == dims_.size()) {
    std::string words;
    text(words);
    dims_.push_back(Dim::parse(words));
  }
  value = dims_[index];
}

void Decoder::section(Bytes& value) {
  bool there = false;
  flag(there);
  if (!there) return;
  Section place;
  number(place.offset);
  number(place.length);
  // Sections follow each other without room for anything else.
  const uint64_t end = sections.empty() ? 0 : sections.back().offset + sections.back().length;
  if (place.length == 0 || place.offset != aligned(end)) fail();
  if (place.offset > data_.size() || place.length > data_.size() - place.offset) fail();
  sections.push_back(place);
  value = {data_.subspan(place.offset, place.length), owner_};
}

}  // namespace fusewise::program

// The frame of a program file: header (64 bytes), tables, padding, data. The front (header and tables) has
// one checksum and the data another, which the front contains.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "program/codec.h"

namespace fusewise::program {

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t padding;      // between the tables and the data
  uint64_t front_bytes;  // up to the data
  uint64_t file_bytes;
  Hash128 data_hash;
  Hash128 front_hash;  // of the front but for this field
};
static_assert(sizeof(Header) == 64, "the header is part of the file format");

Header make_header(uint64_t table_bytes, uint64_t data_bytes);
// Reads and checks all but the checksums; throws UserError without the file's name.
Header read_header(std::span<const std::byte> file);
Hash128 hash_front(std::span<const std::byte> front);
Hash128 hash_sections(std::span<const std::span<const std::byte>> sections);

}  // namespace fusewise::program

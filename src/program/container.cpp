#include "program/container.h"

#include <fmt/core.h>

#include <cstring>

#include "base/error.h"
#include "program/program_file.h"

namespace fusewise::program {
namespace {

constexpr char magic[8] = {'F', 'U', 'S', 'E', 'W', 'I', 'S', 'E'};

}  // namespace

Header make_header(uint64_t table_bytes, uint64_t data_bytes) {
  Header header{};
  std::memcpy(header.magic, magic, sizeof(magic));
  header.version = format_version;
  const uint64_t end = sizeof(Header) + table_bytes;
  header.front_bytes = (end + section_alignment - 1) / section_alignment * section_alignment;
  header.padding = static_cast<uint32_t>(header.front_bytes - end);
  header.file_bytes = header.front_bytes + data_bytes;
  return header;
}

Header read_header(std::span<const std::byte> file) {
  Header header{};
  if (file.size() < sizeof(Header)) throw UserError("it is no Fusewise program");
  std::memcpy(&header, file.data(), sizeof(Header));
  if (std::memcmp(header.magic, magic, sizeof(magic)) != 0) throw UserError("it is no Fusewise program");
  if (header.version != format_version)
    throw UserError(fmt::format("it has format version {}, and this program reads version {}", header.version,
                                format_version));
  if (header.file_bytes != file.size())
    throw UserError(fmt::format("it has {} bytes where {} were written", file.size(), header.file_bytes));
  if (header.front_bytes > file.size() || header.front_bytes < sizeof(Header) + header.padding)
    throw UserError("its header is damaged");
  return header;
}

Hash128 hash_front(std::span<const std::byte> front) {
  Hasher hasher;
  hasher.add_bytes(front.first(offsetof(Header, front_hash)));
  hasher.add_bytes(front.subspan(sizeof(Header)));
  return hasher.finish();
}

Hash128 hash_sections(std::span<const std::span<const std::byte>> sections) {
  Hasher hasher;
  for (const std::span<const std::byte> section : sections) hasher.add_bytes(section);
  return hasher.finish();
}

}  // namespace fusewise::program

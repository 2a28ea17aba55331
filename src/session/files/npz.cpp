#include "session/files/npz.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/aligned_buffer.h"
#include "base/mapped_file.h"
#include "session/files/npy.h"

namespace fusewise::session {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint32_t end_mark = 0x06054b50, end64_locator_mark = 0x07064b50, end64_mark = 0x06064b50;
constexpr uint32_t entry_mark = 0x02014b50, local_mark = 0x04034b50;

struct Entry {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t checksum = 0;
  uint64_t packed_size = 0, size = 0, offset = 0;
};

// A little-endian number at a place that is checked.
template <class T>
T number(Bytes bytes, uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) throw UserError("it is cut short or damaged");
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

Bytes piece(Bytes bytes, uint64_t at, uint64_t size) {
  if (at > bytes.size() || bytes.size() - at < size) throw UserError("it is cut short or damaged");
  return bytes.subspan(at, size);
}

// The end record stands before a comment of up to 64 KiB.
uint64_t find_end(Bytes file) {
  constexpr uint64_t record = 22;
  for (uint64_t comment = 0; comment <= 0xFFFF && record + comment <= file.size(); ++comment) {
    const uint64_t at = file.size() - record - comment;
    if (number<uint32_t>(file, at) == end_mark && number<uint16_t>(file, at + 20) == comment) return at;
  }
  throw UserError("it is no zip file, or it is cut short");
}

struct Directory {
  uint64_t entries, size, offset;
};

Directory find_directory(Bytes file) {
  const uint64_t end = find_end(file);
  Directory directory{number<uint16_t>(file, end + 10), number<uint32_t>(file, end + 12),
                      number<uint32_t>(file, end + 16)};
  const bool large =
      directory.entries == 0xFFFF || directory.size == 0xFFFFFFFF || directory.offset == 0xFFFFFFFF;
  if (!large || end < 20 || number<uint32_t>(file, end - 20) != end64_locator_mark) return directory;
  const auto at = number<uint64_t>(file, end - 12);
  if (number<uint32_t>(file, at) != end64_mark) throw UserError("it is damaged");
  return {number<uint64_t>(file, at + 32), number<uint64_t>(file, at + 40), number<uint64_t>(file, at + 48)};
}

// Sizes that do not fit 32 bits stand in an extra field, in this order and only those.
void read_large_sizes(Entry& entry, Bytes extra) {
  for (uint64_t at = 0; at + 4 <= extra.size();) {
    const auto id = number<uint16_t>(extra, at);
    const auto size = number<uint16_t>(extra, at + 2);
    const Bytes field = piece(extra, at + 4, size);
    at += 4 + uint64_t{size};
    if (id != 1) continue;
    uint64_t next = 0;
    for (uint64_t* value : {&entry.size, &entry.packed_size, &entry.offset}) {
      if (*value != 0xFFFFFFFF) continue;
      *value = number<uint64_t>(field, next);
      next += 8;
    }
  }
}

std::vector<Entry> read_directory(Bytes file) {
  const Directory directory = find_directory(file);
  const Bytes table = piece(file, directory.offset, directory.size);
  std::vector<Entry> entries;
  uint64_t at = 0;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    if (number<uint32_t>(table, at) != entry_mark) throw UserError("its directory is damaged");
    Entry& entry = entries.emplace_back();
    entry.flags = number<uint16_t>(table, at + 8);
    entry.method = number<uint16_t>(table, at + 10);
    entry.checksum = number<uint32_t>(table, at + 16);
    entry.packed_size = number<uint32_t>(table, at + 20);
    entry.size = number<uint32_t>(table, at + 24);
    entry.offset = number<uint32_t>(table, at + 42);
    const auto name = number<uint16_t>(table, at + 28), extra = number<uint16_t>(table, at + 30);
    const auto comment = number<uint16_t>(table, at + 32);
    const Bytes text = piece(table, at + 46, name);
    entry.name.assign(reinterpret_cast<const char*>(text.data()), text.size());
    read_large_sizes(entry, piece(table, at + 46 + name, extra));
    at += 46 + uint64_t{name} + extra + comment;
  }
  return entries;
}

void inflate_into(Bytes packed, std::span<std::byte> target) {
  z_stream stream{};
  // Negative: raw deflate data, without a header of zlib's own.
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> guard(&stream, inflateEnd);
  constexpr uint64_t most = uint64_t{1} << 30;
  uint64_t read = 0, written = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    if (stream.avail_in == 0) {
      stream.avail_in = static_cast<uInt>(std::min(most, packed.size() - read));
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + read));
      read += stream.avail_in;
    }
    if (stream.avail_out == 0) {
      stream.avail_out = static_cast<uInt>(std::min(most, target.size() - written));
      stream.next_out = reinterpret_cast<Bytef*>(target.data() + written);
      written += stream.avail_out;
    }
    status = inflate(&stream, Z_NO_FLUSH);
  }
  if (status != Z_STREAM_END || written - stream.avail_out != target.size())
    throw UserError("its compressed data is damaged");
}

uint32_t checksum(Bytes bytes) {
  return static_cast<uint32_t>(
      crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

graph::Tensor read_entry(const std::shared_ptr<const MappedFile>& file, const Entry& entry,
                         const std::string& what) {
  const Bytes bytes = file->bytes();
  if (entry.flags & 1) throw UserError("it is encrypted");
  if (number<uint32_t>(bytes, entry.offset) != local_mark) throw UserError("its directory is damaged");
  const uint64_t begin = entry.offset + 30 + number<uint16_t>(bytes, entry.offset + 26) +
                         number<uint16_t>(bytes, entry.offset + 28);
  const Bytes packed = piece(bytes, begin, entry.packed_size);
  Bytes content = packed;
  std::shared_ptr<const void> owner = file;
  if (entry.method == 8) {
    // Deflate shrinks at most by a factor of about 1032: a larger announced size is a lie, not a reason to allocate.
    if (entry.size / 1040 > packed.size()) throw UserError("its compressed data is damaged");
    const auto buffer = std::make_shared<AlignedBuffer>(entry.size);
    inflate_into(packed, buffer->bytes());
    content = buffer->bytes();
    owner = buffer;
  } else if (entry.method != 0) {
    throw UserError(fmt::format("it is compressed by method {}, and only deflate is known", entry.method),
                    {.hint = "save it with numpy.savez"});
  }
  if (checksum(content) != entry.checksum) throw UserError("the checksum of its data differs");
  return parse_npy(content, owner, what);
}

}  // namespace

std::vector<std::pair<std::string, graph::Tensor>> read_npz(const std::filesystem::path& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  std::vector<std::pair<std::string, graph::Tensor>> arrays;
  std::string what = path.string();
  try {
    for (const Entry& entry : read_directory(file->bytes())) {
      what = fmt::format("{} in {}", entry.name, path.string());
      if (!entry.name.ends_with(".npy")) continue;
      arrays.emplace_back(entry.name.substr(0, entry.name.size() - 4), read_entry(file, entry, what));
    }
  } catch (const UserError& error) {
    if (!error.context.file.empty()) throw;
    throw UserError(fmt::format("{} cannot be read: {}", what, error.what()),
                    {path.string(), {}, {}, error.context.hint});
  }
  return arrays;
}

}  // namespace fusewise::session

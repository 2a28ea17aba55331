#include "session/mapped_constants.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"

namespace fusewise::session {
namespace {

// Smaller ones are cheaper to embed.
constexpr size_t least_bytes = 4096;

// A piece of a file in this process's memory, as /proc/self/maps lists it.
struct Mapping {
  uint64_t begin = 0, end = 0, offset = 0, inode = 0;
  std::string path;
};

std::vector<Mapping> read_mappings() {
  std::vector<Mapping> mappings;
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    Mapping mapping;
    char dash = 0;
    std::string permissions, device;
    fields >> std::hex >> mapping.begin >> dash >> mapping.end >> permissions >> mapping.offset >> device >>
        std::dec >> mapping.inode >> std::ws;
    std::getline(fields, mapping.path);
    // Memory without a file has inode 0; a backslash starts the escape of a character that we do not decode.
    if (mapping.inode != 0 && mapping.path.starts_with('/') && mapping.path.find('\\') == std::string::npos)
      mappings.push_back(std::move(mapping));
  }
  return mappings;
}

const Mapping* find(const std::vector<Mapping>& mappings, std::span<const std::byte> bytes) {
  const auto begin = reinterpret_cast<uint64_t>(bytes.data());
  const auto after =
      std::upper_bound(mappings.begin(), mappings.end(), begin,
                       [](uint64_t address, const Mapping& mapping) { return address < mapping.begin; });
  if (after == mappings.begin()) return nullptr;
  const Mapping& mapping = *std::prev(after);
  return begin + bytes.size() <= mapping.end ? &mapping : nullptr;
}

}  // namespace

void refer_to_mapped_files(program::Program& program) {
  const std::vector<Mapping> mappings = read_mappings();
  for (program::Constant& constant : program.constants) {
    const std::span<const std::byte> bytes = constant.bytes.span;
    if (constant.file || bytes.size() < least_bytes) continue;
    const Mapping* mapping = find(mappings, bytes);
    struct stat status{};
    if (!mapping || ::stat(mapping->path.c_str(), &status) != 0 || status.st_ino != mapping->inode) continue;
    const uint64_t offset = mapping->offset + (reinterpret_cast<uint64_t>(bytes.data()) - mapping->begin);
    try {
      constant.file = program::describe_file_region(mapping->path, offset, bytes.size());
    } catch (const UserError&) {
      // Gone or shorter by now: the bytes are embedded.
    }
  }
}

}  // namespace fusewise::session

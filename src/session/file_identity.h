// Whether a file is still the one whose content was hashed, without reading it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fusewise::session {

struct FileIdentity {
  std::string path;  // absolute
  uint64_t size = 0, inode = 0;
  int64_t modified_ns = 0, changed_ns = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// Nothing when there is no such file.
std::optional<FileIdentity> identify(const std::string& path);

}  // namespace fusewise::session

// The folder of compiled programs and of what is known about model files. Entries appear whole or not at all, are
// checked when they are read, and a damaged one counts as absent. Any number of processes may share the folder.
//
//   FOLDER/programs/KEY.program   program files (program/program_file.h), the shared object inside
//   FOLDER/models/NAME.json       the content hash of a model by the identities of its files
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "program/program.h"
#include "session/file_identity.h"

namespace fusewise::session {

using Warn = std::function<void(const std::string&)>;

// The folder that the environment names or implies; nothing when it implies none.
std::optional<std::filesystem::path> default_cache_folder();
// Bytes that FUSEWISE_CACHE_LIMIT allows ("500M", "2G"; K, M, G and T count by 1024); 8 GiB when it says nothing.
uint64_t cache_limit(const Warn& warn);

class Cache {
 public:
  // Makes the folder. One that cannot be written, or that others can write code into, is warned of and not used.
  Cache(const std::filesystem::path& folder, uint64_t limit, const Warn& warn);
  // Keeps nothing.
  Cache() = default;

  bool enabled() const { return enabled_; }
  std::filesystem::path path_of(const Hash128& key) const;

  // Nothing when there is no valid entry.
  std::optional<program::Program> find(const Hash128& key) const;
  // Then removes the oldest entries beyond the limit. A failure is a warning.
  void store(const Hash128& key, const program::Program& program) const;

  // The content hash that is known of the model at this path, when all of its files are as they were.
  std::optional<Hash128> find_model(const std::string& path) const;
  void store_model(const std::string& path, const std::vector<FileIdentity>& files,
                   const Hash128& hash) const;

 private:
  std::filesystem::path model_file(const std::string& path) const;
  void evict(const std::filesystem::path& keep) const;

  bool enabled_ = false;
  std::filesystem::path folder_;
  uint64_t limit_ = 0;
  Warn warn_;
};

}  // namespace fusewise::session

#include "session/file_identity.h"

#include <sys/stat.h>

#include <filesystem>

namespace fusewise::session {
namespace {

int64_t nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

}  // namespace

std::optional<FileIdentity> identify(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return FileIdentity{error ? path : absolute.lexically_normal().string(),
                      static_cast<uint64_t>(status.st_size), status.st_ino, nanoseconds(status.st_mtim),
                      nanoseconds(status.st_ctim)};
}

}  // namespace fusewise::session

// A private folder that disappears, with what it holds, at the end of the scope.
#pragma once

#include <filesystem>

namespace fusewise {

class TemporaryFolder {
 public:
  TemporaryFolder();  // UserError when none can be made
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace fusewise

// Files: a read-only mapping, and writing that leaves either the whole new file or the old state.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

namespace fusewise {

// The bytes of a file, mapped on construction. Reading stays valid when the file is replaced by a rename,
// but not when another program cuts it short in place.
class MappedFile {
 public:
  MappedFile() = default;
  // Throws UserError that names the file when it is missing, unreadable or no regular file.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }
  std::string_view text() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

// Gives back the memory of whole pages within `bytes`, which must be of a MappedFile: they are read from the file
// again when somebody looks at them. So that going through a large file does not fill the memory.
void drop_pages(std::span<const std::byte> bytes);

// Writes to a temporary name in the same folder and renames it over `path`; on failure removes it and
// throws UserError with the reason. A link is followed; a device or pipe is written directly.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
// One file out of several pieces of memory, one after the other.
void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> pieces);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace fusewise

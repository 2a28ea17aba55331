#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <system_error>

#include "base/error.h"

namespace fusewise {

namespace {

[[noreturn]] void fail(const char* action, const std::filesystem::path& path, const std::string& reason,
                       const std::string& hint = {}) {
  ErrorContext context;
  context.file = path.string();
  context.hint = hint;
  throw UserError(fmt::format("cannot {} {}: {}", action, path.string(), reason), std::move(context));
}

std::string reason_of(int error) { return std::generic_category().message(error); }

// Closes at the end of a scope unless close() was called to see its result.
class FileDescriptor {
 public:
  explicit FileDescriptor(int number) : number_(number) {}
  ~FileDescriptor() {
    if (number_ >= 0) ::close(number_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int number() const { return number_; }
  // 0, or the error number.
  int close() { return ::close(std::exchange(number_, -1)) == 0 ? 0 : errno; }

 private:
  int number_;
};

using Pieces = std::span<const std::span<const std::byte>>;

// 0, or the error number. A write may take fewer bytes than asked for; the next one tells why.
int write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return ENOSPC;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return 0;
}

int write_all(int descriptor, Pieces pieces) {
  for (const std::span<const std::byte> piece : pieces)
    if (const int error = write_all(descriptor, piece)) return error;
  return 0;
}

void write_in_place(const std::filesystem::path& path, Pieces pieces) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.number() < 0) fail("write", path, reason_of(errno));
  if (const int error = write_all(file.number(), pieces)) fail("write", path, reason_of(error));
  if (const int error = file.close()) fail("write", path, reason_of(error));
}

// A name that no other writer of this or another process uses now.
std::filesystem::path temporary_name(const std::filesystem::path& path) {
  static std::atomic<uint64_t> counter{0};
  std::filesystem::path name = path;
  name += fmt::format(".{}.{}.tmp", ::getpid(), counter.fetch_add(1, std::memory_order_relaxed));
  return name;
}

// The file that a chain of links ends at, so that the rename replaces the file and not the link.
std::filesystem::path final_target(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::path target = path;
  for (int depth = 0; depth < 40 && std::filesystem::is_symlink(target, ignored); ++depth) {
    const std::filesystem::path next = std::filesystem::read_symlink(target, ignored);
    if (ignored) break;
    target = next.is_absolute() ? next : target.parent_path() / next;
  }
  return target;
}

void write_and_rename(const std::filesystem::path& path, Pieces pieces, mode_t mode) {
  const std::filesystem::path temporary = temporary_name(path);
  FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (file.number() < 0) {
    const int error = errno;
    fail("write", path, reason_of(error), error == ENOENT ? "create its folder first" : "");
  }
  int error = write_all(file.number(), pieces);
  const int close_error = file.close();
  if (error == 0) error = close_error;
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(temporary.c_str());
  fail("write", path, reason_of(error), error == ENOSPC ? "free some space on that file system" : "");
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // Opening a pipe would otherwise wait for a writer.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) fail("read", path, reason_of(errno));
  struct stat status{};
  if (::fstat(file.number(), &status) != 0) fail("read", path, reason_of(errno));
  if (S_ISDIR(status.st_mode)) fail("read", path, "it is a folder", "name a file in it");
  if (!S_ISREG(status.st_mode)) fail("read", path, "it is no regular file", "copy it into a file first");
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;
  void* memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (memory == MAP_FAILED) fail("map", path, reason_of(errno));
  data_ = memory;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(data_, size_);
}

void write_file_atomically(const std::filesystem::path& path, Pieces pieces) {
  struct stat status{};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) fail("write", path, "it is a folder", "name a file in it");
  if (exists && !S_ISREG(status.st_mode)) return write_in_place(path, pieces);
  write_and_rename(final_target(path), pieces, exists ? status.st_mode & 0777 : 0666);
}

void drop_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  write_file_atomically(path, Pieces(&bytes, 1));
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

}  // namespace fusewise

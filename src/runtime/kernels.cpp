#include "runtime/kernels.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "runtime/cpu_features.h"

namespace fusewise::runtime {
namespace {

void* open_library(const std::string& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle) return handle;
  const char* reason = ::dlerror();
  throw UserError(fmt::format("cannot load the kernels of {}: {}", path, reason ? reason : "unknown reason"));
}

// The file is removed, or the descriptor closed, only when the library is closed: while it is open no other
// library can have the same name, which the loader would take for this one.
class LibraryFile {
 public:
  LibraryFile() {
    descriptor_ = ::memfd_create("fusewise-kernels", MFD_CLOEXEC);
    if (descriptor_ >= 0) {
      path_ = fmt::format("/proc/self/fd/{}", descriptor_);
    } else {
      std::string name = (std::filesystem::temp_directory_path() / "fusewise-kernels-XXXXXX").string();
      descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
      if (descriptor_ < 0) fail("create", errno);
      path_ = name;
      is_file_ = true;
    }
  }
  ~LibraryFile() {
    if (is_file_) ::unlink(path_.c_str());
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  LibraryFile(const LibraryFile&) = delete;
  LibraryFile& operator=(const LibraryFile&) = delete;

  const std::string& path() const { return path_; }
  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail("write", written < 0 ? errno : ENOSPC);
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
  }

 private:
  [[noreturn]] static void fail(const char* action, int error) {
    throw UserError(
        fmt::format("cannot {} a file for the kernels: {}", action, std::generic_category().message(error)));
  }

  int descriptor_ = -1;
  std::string path_;
  bool is_file_ = false;
};

std::shared_ptr<void> open_library(const program::Library& library) {
  if (!library.path.empty()) return {open_library(library.path), [](void* handle) { ::dlclose(handle); }};
  if (library.bytes.span.empty()) return nullptr;
  auto file = std::make_shared<LibraryFile>();
  file->write(library.bytes.span);
  return {open_library(file->path()), [file](void* handle) { ::dlclose(handle); }};
}

}  // namespace

Kernels::Kernels(const program::Program& program, const std::function<void*(const std::string&)>& resolver) {
  if (!resolver) handle_ = open_library(program.library);
  const auto find = [&](const std::string& symbol) {
    void* address = resolver ? resolver(symbol) : handle_ ? ::dlsym(handle_.get(), symbol.c_str()) : nullptr;
    check(address != nullptr, "the program's library lacks the symbol " + symbol);
    return address;
  };
  for (const program::Kernel& kernel : program.kernels) {
    LoadedKernel& loaded = kernels_.emplace_back();
    for (uint32_t phase = 0; phase < kernel.phases; ++phase) {
      const std::string symbol = fmt::format("{}_p{}", kernel.name, phase);
      loaded.phases.push_back({std::bit_cast<PhaseFunction>(find(symbol)),
                               std::bit_cast<BlocksFunction>(find(symbol + "_blocks"))});
    }
  }
}

void check_cpu(const program::Program& program) {
  for (const std::string& feature : program.cpu_features)
    if (!cpu_has(feature))
      throw UserError(
          fmt::format("the program was compiled for a processor with {}, which this one lacks", feature),
          {{}, {}, {}, "compile the model on this machine"});
}

}  // namespace fusewise::runtime

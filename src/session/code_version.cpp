#include "session/code_version.h"

#include <dlfcn.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "program/program_file.h"
#include "session/file_identity.h"

namespace fusewise::session {
namespace {

void add_file(Hasher& hasher, const std::string& path) {
  const auto identity = identify(path);
  hasher.add(identity ? identity->size : 0).add(identity ? identity->modified_ns : 0);
}

Hash128 compute_code_version() {
  Hasher hasher;
  hasher.add(program::format_version);
  Dl_info info{};
  std::error_code error;
  std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  add_file(hasher, own.string());
  if (dladdr(std::bit_cast<void*>(&code_version), &info) != 0 && info.dli_fname != nullptr) {
    const std::filesystem::path object = std::filesystem::canonical(info.dli_fname, error);
    if (!error && object != own) add_file(hasher, object.string());
    if (!error) own = object;
  }
  add_file(hasher, (own.parent_path() / "libfusewise_llvm.so").string());
  return hasher.finish();
}

Hash128 compute_processor_version() {
  // The first processor's lines; the kernel asks the hardware for what comes later in the file, which takes time.
  std::ifstream file("/proc/cpuinfo");
  Hasher hasher;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::string_view key = std::string_view(line).substr(0, line.find_first_of("\t:"));
    if (key == "flags" || key == "model name" || key == "cpu family" || key == "model" || key == "stepping")
      hasher.add(std::string_view(line));
  }
  return hasher.finish();
}

}  // namespace

Hash128 code_version() {
  static const Hash128 version = compute_code_version();
  return version;
}

Hash128 processor_version() {
  static const Hash128 version = compute_processor_version();
  return version;
}

}  // namespace fusewise::session

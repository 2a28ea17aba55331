#include <dlfcn.h>

#include <bit>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "codegen/llvm_compiler.h"

namespace fusewise::codegen {
namespace {

namespace fs = std::filesystem;

// The folders of the object that holds this code (the executable or the shared library) and of the executable, and
// the folder of libraries beside an installed executable.
std::vector<fs::path> module_folders() {
  std::vector<fs::path> folders;
  Dl_info info{};
  if (dladdr(llvm_compiler_symbol, &info) != 0 && info.dli_fname != nullptr) {
    std::error_code error;
    fs::path own = fs::canonical(info.dli_fname, error);
    if (!error) folders.push_back(own.parent_path());
  }
  std::error_code error;
  fs::path executable = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    if (folders.empty() || folders[0] != executable.parent_path())
      folders.push_back(executable.parent_path());
    folders.push_back(executable.parent_path() / FUSEWISE_LIBRARIES_FROM_PROGRAMS);
  }
  return folders;
}

const LlvmCompiler* open_module() {
  std::string tried;
  for (const fs::path& folder : module_folders()) {
    const fs::path path = folder / "libfusewise_llvm.so";
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      tried += fmt::format("\n  {}", dlerror());
      continue;
    }
    void* symbol = dlsym(handle, llvm_compiler_symbol);
    if (symbol == nullptr)
      throw UserError(fmt::format("{} is not a compiler module of this program", path.string()));
    return std::bit_cast<LlvmCompilerFunction*>(symbol)();
  }
  throw UserError(
      "the compiler module libfusewise_llvm.so cannot be opened:" + tried,
      {.file = "libfusewise_llvm.so", .node = "", .op = "", .hint = "install it beside the program"});
}

}  // namespace

const LlvmCompiler& llvm_compiler() {
  static const LlvmCompiler* compiler = open_module();
  return *compiler;
}

}  // namespace fusewise::codegen

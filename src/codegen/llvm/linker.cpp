#include "codegen/llvm/linker.h"

#include <lld/Common/Driver.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "codegen/llvm/llvm_options.h"

LLD_HAS_DRIVER(elf)

namespace fusewise::codegen {
namespace {

// A file in memory, which the linker reads by its name under /proc.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& bytes) : descriptor_(memfd_create("fusewise-object", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw UserError("no file in memory can be made for the linker");
    size_t written = 0;
    while (written < bytes.size()) {
      const ssize_t count = write(descriptor_, bytes.data() + written, bytes.size() - written);
      if (count <= 0) {
        close(descriptor_);
        throw UserError("there is not enough memory for the objects to link");
      }
      written += static_cast<size_t>(count);
    }
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

 private:
  int descriptor_;
};

}  // namespace

void link_objects(std::span<const ObjectFile> objects, const std::filesystem::path& output) {
  std::vector<std::unique_ptr<MemoryFile>> files;
  std::vector<std::string> words = {"ld.lld",           "-shared",         "--threads=1", "-O0",
                                    "--hash-style=gnu", "--build-id=none", "-o",          output.string()};
  for (const char* option : llvm_options) words.insert(words.end(), {"-mllvm", option});
  for (const ObjectFile& object : objects) {
    files.push_back(std::make_unique<MemoryFile>(object.bytes));
    words.push_back(files.back()->path());
  }
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  const lld::DriverDef drivers[] = {{lld::Gnu, &lld::elf::link}};
  const lld::Result result = lld::lldMain(arguments, stream, stream, drivers);
  if (result.retCode != 0) throw UserError("linking the kernels failed: " + messages);
}

}  // namespace fusewise::codegen

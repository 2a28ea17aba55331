#include "codegen/codegen.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "base/thread_pool.h"
#include "codegen/llvm_compiler.h"

namespace fusewise::codegen {
namespace {

// Objects of about this many expressions: each costs some 30 KB and a fixed time, but they compile in parallel.
constexpr size_t expressions_per_object = 4000;

std::vector<std::span<const kernel::Kernel>> grouped(std::span<const kernel::Kernel> kernels) {
  std::vector<std::span<const kernel::Kernel>> groups;
  size_t begin = 0;
  size_t size = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    size += kernels[i].exprs.size();
    if (size < expressions_per_object && i + 1 < kernels.size()) continue;
    groups.push_back(kernels.subspan(begin, i + 1 - begin));
    begin = i + 1;
    size = 0;
  }
  return groups;
}

}  // namespace

CpuTarget host_target() { return llvm_compiler().host(); }

CpuTarget target_named(const std::string& name) {
  if (name == "native") return host_target();
  CpuTarget target{.triple = "x86_64-unknown-linux-gnu", .cpu = name, .features = "", .vector_bits = 256};
  if (name == "x86-64-v3") return target;
  if (name == "x86-64-v4") {
    target.vector_bits = 512;
    return target;
  }
  if (name == "aarch64")
    return {.triple = "aarch64-unknown-linux-gnu", .cpu = "generic", .features = "+neon", .vector_bits = 128};
  throw UserError(fmt::format("unknown CPU '{}': native, aarch64, x86-64-v3 and x86-64-v4 are known", name));
}

bool host_runs(const std::string& name) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  if (name == "x86-64-v3") return avx2;
  if (name == "x86-64-v4")
    return avx2 && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
           __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
           __builtin_cpu_supports("avx512cd") != 0;
#endif
  return name == "native";
}

std::vector<ObjectFile> compile_objects(std::span<const kernel::Kernel> kernels, const CpuTarget& target,
                                        int threads) {
  const auto groups = grouped(kernels);
  std::vector<ObjectFile> objects(groups.size());
  const LlvmCompiler& compiler = llvm_compiler();
  const int useful = std::clamp(threads, 1, std::max(1, static_cast<int>(groups.size())));
  ThreadPool pool(useful);
  pool.parallel_for(static_cast<int64_t>(groups.size()), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const size_t group = static_cast<size_t>(i);
      objects[group] = compiler.compile(groups[group], target);
    }
  });
  return objects;
}

void link_shared(std::span<const ObjectFile> objects, const std::filesystem::path& path) {
  llvm_compiler().link(objects, path);
}

std::string link_shared(std::span<const ObjectFile> objects) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "kernels.so";
  link_shared(objects, path);
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (!file)
    throw UserError("the linked kernels cannot be read back",
                    {.file = path.string(), .node = "", .op = "", .hint = ""});
  return std::move(bytes).str();
}

std::string emit_text(const kernel::Kernel& kernel, const CpuTarget& target, TextForm form) {
  return llvm_compiler().text(kernel, target, form);
}

}  // namespace fusewise::codegen

// Real shared objects, made by the system's C compiler.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/mapped_file.h"
#include "program/program_file.h"
#include "runtime/cpu_features.h"
#include "runtime/executable.h"
#include "sample_kernels.h"

namespace fusewise::runtime {
namespace {

// FACTOR is what the last phase multiplies by.
constexpr const char* source = R"(
#include <stdint.h>
void pack_p0(void* const* b, const int64_t* p, char* s, int64_t i, int64_t n) {
  for (int j = 0; j < 4; ++j) ((float*)b[1])[j] = ((const float*)b[0])[j];
}
int64_t pack_p0_blocks(const int64_t* p) { return 1; }
void add_p0(void* const* b, const int64_t* p, char* s, int64_t i, int64_t n) {
  for (i *= p[1]; i < n * p[1]; ++i) ((float*)b[2])[i] = ((const float*)b[0])[i] + ((const float*)b[1])[i % p[1]];
}
int64_t add_p0_blocks(const int64_t* p) { return p[0]; }
void relu_p0(void* const* b, const int64_t* p, char* s, int64_t i, int64_t n) {
  for (; i < n; ++i) ((float*)b[1])[i] = ((const float*)b[0])[i] > 0 ? ((const float*)b[0])[i] : 0;
}
int64_t relu_p0_blocks(const int64_t* p) { return p[0]; }
void relu_p1(void* const* b, const int64_t* p, char* s, int64_t i, int64_t n) {
  for (; i < n; ++i) ((float*)b[1])[i] *= FACTOR;
}
int64_t relu_p1_blocks(const int64_t* p) { return p[0]; }
)";

class SharedObject : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("cc --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no C compiler";
    std::string name = (std::filesystem::temp_directory_path() / "fusewise-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
    write_file_atomically(folder / "kernels.c", std::string_view(source));
  }
  void TearDown() override {
    if (!folder.empty()) std::filesystem::remove_all(folder);
  }

  std::filesystem::path compile(int factor) const {
    const std::filesystem::path path = folder / ("kernels" + std::to_string(factor) + ".so");
    const std::string command = "cc -shared -fPIC -O1 -DFACTOR=" + std::to_string(factor) + " -o " +
                                path.string() + " " + (folder / "kernels.c").string();
    EXPECT_EQ(std::system(command.c_str()), 0);
    return path;
  }
  static program::Library embedded(const std::filesystem::path& path) {
    const auto file = std::make_shared<const MappedFile>(path);
    return {{file->bytes(), file}, {}};
  }
  static float result(const Executable& executable) {
    const std::vector<std::vector<int64_t>> shapes = {{3, 4}};
    std::vector<float> x(12, 1.0F), y(12);
    std::vector<int64_t> shape(2);
    const void* inputs[] = {x.data()};
    void* outputs[] = {y.data(), shape.data()};
    const Status status = executable.run(*executable.bind(shapes), inputs, outputs);
    EXPECT_TRUE(status.ok()) << status.message;
    return y[11];
  }

  std::filesystem::path folder;
};

TEST_F(SharedObject, FromAFileAndFromBytes) {
  program::Program program = program::sample_program();
  program.library = {{}, compile(2).string()};
  EXPECT_EQ(result(Executable(program)), 10.0F);
  program.library = embedded(compile(3));
  EXPECT_EQ(result(Executable(program)), 15.0F);
}

TEST_F(SharedObject, TwoLibrariesInMemoryStayApart) {
  program::Program two = program::sample_program();
  two.library = embedded(compile(2));
  program::Program three = program::sample_program();
  three.library = embedded(compile(3));
  const Executable first(two);
  auto second = std::make_unique<Executable>(three);
  EXPECT_EQ(result(first), 10.0F);
  EXPECT_EQ(result(*second), 15.0F);
  for (int i = 0; i < 5; ++i) {
    second.reset();
    second = std::make_unique<Executable>(i % 2 ? three : two);
    EXPECT_EQ(result(*second), i % 2 ? 15.0F : 10.0F);
    EXPECT_EQ(result(first), 10.0F);
  }
}

TEST_F(SharedObject, ThroughAProgramFile) {
  program::Program program = program::sample_program();
  program.library = {{}, compile(2).string()};
  program::save(Executable(program).with_once_results(), folder / "program");
  std::filesystem::remove(folder / "kernels2.so");
  const Executable executable(program::load(folder / "program"));
  EXPECT_EQ(executable.once_seconds(), 0.0);
  EXPECT_EQ(result(executable), 10.0F);
}

TEST_F(SharedObject, MissingFilesAndSymbolsAreErrors) {
  program::Program program = program::sample_program();
  program.library = {{}, (folder / "missing.so").string()};
  EXPECT_THROW(Executable{program}, UserError);
  program.library = {{}, compile(2).string()};
  program.kernels[0].name = "unpack";
  EXPECT_THROW(Executable{program}, InternalError);
}

TEST(CpuFeatures, AgreeWithThemselves) {
  EXPECT_FALSE(cpu_has("warp-drive"));
#if defined(__x86_64__)
  EXPECT_TRUE(cpu_has("sse2"));
  std::ifstream file("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.find("flags") == std::string::npos) GTEST_SKIP() << "/proc/cpuinfo lists no flags";
  EXPECT_EQ(cpu_features().avx2_fma,
            text.find(" avx2 ") != std::string::npos && text.find(" fma ") != std::string::npos);
  EXPECT_EQ(cpu_has("avx512f"), text.find(" avx512f ") != std::string::npos);
#endif
}

}  // namespace
}  // namespace fusewise::runtime

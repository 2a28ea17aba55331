#include "session/cache.h"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/temporary_folder.h"
#include "session/metadata.h"

namespace fusewise::session {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Copies its input to its output; `filler` bytes make it larger.
program::Program copying_program(const std::string& name, size_t filler = 0) {
  program::Program program;
  program.name = name;
  program.inputs = {{"x", DataType::float32, {4}}};
  program.outputs = {{"y", DataType::float32, {4}, 1, {}}};
  program.buffers.resize(2);
  program.buffers[0].kind = program::BufferKind::input;
  program.buffers[0].index = 0;
  program.buffers[0].bytes = 16;
  program.buffers[1].kind = program::BufferKind::output;
  program.buffers[1].index = 0;
  program.buffers[1].bytes = 16;
  program::Step copy;
  copy.kind = program::StepKind::copy;
  copy.buffers = {0, 1};
  program.run_steps = {copy};
  program.metadata = std::string(filler, 'x');
  return program;
}

class CacheTest : public testing::Test {
 protected:
  Cache cache(uint64_t limit = uint64_t{1} << 30) {
    return Cache(folder_.path() / "cache", limit,
                 [&](const std::string& text) { warnings_.push_back(text); });
  }
  static Hash128 key(const std::string& text) { return hash_text(text); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() / name) << text;
    return (folder_.path() / name).string();
  }
  // As if the file had been written long ago.
  static std::vector<FileIdentity> aged(const std::string& path) {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    return {*identify(path)};
  }

  TemporaryFolder folder_;
  std::vector<std::string> warnings_;
};

TEST_F(CacheTest, KeepsPrograms) {
  EXPECT_FALSE(cache().find(key("a")).has_value());
  cache().store(key("a"), copying_program("first"));
  const auto found = cache().find(key("a"));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->name, "first");
  EXPECT_FALSE(cache().find(key("b")).has_value());
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CacheTest, ADamagedEntryCountsAsAbsentAndIsReplaced) {
  cache().store(key("a"), copying_program("first"));
  const fs::path path = cache().path_of(key("a"));
  const std::string good(MappedFile(path).text());
  for (size_t i = 0; i < good.size(); i += 7) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    std::ofstream(path, std::ios::binary) << bad;
    EXPECT_FALSE(cache().find(key("a")).has_value()) << i;
  }
  for (const size_t length : {size_t{0}, size_t{10}, good.size() / 2, good.size() - 1}) {
    std::ofstream(path, std::ios::binary) << good.substr(0, length);
    EXPECT_FALSE(cache().find(key("a")).has_value()) << length;
  }
  cache().store(key("a"), copying_program("second"));
  EXPECT_EQ(cache().find(key("a"))->name, "second");
}

TEST_F(CacheTest, TheOldestGoFirst) {
  const size_t size = 100000;
  for (const char* name : {"a", "b", "c"}) {
    cache().store(key(name), copying_program(name, size));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(cache().find(key("a")).has_value());  // now it is the youngest
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  cache(3 * size + size / 2).store(key("d"), copying_program("d", size));
  EXPECT_TRUE(cache().find(key("a")).has_value());
  EXPECT_FALSE(cache().find(key("b")).has_value());
  EXPECT_TRUE(cache().find(key("c")).has_value());
  // What was just stored stays, whatever the limit.
  cache(10).store(key("e"), copying_program("e", size));
  EXPECT_TRUE(cache().find(key("e")).has_value());
  EXPECT_FALSE(cache().find(key("d")).has_value());
}

TEST_F(CacheTest, AFolderThatCannotBeUsedIsAWarning) {
  write("file", "no folder");
  const Cache in_file(folder_.path() / "file", 1 << 20,
                      [&](const std::string& text) { warnings_.push_back(text); });
  EXPECT_FALSE(in_file.enabled());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("is not used")));
  in_file.store(key("a"), copying_program("first"));
  EXPECT_FALSE(in_file.find(key("a")).has_value());
}

TEST_F(CacheTest, CodeIsNotTakenFromWhereEverybodyMayWrite) {
  fs::create_directories(folder_.path() / "cache" / "programs");
  ::chmod((folder_.path() / "cache" / "programs").c_str(), 0777);
  EXPECT_FALSE(cache().enabled());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("everybody may write")));
}

TEST_F(CacheTest, ManyMayWriteAndReadAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      const Cache own(folder_.path() / "cache", 300000, [](const std::string&) {});
      for (int k = 0; k < 30; ++k) {
        const std::string name = std::to_string((i + k) % 5);
        own.store(key(name), copying_program(name, 50000));
        const auto found = own.find(key(name));
        if (found && found->name != name) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_.path() / "cache" / "programs"))
    EXPECT_EQ(entry.path().extension(), ".program") << "left over";
}

TEST_F(CacheTest, RemembersModelsByTheIdentityOfTheirFiles) {
  const std::string model = write("model.onnx", "weights");
  const std::vector<FileIdentity> files = aged(model);
  cache().store_model(model, files, key("content"));
  EXPECT_EQ(cache().find_model(model), key("content"));
  EXPECT_FALSE(cache().find_model(write("other.onnx", "weights")).has_value());
  // The same size, and the time put back: the inode's change time tells.
  const auto time = fs::last_write_time(model);
  write("model.onnx", "WEIGHTS");
  fs::last_write_time(model, time);
  EXPECT_FALSE(cache().find_model(model).has_value());
}

TEST_F(CacheTest, AModelWrittenJustNowIsNotRemembered) {
  const std::string model = write("model.onnx", "weights");
  cache().store_model(model, {*identify(model)}, key("content"));
  EXPECT_FALSE(cache().find_model(model).has_value());
}

TEST_F(CacheTest, AModelWithoutOneOfItsFilesIsNotRemembered) {
  const std::string model = write("model.onnx", "graph"), weights = write("model.bin", "weights");
  std::vector<FileIdentity> files = aged(model);
  files.push_back(*identify(weights));
  cache().store_model(model, files, key("content"));
  EXPECT_TRUE(cache().find_model(model).has_value());
  fs::remove(weights);
  EXPECT_FALSE(cache().find_model(model).has_value());
}

TEST(CacheLimit, CountsInPowersOf1024) {
  std::vector<std::string> warnings;
  const auto limit = [&](const char* text) {
    ::setenv("FUSEWISE_CACHE_LIMIT", text, 1);
    return cache_limit([&](const std::string& warning) { warnings.push_back(warning); });
  };
  EXPECT_EQ(limit("123"), 123u);
  EXPECT_EQ(limit("5k"), 5u << 10);
  EXPECT_EQ(limit("500M"), uint64_t{500} << 20);
  EXPECT_EQ(limit("2G"), uint64_t{2} << 30);
  EXPECT_EQ(limit("0"), 0u);
  EXPECT_THAT(warnings, IsEmpty());
  for (const char* wrong : {"much", "-5", "5X", "5MB", "99999999999T"})
    EXPECT_EQ(limit(wrong), uint64_t{8} << 30);
  EXPECT_EQ(warnings.size(), 5u);
  ::unsetenv("FUSEWISE_CACHE_LIMIT");
}

TEST(MetadataText, IsReadAsItIsWritten) {
  Metadata metadata;
  metadata.flops = Dim::symbol("n") * Dim(12) + Dim(5);
  metadata.index_extents = {Dim(7), std::nullopt, Dim::symbol("n")};
  metadata.phases_ms = {{"plan", 1.5}};
  metadata.predicted_ms = 0.25;
  metadata.predicted_step_ms = {std::nullopt, 0.5};
  metadata.machine = "a machine";
  metadata.compiler = "\"quoted\"\n";
  const Metadata read = metadata_from(to_text(metadata));
  EXPECT_EQ(read.flops, metadata.flops);
  EXPECT_EQ(read.index_extents, metadata.index_extents);
  EXPECT_EQ(read.phases_ms, metadata.phases_ms);
  EXPECT_EQ(read.predicted_step_ms, metadata.predicted_step_ms);
  EXPECT_EQ(read.compiler, metadata.compiler);
  for (const char* wrong : {"", "{}", "[1]", "text"}) EXPECT_THROW(metadata_from(wrong), UserError);
}

}  // namespace
}  // namespace fusewise::session

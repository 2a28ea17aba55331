#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/temporary_folder.h"

namespace fusewise {
namespace {

using testing::HasSubstr;

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

template <class Action>
std::string user_error_of(Action action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(MappedFile, ReadsWhatWasWritten) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "data";
  const std::string text("some\0bytes\n", 11);
  write_file_atomically(file, text);
  MappedFile mapped(file);
  EXPECT_EQ(mapped.size(), 11U);
  EXPECT_EQ(mapped.text(), text);
  const MappedFile moved = std::move(mapped);
  EXPECT_EQ(moved.text(), text);
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"data"});
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "empty", "");
  EXPECT_EQ(MappedFile(folder.path() / "empty").size(), 0U);
  EXPECT_TRUE(MappedFile(folder.path() / "empty").bytes().empty());
}

TEST(MappedFile, ErrorsNameTheFile) {
  const TemporaryFolder folder;
  const auto missing = folder.path() / "missing.onnx";
  const std::string message = user_error_of([&] { MappedFile{missing}; });
  EXPECT_THAT(message, HasSubstr("missing.onnx"));
  EXPECT_THAT(message, HasSubstr("No such file"));
  EXPECT_THAT(user_error_of([&] { MappedFile{folder.path()}; }), HasSubstr("it is a folder"));
  EXPECT_THAT(user_error_of([] { MappedFile{"/dev/null"}; }), HasSubstr("no regular file"));
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(user_error_of([&] { MappedFile{pipe}; }), HasSubstr("no regular file"));
}

TEST(MappedFile, StaysValidWhenTheFileIsReplaced) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "data";
  write_file_atomically(file, "old");
  const MappedFile mapped(file);
  write_file_atomically(file, "newer");
  EXPECT_EQ(mapped.text(), "old");
  EXPECT_EQ(MappedFile(file).text(), "newer");
}

TEST(WriteFile, KeepsThePermissionsAndFollowsLinks) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "data";
  write_file_atomically(file, "one");
  std::filesystem::permissions(file,
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::filesystem::create_symlink("data", folder.path() / "link");
  write_file_atomically(folder.path() / "link", "two");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "link"));
  EXPECT_EQ(MappedFile(file).text(), "two");
  EXPECT_EQ(std::filesystem::status(file).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST(WriteFile, ADeviceIsWrittenNotReplaced) {
  write_file_atomically("/dev/null", "into the void");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_THAT(user_error_of([] { write_file_atomically("/dev/full", "text"); }), HasSubstr("No space left"));
}

TEST(WriteFile, ErrorsNameTheFile) {
  const TemporaryFolder folder;
  const std::string message =
      user_error_of([&] { write_file_atomically(folder.path() / "no" / "file", "x"); });
  EXPECT_THAT(message, HasSubstr("no/file"));
  EXPECT_THAT(user_error_of([&] { write_file_atomically(folder.path(), "x"); }), HasSubstr("it is a folder"));
}

// Lowers the largest file size for a scope: a stand-in for a file system that fills up half-way.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &saved_);
    const rlimit lowered{bytes, saved_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &lowered);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &saved_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit saved_{};
  void (*handler_)(int);
};

TEST(WriteFile, AFailureHalfWayLeavesTheOldFileAndNothingElse) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "data";
  write_file_atomically(file, "old");
  const std::string large(100000, 'x');
  std::string message;
  {
    const FileSizeLimit limit(4096);
    message = user_error_of([&] { write_file_atomically(file, large); });
  }
  EXPECT_THAT(message, HasSubstr("cannot write"));
  EXPECT_THAT(message, HasSubstr("too large"));
  EXPECT_EQ(MappedFile(file).text(), "old");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"data"});
}

}  // namespace
}  // namespace fusewise

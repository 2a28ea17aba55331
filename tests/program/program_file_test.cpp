#include "program/program_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"
#include "base/mapped_file.h"
#include "program/container.h"
#include "program/tables.h"
#include "sample.h"

namespace fusewise::program {
namespace {

class ProgramFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "fusewise-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::vector<std::byte> read(const std::filesystem::path& path) const {
    const MappedFile file(path);
    return {file.bytes().begin(), file.bytes().end()};
  }
  std::filesystem::path write(std::span<const std::byte> bytes, const std::string& name = "changed") const {
    write_file_atomically(folder / name, bytes);
    return folder / name;
  }
  std::string refusal(const std::filesystem::path& path, const LoadOptions& options = {}) const {
    try {
      load(path, options);
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(folder.string()));
      return error.what();
    }
    return "loaded";
  }

  std::filesystem::path folder;
};

std::vector<std::byte> tables(const Program& program) {
  Program copy = program;
  Encoder encoder;
  transfer(encoder, copy);
  return encoder.bytes;
}

std::vector<float> floats(const Bytes& bytes) {
  std::vector<float> values(bytes.span.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.span.data(), bytes.span.size());
  return values;
}

// Gives a changed file a valid checksum of its front again.
void seal(std::vector<std::byte>& file) {
  Header header{};
  std::memcpy(&header, file.data(), sizeof(header));
  header.front_hash = hash_front(std::span(file).first(header.front_bytes));
  std::memcpy(file.data(), &header, sizeof(header));
}

TEST_F(ProgramFile, RoundTrip) {
  Program program = sample_program();
  program.buffers[3].may_overwrite = {5};
  save(program, folder / "p");
  const Program loaded = load(folder / "p");
  EXPECT_NE(loaded.constants[0].hash, Hash128{});
  program.constants[0].hash = loaded.constants[0].hash;
  EXPECT_EQ(tables(loaded), tables(program));
  EXPECT_EQ(loaded.outputs[0].shape, program.outputs[0].shape);
  EXPECT_EQ(loaded.kernels[1].scratch_bytes, program.kernels[1].scratch_bytes);
  EXPECT_EQ(floats(loaded.constants[0].bytes), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(loaded.constants[0].bytes.span.data()) % 64, 0u);
  EXPECT_EQ(loaded.library.bytes.span.size(), 3u);
}

TEST_F(ProgramFile, EmptyProgram) {
  save(Program(), folder / "p");
  EXPECT_EQ(tables(load(folder / "p")), tables(Program()));
}

TEST_F(ProgramFile, SameProgramGivesTheSameBytes) {
  save(sample_program(), folder / "a");
  save(sample_program(), folder / "b");
  EXPECT_EQ(read(folder / "a"), read(folder / "b"));
}

TEST_F(ProgramFile, OnceResultsReplaceTheConstantsTheyAreMadeOf) {
  Program program = sample_program();
  program.buffers[2].content = bytes_of_values<float>({1, 2, 3, 4, 0, 0, 0, 0});
  save(program, folder / "p");
  const Program loaded = load(folder / "p");
  EXPECT_TRUE(has_once_results(loaded));
  EXPECT_EQ(floats(loaded.buffers[2].content), (std::vector<float>{1, 2, 3, 4, 0, 0, 0, 0}));
  EXPECT_TRUE(loaded.constants[0].bytes.span.empty());
  save(loaded, folder / "again");
  EXPECT_EQ(read(folder / "p"), read(folder / "again"));
}

class ConstantsInFiles : public ProgramFile {
 protected:
  void SetUp() override {
    ProgramFile::SetUp();
    weights = (folder / "weights").string();
    write(bytes_of_values<float>({9, 1, 2, 3, 4}).span, "weights");
    program = sample_program();
    program.constants[0].file = describe_file_region(weights, 4, 16);
    save(program, folder / "p");
  }
  std::string weights;
  Program program;
};

TEST_F(ConstantsInFiles, AreMapped) {
  const Program loaded = load(folder / "p");
  EXPECT_EQ(floats(loaded.constants[0].bytes), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(loaded.constants[0].file->path, weights);
}

TEST_F(ConstantsInFiles, MayBeTouchedButNotChanged) {
  write(bytes_of_values<float>({8, 1, 2, 3, 4}).span,
        "weights");  // another inode and time; other bytes differ
  EXPECT_EQ(refusal(folder / "p"), "loaded");
  write(bytes_of_values<float>({9, 1, 2, 3, 5}).span, "weights");
  EXPECT_THAT(refusal(folder / "p"), testing::HasSubstr("constant 'w'"));
  EXPECT_EQ(refusal(folder / "p", {true, false}), "loaded");
  write(bytes_of_values<float>({9, 1}).span, "weights");
  EXPECT_THAT(refusal(folder / "p"), testing::HasSubstr("too short"));
  std::filesystem::remove(weights);
  EXPECT_THAT(refusal(folder / "p"), testing::HasSubstr("weights"));
}

TEST_F(ConstantsInFiles, AreNotOpenedForOnceResults) {
  program.buffers[2].content = bytes_of_values<float>({1, 2, 3, 4, 0, 0, 0, 0});
  save(program, folder / "p");
  std::filesystem::remove(weights);
  EXPECT_EQ(refusal(folder / "p"), "loaded");
}

TEST_F(ConstantsInFiles, CanBeEmbedded) {
  save(program, folder / "p", {true});
  std::filesystem::remove(weights);
  EXPECT_EQ(floats(load(folder / "p").constants[0].bytes), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(ConstantsInFiles, MustLieWithinTheirFile) {
  EXPECT_THROW(describe_file_region(weights, 8, 16), UserError);
  EXPECT_THROW(describe_file_region(weights, 1, UINT64_MAX), UserError);
  EXPECT_THROW(describe_file_region(weights + "2", 0, 0), UserError);
}

TEST_F(ProgramFile, MissingConstantsAreNotSaved) {
  Program program = sample_program();
  program.constants[0].bytes = {};
  EXPECT_THROW(save(program, folder / "p"), InternalError);
}

TEST_F(ProgramFile, EveryChangedByteIsNoticed) {
  Program program = sample_program();
  program.buffers[2].content = bytes_of_values<float>({1, 2, 3, 4, 0, 0, 0, 0});
  save(program, folder / "p");
  const std::vector<std::byte> good = read(folder / "p");
  for (size_t i = 0; i < good.size(); ++i) {
    std::vector<std::byte> bad = good;
    bad[i] ^= std::byte{0x41};
    ASSERT_NE(refusal(write(bad)), "loaded") << "byte " << i;
  }
}

TEST_F(ProgramFile, EveryLengthIsNoticed) {
  save(sample_program(), folder / "p");
  const std::vector<std::byte> good = read(folder / "p");
  for (size_t length = 0; length < good.size(); ++length)
    ASSERT_NE(refusal(write(std::span(good).first(length))), "loaded") << length;
  std::vector<std::byte> longer = good;
  longer.push_back(std::byte{0});
  EXPECT_THAT(refusal(write(longer)), testing::HasSubstr("bytes where"));
}

TEST_F(ProgramFile, OtherFilesAndVersionsAreRefused) {
  EXPECT_THAT(refusal(write(bytes_of_values<char>({'h', 'i'}).span)),
              testing::HasSubstr("no Fusewise program"));
  EXPECT_THAT(refusal(folder / "nothing"), testing::HasSubstr("cannot read"));
  save(sample_program(), folder / "p");
  std::vector<std::byte> file = read(folder / "p");
  file[8] = std::byte{77};
  seal(file);
  EXPECT_THAT(refusal(write(file)), testing::HasSubstr("format version 77"));
}

// Damage that the checksum does not show must end in an error or in a valid program, never in a wild access.
TEST_F(ProgramFile, HostileTablesDoNoHarm) {
  Program program = sample_program();
  program.buffers[2].content = bytes_of_values<float>({1, 2, 3, 4, 0, 0, 0, 0});
  save(program, folder / "p");
  const std::vector<std::byte> good = read(folder / "p");
  Header header{};
  std::memcpy(&header, good.data(), sizeof(header));
  std::mt19937 random(7);
  int loaded = 0;
  int refused = 0;
  const auto attempt = [&](std::vector<std::byte> bad) {
    seal(bad);
    (refusal(write(bad)) == "loaded" ? loaded : refused) += 1;
  };
  for (size_t i = sizeof(Header); i < header.front_bytes; ++i) {
    for (const int value : {0, 1, 0x7F, 0xFF}) {
      std::vector<std::byte> bad = good;
      bad[i] = static_cast<std::byte>(value);
      attempt(bad);
    }
  }
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> bad = good;
    for (size_t changes = 1 + random() % 4; changes > 0; --changes)
      bad[sizeof(Header) + random() % (header.front_bytes - sizeof(Header))] =
          static_cast<std::byte>(random());
    attempt(bad);
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(loaded, 100);  // names and the like
}

TEST_F(ProgramFile, DataIsReadOnlyWhenAskedFor) {
  Program program = sample_program();
  save(program, folder / "p");
  std::vector<std::byte> file = read(folder / "p");
  file.back() ^= std::byte{1};
  EXPECT_THAT(refusal(write(file)), testing::HasSubstr("checksum of its data"));
  EXPECT_EQ(refusal(write(file), {false, true}), "loaded");
}

TEST_F(ProgramFile, LibraryFromAFileIsEmbedded) {
  Program program = sample_program();
  program.library = {{}, (folder / "kernels.so").string()};
  write(bytes_of_values<char>({'s', 'o'}).span, "kernels.so");
  save(program, folder / "p");
  std::filesystem::remove(folder / "kernels.so");
  EXPECT_EQ(load(folder / "p").library.bytes.span.size(), 2u);
  EXPECT_TRUE(load(folder / "p").library.path.empty());
}

}  // namespace
}  // namespace fusewise::program

#include "session/files/npz.h"

#include <zlib.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "base/temporary_folder.h"
#include "session/files/npy.h"

namespace fusewise::session {
namespace {

using graph::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
std::string little_endian(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string deflated(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(text.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

struct Options {
  bool compress = false, zip64 = false, wrong_checksum = false;
  uint16_t method = 0, flags = 0;
  std::string comment = {};
};

// An archive as NumPy writes it.
std::string archive(const std::vector<std::pair<std::string, std::string>>& entries,
                    const Options& options = {}) {
  std::string file, directory;
  for (const auto& [name, content] : entries) {
    const std::string packed = options.compress ? deflated(content) : content;
    const uint16_t method = options.method != 0 ? options.method : options.compress ? 8 : 0;
    uLong checksum =
        crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
    if (options.wrong_checksum) checksum ^= 1;
    const auto small = [&](size_t size) {
      return little_endian(options.zip64 ? 0xFFFFFFFFu : static_cast<uint32_t>(size));
    };
    const std::string extra = !options.zip64 ? ""
                                             : little_endian<uint16_t>(1) + little_endian<uint16_t>(24) +
                                                   little_endian<uint64_t>(content.size()) +
                                                   little_endian<uint64_t>(packed.size()) +
                                                   little_endian<uint64_t>(file.size());
    const std::string common = little_endian(options.flags) + little_endian(method) + std::string(4, '\0') +
                               little_endian(static_cast<uint32_t>(checksum));
    directory += little_endian<uint32_t>(0x02014b50) + std::string(4, '\0') + common + small(packed.size()) +
                 small(content.size()) + little_endian(static_cast<uint16_t>(name.size())) +
                 little_endian(static_cast<uint16_t>(extra.size())) + std::string(10, '\0') +
                 small(file.size()) + name + extra;
    file += little_endian<uint32_t>(0x04034b50) + std::string(2, '\0') + common + small(packed.size()) +
            small(content.size()) + little_endian(static_cast<uint16_t>(name.size())) +
            little_endian<uint16_t>(3) + name + "abc" + packed;
  }
  const auto count = static_cast<uint16_t>(entries.size());
  const uint64_t offset = file.size();
  file += directory;
  if (options.zip64) {
    const uint64_t end = file.size();
    file += little_endian<uint32_t>(0x06064b50) + std::string(20, '\0') + little_endian<uint64_t>(count) +
            little_endian<uint64_t>(count) + little_endian<uint64_t>(directory.size()) +
            little_endian(offset);
    file += little_endian<uint32_t>(0x07064b50) + std::string(4, '\0') + little_endian(end) +
            std::string(4, '\0');
  }
  const uint32_t given_offset = options.zip64 ? 0xFFFFFFFF : static_cast<uint32_t>(offset);
  return file + little_endian<uint32_t>(0x06054b50) + std::string(4, '\0') + little_endian(count) +
         little_endian(count) + little_endian(static_cast<uint32_t>(directory.size())) +
         little_endian(given_offset) + little_endian(static_cast<uint16_t>(options.comment.size())) +
         options.comment;
}

class Npz : public testing::Test {
 protected:
  std::string npy(const Tensor& tensor) {
    write_npy(folder_.path() / "array.npy", tensor);
    return std::string(MappedFile(folder_.path() / "array.npy").text());
  }
  std::vector<std::pair<std::string, Tensor>> read(const std::string& file) {
    write_file_atomically(folder_.path() / "x.npz", std::string_view(file));
    return read_npz(folder_.path() / "x.npz");
  }
  std::string message_of(const std::string& file) {
    try {
      read(file);
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  }
  std::vector<std::pair<std::string, std::string>> entries() {
    return {{"a/b:0.npy", npy(Tensor::from<float>(DataType::float32, {3}, {1, 2, 3}))},
            {"ids.npy", npy(Tensor::from<int64_t>(DataType::int64, {0, 2}, {}))}};
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(Npz, ReadsStoredAndDeflatedOfAnySize) {
  for (const bool compress : {false, true})
    for (const bool zip64 : {false, true})
      for (const std::string& comment : {std::string(), std::string("a comment")}) {
        const auto arrays =
            read(archive(entries(), {.compress = compress, .zip64 = zip64, .comment = comment}));
        ASSERT_EQ(arrays.size(), 2u);
        EXPECT_EQ(arrays[0].first, "a/b:0");
        EXPECT_THAT(arrays[0].second.as<float>(), ElementsAre(1, 2, 3));
        EXPECT_EQ(arrays[1].first, "ids");
        EXPECT_THAT(arrays[1].second.shape, ElementsAre(0, 2));
      }
}

TEST_F(Npz, MayBeEmptyAndHoldOtherFiles) {
  EXPECT_TRUE(read(archive({})).empty());
  EXPECT_TRUE(read(archive({{"readme.txt", "text"}})).empty());
}

TEST_F(Npz, RefusesWhatIsDamaged) {
  for (const bool compress : {false, true}) {
    const std::string good = archive(entries(), {.compress = compress});
    for (size_t length = 0; length < good.size(); length += 3) {
      const std::string message = message_of(good.substr(0, length));
      EXPECT_THAT(message, HasSubstr("cannot be read")) << length;
    }
    EXPECT_THAT(message_of(archive(entries(), {.compress = compress, .wrong_checksum = true})),
                HasSubstr("checksum"));
  }
  EXPECT_THAT(message_of("no archive at all, but a text"), HasSubstr("no zip file"));
  EXPECT_THAT(message_of(archive(entries(), {.method = 12})), HasSubstr("method 12"));
  EXPECT_THAT(message_of(archive(entries(), {.flags = 1})), HasSubstr("encrypted"));
}

TEST_F(Npz, NeverReadsOutsideOfADamagedFile) {
  std::string good = archive(entries(), {.compress = true});
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0xFF);
    message_of(bad);  // an error or another array, but no crash and no endless loop
  }
}

}  // namespace
}  // namespace fusewise::session

#include "session/files/npy.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "base/temporary_folder.h"

namespace fusewise::session {
namespace {

using graph::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

// A version-1 file with this header text and data.
std::string file_of(const std::string& header, const std::string& data, char version = 1) {
  std::string file = std::string("\x93NUMPY") + version + '\0';
  file += {static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  if (version > 1) file += std::string(2, '\0');
  return file + header + data;
}

template <class T>
std::string bytes_of_values(std::vector<T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

Tensor parse(const std::string& file) {
  const auto owner = std::make_shared<std::string>(file);
  return parse_npy(std::as_bytes(std::span(*owner)), owner, "x.npy");
}

std::string message_of(const std::string& file) {
  try {
    parse(file);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Npy, WritesWhatItReads) {
  const TemporaryFolder folder;
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{}, {0}, {1}, {7}, {2, 0, 3}, {2, 3, 5}}) {
    for (const DataType type :
         {DataType::boolean, DataType::int8, DataType::uint16, DataType::int32, DataType::int64,
          DataType::uint64, DataType::float16, DataType::float32, DataType::float64}) {
      Tensor tensor(type, shape);
      for (std::byte& byte : tensor.mutable_bytes()) byte = std::byte{1};
      write_npy(folder.path() / "x.npy", tensor);
      const Tensor read = read_npy(folder.path() / "x.npy");
      EXPECT_EQ(read.element, type);
      EXPECT_EQ(read.shape, shape);
      EXPECT_TRUE(
          std::equal(read.bytes().begin(), read.bytes().end(), tensor.bytes().begin(), tensor.bytes().end()));
    }
  }
}

TEST(Npy, DataStartsAtAMultipleOf64) {
  const TemporaryFolder folder;
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{}, {12}, {123456, 0}, {1, 2, 3, 4, 0}}) {
    write_npy(folder.path() / "x.npy", Tensor(DataType::float32, shape));
    const MappedFile file(folder.path() / "x.npy");
    EXPECT_EQ((file.size() - Tensor(DataType::float32, shape).bytes().size()) % 64, 0u);
    EXPECT_THAT(std::string(file.text()), HasSubstr("'descr': '<f4', 'fortran_order': False"));
  }
}

TEST(Npy, HalfOfGoogleIsWrittenAsIntegers) {
  EXPECT_EQ(npy_type(DataType::bfloat16), DataType::uint16);
  EXPECT_EQ(npy_type(DataType::float8e5m2), DataType::uint8);
  EXPECT_EQ(npy_type(DataType::float16), DataType::float16);
  EXPECT_THROW(npy_type(DataType::int4), UnsupportedError);
  EXPECT_THROW(npy_type(DataType::string), UnsupportedError);
}

TEST(Npy, ReadsColumnsFirst) {
  const Tensor tensor = parse(file_of("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }",
                                      bytes_of_values<int32_t>({1, 4, 2, 5, 3, 6})));
  EXPECT_THAT(tensor.shape, ElementsAre(2, 3));
  EXPECT_THAT(tensor.as<int32_t>(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Npy, ReadsBigEndian) {
  const Tensor tensor =
      parse(file_of("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", std::string("\1\2\3\4")));
  EXPECT_THAT(tensor.as<int16_t>(), ElementsAre(0x0102, 0x0304));
}

TEST(Npy, ReadsAllVersionsAndSpellings) {
  for (const char version : {1, 2, 3}) {
    const Tensor tensor =
        parse(file_of("{\"shape\":(3L, ),\"fortran_order\":False,\"descr\":\"|u1\"}", "abc", version));
    EXPECT_THAT(tensor.shape, ElementsAre(3));
  }
  EXPECT_THAT(parse(file_of("{'descr': '<f4', 'fortran_order': False, 'shape': ()}\n", "1234")).shape,
              ElementsAre());
}

TEST(Npy, BooleansAreZeroOrOne) {
  const Tensor tensor =
      parse(file_of("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", std::string("\0\1\7", 3)));
  EXPECT_THAT(tensor.as<uint8_t>(), ElementsAre(0, 1, 1));
}

TEST(Npy, DataMayStartAnywhere) {
  // 10 + 53 bytes of header: the data is not aligned to its elements.
  const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)} ";
  for (size_t spaces = 0; spaces < 8; ++spaces) {
    const Tensor tensor = parse(file_of(header + std::string(spaces, ' '), bytes_of_values<double>({2.5})));
    EXPECT_EQ(tensor.as<double>()[0], 2.5);
  }
}

TEST(Npy, RefusesWhatIsDamaged) {
  const std::string good =
      file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", std::string(24, 'x'));
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_THAT(message_of(good.substr(0, length)), HasSubstr("x.npy cannot be read")) << length;
  EXPECT_EQ(message_of(good), "no error");
  EXPECT_THAT(message_of(good + "y"), HasSubstr("1 bytes follow its last element"));
  EXPECT_THAT(message_of("PK\3\4 and more text"), HasSubstr("it is no .npy file"));
  const auto with = [](const std::string& header) {
    return message_of(file_of(header, std::string(24, 'x')));
  };
  EXPECT_THAT(with("{'descr': '<f4', 'fortran_order': False}"), HasSubstr("incomplete"));
  EXPECT_THAT(with("{'descr': '<U3', 'fortran_order': False, 'shape': (2,)}"), HasSubstr("type '<U3'"));
  EXPECT_THAT(with("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}"), HasSubstr("type '|O'"));
  EXPECT_THAT(with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}"), HasSubstr("records"));
  EXPECT_THAT(with("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}"),
              HasSubstr("shape that is none"));
  EXPECT_THAT(with("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9)}"),
              HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace fusewise::session

#include "session/files/npy_header.h"

#include <fmt/core.h>

#include <charconv>
#include <utility>

#include "base/error.h"

namespace fusewise::session {
namespace {

constexpr std::pair<std::string_view, DataType> descriptors[] = {
    {"b1", DataType::boolean}, {"c16", DataType::complex128}, {"c8", DataType::complex64},
    {"f2", DataType::float16}, {"f4", DataType::float32},     {"f8", DataType::float64},
    {"i1", DataType::int8},    {"i2", DataType::int16},       {"i4", DataType::int32},
    {"i8", DataType::int64},   {"u1", DataType::uint8},       {"u2", DataType::uint16},
    {"u4", DataType::uint32},  {"u8", DataType::uint64},
};

// Reads the few forms of Python literals that the header is made of.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool take(char wanted) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted)) throw UserError(fmt::format("its header lacks a '{}' at position {}", wanted, at_));
  }
  std::string_view string() {
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"')
      throw UnsupportedError("its elements are records, which no tensor of a model has");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) throw UserError("its header has a text without an end");
    const std::string_view result = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return result;
  }
  bool boolean() {
    skip_spaces();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    throw UserError("its header has neither True nor False where one belongs");
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> values;
    expect('(');
    while (!take(')')) {
      values.push_back(integer());
      take('L');  // Python 2 wrote long integers so
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  int64_t integer() {
    skip_spaces();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) throw UserError("its header has a shape that is none");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  std::string_view text_;
  size_t at_ = 0;
};

void set_type(NpyHeader& header, std::string_view descriptor) {
  const char order = descriptor.empty() ? '\0' : descriptor[0];
  const bool has_order = order == '<' || order == '>' || order == '|' || order == '=';
  const std::string_view kind = has_order ? descriptor.substr(1) : descriptor;
  for (const auto& [name, type] : descriptors) {
    if (name != kind) continue;
    header.type = type;
    header.big_endian = order == '>';
    return;
  }
  throw UnsupportedError(
      fmt::format("its elements have type '{}', which no tensor of a model has", descriptor));
}

}  // namespace

NpyHeader parse_npy_header(std::string_view text) {
  NpyHeader header;
  bool has_type = false, has_order = false, has_shape = false;
  Reader reader(text);
  reader.expect('{');
  while (!reader.take('}')) {
    const std::string_view key = reader.string();
    reader.expect(':');
    if (key == "descr") {
      set_type(header, reader.string());
      has_type = true;
    } else if (key == "fortran_order") {
      header.fortran_order = reader.boolean();
      has_order = true;
    } else if (key == "shape") {
      header.shape = reader.tuple();
      has_shape = true;
    } else {
      throw UserError(fmt::format("its header has an unknown entry '{}'", key));
    }
    if (!reader.take(',')) {
      reader.expect('}');
      break;
    }
  }
  if (!has_type || !has_order || !has_shape) throw UserError("its header is incomplete");
  return header;
}

std::string npy_descriptor(DataType type) {
  for (const auto& [name, named] : descriptors)
    if (named == type) return fmt::format("{}{}", bits_of(type) == 8 ? '|' : '<', name);
  throw UnsupportedError(fmt::format("NumPy has no element type for {}", name_of(type)));
}

}  // namespace fusewise::session

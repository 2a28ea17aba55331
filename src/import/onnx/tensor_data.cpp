#include "import/onnx/tensor_data.h"

#include <fmt/core.h>

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"

namespace fusewise::onnx {

static_assert(std::endian::native == std::endian::little,
              "raw tensor data is little-endian and used in place");

namespace {

struct ElementRow {
  ElementType number;
  DataType type;
};

constexpr ElementRow element_rows[] = {
    {ElementType::boolean, DataType::boolean},
    {ElementType::int4, DataType::int4},
    {ElementType::int8, DataType::int8},
    {ElementType::int16, DataType::int16},
    {ElementType::int32, DataType::int32},
    {ElementType::int64, DataType::int64},
    {ElementType::uint4, DataType::uint4},
    {ElementType::uint8, DataType::uint8},
    {ElementType::uint16, DataType::uint16},
    {ElementType::uint32, DataType::uint32},
    {ElementType::uint64, DataType::uint64},
    {ElementType::float4e2m1, DataType::float4e2m1},
    {ElementType::float8e4m3fn, DataType::float8e4m3fn},
    {ElementType::float8e4m3fnuz, DataType::float8e4m3fnuz},
    {ElementType::float8e5m2, DataType::float8e5m2},
    {ElementType::float8e5m2fnuz, DataType::float8e5m2fnuz},
    {ElementType::float8e8m0, DataType::float8e8m0},
    {ElementType::bfloat16, DataType::bfloat16},
    {ElementType::float16, DataType::float16},
    {ElementType::float32, DataType::float32},
    {ElementType::float64, DataType::float64},
    {ElementType::complex64, DataType::complex64},
    {ElementType::complex128, DataType::complex128},
    {ElementType::string, DataType::string},
};

[[noreturn]] void fail(std::string_view tensor, const std::string& what) {
  throw UserError(fmt::format("tensor '{}': {}", tensor, what), {.node = std::string(tensor)});
}

size_t storage_bytes(int64_t count, DataType type, std::string_view tensor) {
  const uint64_t bits = static_cast<uint64_t>(bits_of(type));
  if (static_cast<uint64_t>(count) > (uint64_t{1} << 60) / std::max<uint64_t>(bits, 1))
    fail(tensor, "too large");
  return static_cast<size_t>((static_cast<uint64_t>(count) * bits + 7) / 8);
}

using Bytes = std::vector<std::byte>;

template <class T, class Source>
void store_as(Bytes& out, const std::vector<Source>& source) {
  out.resize(source.size() * sizeof(T));
  for (size_t i = 0; i < source.size(); ++i) {
    const T value = static_cast<T>(source[i]);
    std::memcpy(out.data() + i * sizeof(T), &value, sizeof(T));
  }
}

// Every entry of int32_data holds one element, and for sub-byte types one byte of packed elements.
void store_int32s(Bytes& out, const Tensor& tensor, DataType type) {
  switch (type) {
    case DataType::boolean: {
      store_as<uint8_t>(out, tensor.int32s);
      for (size_t i = 0; i < out.size(); ++i) out[i] = std::byte{tensor.int32s[i] != 0};
      break;
    }
    case DataType::int32:
      store_as<int32_t>(out, tensor.int32s);
      break;
    case DataType::int16:
    case DataType::uint16:
    case DataType::float16:
    case DataType::bfloat16:
      store_as<uint16_t>(out, tensor.int32s);
      break;
    default:
      store_as<uint8_t>(out, tensor.int32s);
  }
}

// The typed field that the format assigns to this element type, as bytes.
Bytes typed_bytes(const Tensor& tensor, DataType type) {
  Bytes out;
  switch (type) {
    case DataType::float32:
    case DataType::complex64:
      store_as<float>(out, tensor.floats);
      break;
    case DataType::float64:
    case DataType::complex128:
      store_as<double>(out, tensor.doubles);
      break;
    case DataType::int64:
      store_as<int64_t>(out, tensor.int64s);
      break;
    case DataType::uint32:
      store_as<uint32_t>(out, tensor.uint64s);
      break;
    case DataType::uint64:
      store_as<uint64_t>(out, tensor.uint64s);
      break;
    default:
      store_int32s(out, tensor, type);
  }
  return out;
}

// A byte that is neither 0 nor 1 would be an invalid boolean to everything that follows.
bool all_valid_booleans(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b <= std::byte{1}; });
}

std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<DataType> data_type_of_number(int32_t number) {
  for (const ElementRow& row : element_rows) {
    if (static_cast<int32_t>(row.number) == number) return row.type;
  }
  return std::nullopt;
}

bool is_later_element_type(int64_t number) { return number > 24 && number < 64; }

int64_t element_count(const std::vector<int64_t>& dims, std::string_view tensor_name) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t d : dims) {
    if (d < 0) fail(tensor_name, fmt::format("a dimension is {}", d));
    if (d == 0) empty = true;
  }
  if (empty) return 0;
  for (int64_t d : dims) {
    if (__builtin_mul_overflow(count, d, &count)) fail(tensor_name, "the number of elements leaves 64 bits");
  }
  return count;
}

TensorLoader::TensorLoader(std::string model_path, std::shared_ptr<const void> model_owner,
                           bool allow_missing_external)
    : model_path_(std::move(model_path)),
      model_owner_(std::move(model_owner)),
      allow_missing_(allow_missing_external) {}

graph::ConstantData TensorLoader::load(const Tensor& tensor) {
  const std::optional<DataType> type = data_type_of_number(tensor.element_type);
  if (!type && is_later_element_type(tensor.element_type))
    throw UnsupportedError(fmt::format("a tensor of element type {}", tensor.element_type));
  if (!type) fail(tensor.name, fmt::format("element type {} is unknown", tensor.element_type));
  const int64_t count = element_count(tensor.dims, tensor.name);
  graph::ConstantData result;
  result.name = std::string(tensor.name);
  result.type.element = *type;
  result.type.shape.assign(tensor.dims.begin(), tensor.dims.end());
  if (*type == DataType::string) {
    throw UnsupportedError(fmt::format("tensor '{}': strings are not supported yet", tensor.name));
  }
  const size_t size = storage_bytes(count, *type, tensor.name);
  if (tensor.is_external) {
    result.bytes = external_bytes(tensor, size, result.owner);
  } else if (tensor.raw) {
    result.bytes = *tensor.raw;
    result.owner = model_owner_;
  } else {
    auto converted = std::make_shared<const Bytes>(typed_bytes(tensor, *type));
    result.bytes = *converted;
    result.owner = std::move(converted);
  }
  if (result.bytes.size() != size) {
    fail(tensor.name,
         fmt::format("its data has {} bytes, its shape and type need {}", result.bytes.size(), size));
  }
  if (*type == DataType::boolean && !all_valid_booleans(result.bytes)) {
    Bytes copy(result.bytes.begin(), result.bytes.end());
    for (std::byte& b : copy) b = std::byte{b != std::byte{0}};
    auto owner = std::make_shared<const Bytes>(std::move(copy));
    result.bytes = *owner;
    result.owner = std::move(owner);
  }
  return result;
}

std::span<const std::byte> TensorLoader::external_bytes(const Tensor& tensor, size_t size,
                                                        std::shared_ptr<const void>& owner) {
  std::string_view location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  for (const auto& [key, value] : tensor.external) {
    if (key == "location") {
      location = value;
    } else if (key == "offset" || key == "length") {
      const std::optional<uint64_t> number = number_of(value);
      if (!number)
        fail(tensor.name, fmt::format("the {} '{}' of its external data is no number", key, value));
      if (key == "offset")
        offset = *number;
      else
        length = *number;
    }
  }
  if (location.empty()) fail(tensor.name, "its external data has no location");
  if (length && *length != size) {
    fail(tensor.name,
         fmt::format("its external data has {} bytes, its shape and type need {}", *length, size));
  }
  const std::shared_ptr<const MappedFile> file = map(tensor, location);
  if (!file) {
    if (size > zeros_size_) {
      // Never written, so the pages take no memory until something reads them.
      void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) fail(tensor.name, "there is no memory to stand in for its missing data");
      zeros_ = std::shared_ptr<const void>(memory,
                                           [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
      zeros_size_ = size;
    }
    owner = zeros_;
    return {static_cast<const std::byte*>(zeros_.get()), size};
  }
  if (offset > file->size() || size > file->size() - offset) {
    fail(tensor.name, fmt::format("its external data needs {} bytes from offset {} of '{}', which has {}",
                                  size, offset, location, file->size()));
  }
  owner = file;
  return file->bytes().subspan(static_cast<size_t>(offset), size);
}

// A location names a file in the model's folder or below it; it must not lead out, also not by a link.
std::shared_ptr<const MappedFile> TensorLoader::map(const Tensor& tensor, std::string_view location) {
  namespace fs = std::filesystem;
  if (const auto known = files_.find(location); known != files_.end()) return known->second;
  const fs::path relative{location};
  const bool climbs = std::ranges::any_of(relative, [](const fs::path& part) { return part == ".."; });
  if (relative.is_absolute() || climbs || location.find('\0') != std::string_view::npos) {
    fail(tensor.name, fmt::format("its external data '{}' lies outside of the model's folder", location));
  }
  fs::path folder = fs::path(model_path_).parent_path();
  if (folder.empty()) folder = ".";
  const fs::path path = folder / relative;
  std::error_code error;
  std::shared_ptr<const MappedFile> file;
  if (!fs::exists(path, error)) {
    if (!allow_missing_) {
      fail(tensor.name,
           fmt::format("its external data '{}' does not exist; it must lie beside the model", path.string()));
    }
  } else {
    const fs::path real_folder = fs::canonical(folder, error);
    const fs::path real = error ? fs::path() : fs::canonical(path, error);
    const auto [end, rest] = std::ranges::mismatch(real_folder, real);
    if (error || end != real_folder.end()) {
      fail(tensor.name, fmt::format("its external data '{}' leads outside of the model's folder", location));
    }
    file = std::make_shared<const MappedFile>(path);
  }
  files_.emplace(std::string(location), file);
  return file;
}

}  // namespace fusewise::onnx

#include "cli/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "base/text_table.h"
#include "numerics/scalar_op.h"
#include "session/files/npy.h"
#include "session/files/tensor_proto.h"

namespace fusewise::cli {
namespace {

using graph::Tensor;
using Json = nlohmann::ordered_json;

struct Statistics {
  double least = INFINITY, greatest = -INFINITY, sum = 0;
  int64_t count = 0, finite = 0, nans = 0, infinities = 0;
  std::vector<std::string> first;
};

double as_double(const Scalar& scalar) {
  if (is_float(scalar.type)) return scalar.f;
  return scalar.type == DataType::uint64 ? static_cast<double>(static_cast<uint64_t>(scalar.i))
                                         : static_cast<double>(scalar.i);
}

std::string element_text(const Scalar& scalar) {
  if (scalar.type == DataType::boolean) return scalar.i != 0 ? "true" : "false";
  if (is_float(scalar.type)) return fmt::format("{:.5g}", scalar.f);
  if (scalar.type == DataType::uint64) return fmt::format("{}", static_cast<uint64_t>(scalar.i));
  return fmt::format("{}", scalar.i);
}

Statistics statistics_of(const Tensor& tensor) {
  Statistics result;
  result.count = tensor.count();
  if (!is_computable(tensor.element)) return result;
  const int size = bytes_of(tensor.element);
  constexpr int64_t shown = 3;
  for (int64_t i = 0; i < result.count; ++i) {
    const Scalar scalar = load_scalar(tensor.bytes().data() + i * size, tensor.element);
    if (i < shown) result.first.push_back(element_text(scalar));
    const double value = as_double(scalar);
    if (std::isnan(value)) {
      ++result.nans;
    } else if (std::isinf(value)) {
      ++result.infinities;
    } else {
      ++result.finite;
      result.sum += value;
      result.least = std::min(result.least, value);
      result.greatest = std::max(result.greatest, value);
    }
  }
  if (result.count > shown) result.first.push_back("...");
  return result;
}

}  // namespace

std::string type_text(const Tensor& tensor) {
  return fmt::format("{}{}", name_of(tensor.element), graph::to_string(tensor.shape));
}

std::string summary_table(const std::vector<NamedTensor>& tensors) {
  using Align = TextTable::Align;
  TextTable table({{"output"},
                   {"type"},
                   {"min", Align::right},
                   {"mean", Align::right},
                   {"max", Align::right},
                   {"first elements"}});
  for (const auto& [name, tensor] : tensors) {
    const Statistics numbers = statistics_of(tensor);
    std::string first = fmt::format("{}", fmt::join(numbers.first, " "));
    if (numbers.nans > 0) first += fmt::format("  ({} NaN)", numbers.nans);
    if (numbers.infinities > 0) first += fmt::format("  ({} infinite)", numbers.infinities);
    if (numbers.finite == 0) {
      table.add_row({name, type_text(tensor), "-", "-", "-", first});
      continue;
    }
    table.add_row({name, type_text(tensor), fmt::format("{:.5g}", numbers.least),
                   fmt::format("{:.5g}", numbers.sum / static_cast<double>(numbers.finite)),
                   fmt::format("{:.5g}", numbers.greatest), first});
  }
  return table.to_string();
}

Json summary_json(const std::vector<NamedTensor>& tensors) {
  Json list = Json::array();
  for (const auto& [name, tensor] : tensors) {
    const Statistics numbers = statistics_of(tensor);
    Json row = {{"name", name}, {"dtype", name_of(tensor.element)}, {"shape", tensor.shape}};
    if (numbers.finite > 0) {
      row["min"] = json_number(numbers.least);
      row["mean"] = json_number(numbers.sum / static_cast<double>(numbers.finite));
      row["max"] = json_number(numbers.greatest);
    }
    row["nan"] = numbers.nans;
    row["infinite"] = numbers.infinities;
    list.push_back(row);
  }
  return list;
}

void write_outputs(const std::string& folder, const std::string& format,
                   const std::vector<NamedTensor>& tensors) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw UserError(fmt::format("cannot make the folder {}: {}", folder, error.message()), {.file = folder});
  Json list = Json::array();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor] = tensors[i];
    const std::string file = fmt::format("{}.{}", i, format);
    if (format == "pb")
      session::write_tensor_proto(fs::path(folder) / file, name, tensor);
    else
      session::write_npy(fs::path(folder) / file, tensor);
    list.push_back(
        {{"name", name}, {"dtype", name_of(tensor.element)}, {"shape", tensor.shape}, {"file", file}});
  }
  write_file_atomically(fs::path(folder) / "outputs.json",
                        std::string_view(list.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"));
}

}  // namespace fusewise::cli

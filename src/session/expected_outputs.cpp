#include "session/expected_outputs.h"

#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/near_names.h"
#include "session/files/npz.h"
#include "session/input_files.h"

namespace fusewise::session {
namespace {

namespace fs = std::filesystem;
using Found = std::vector<std::optional<graph::Tensor>>;
using Warn = std::function<void(const std::string&)>;

std::optional<size_t> find_output(std::span<const OutputInfo> outputs, const std::string& name) {
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].name == name) return i;
  return std::nullopt;
}

void warn_of_unknown(std::span<const OutputInfo> outputs, const std::string& name, const std::string& source,
                     const Warn& warn) {
  std::vector<std::string> names;
  for (const OutputInfo& output : outputs) names.push_back(output.name);
  const std::string meant = did_you_mean(name, names);
  warn(
      fmt::format("'{}' in {} is no output of the model{}", name, source, meant.empty() ? "" : ": " + meant));
}

void read_listed(std::span<const OutputInfo> outputs, const fs::path& folder, Found& found,
                 const Warn& warn) {
  const fs::path list = folder / "outputs.json";
  try {
    const MappedFile file(list);
    for (const auto& row : nlohmann::json::parse(file.text())) {
      const auto name = row.at("name").get<std::string>();
      const auto output = find_output(outputs, name);
      if (!output) {
        warn_of_unknown(outputs, name, list.string(), warn);
        continue;
      }
      graph::Tensor tensor = read_tensor_file((folder / row.at("file").get<std::string>()).string());
      // Raw bits of a type that NumPy lacks.
      if (const auto type = data_type_of(row.at("dtype").get<std::string>());
          type && bits_of(*type) == bits_of(tensor.element))
        tensor.element = *type;
      found[*output] = std::move(tensor);
    }
  } catch (const nlohmann::json::exception& error) {
    throw UserError(fmt::format("{} cannot be read: {}", list.string(), error.what()),
                    {.file = list.string()});
  }
}

void read_folder(std::span<const OutputInfo> outputs, const fs::path& folder, Found& found,
                 const Warn& warn) {
  if (fs::exists(folder / "outputs.json")) return read_listed(outputs, folder, found, warn);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const fs::path test = folder / fmt::format("output_{}.pb", i);
    const fs::path named = folder / (file_name_of(outputs[i].name) + ".npy");
    if (fs::exists(test))
      found[i] = read_tensor_file(test.string());
    else if (fs::exists(named))
      found[i] = read_tensor_file(named.string());
  }
}

}  // namespace

Found read_expected_outputs(std::span<const OutputInfo> outputs, const std::string& source,
                            const Warn& warn) {
  Found found(outputs.size());
  std::error_code error;
  if (!fs::exists(source, error))
    throw UserError(fmt::format("cannot read the outputs in {}: there is no such file or folder", source),
                    {.file = source});
  if (fs::is_directory(source, error)) {
    read_folder(outputs, source, found, warn);
    return found;
  }
  if (fs::path(source).extension() != ".npz")
    throw UserError(fmt::format("{} is neither a folder nor a .npz file", source), {.file = source});
  for (auto& [name, tensor] : read_npz(source)) {
    if (const auto output = find_output(outputs, name))
      found[*output] = std::move(tensor);
    else
      warn_of_unknown(outputs, name, source, warn);
  }
  return found;
}

}  // namespace fusewise::session

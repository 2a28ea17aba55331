#include "session/input_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "import/import.h"
#include "session/files/npy.h"
#include "session/files/npz.h"

namespace fusewise::session {
namespace {

namespace fs = std::filesystem;
using graph::Tensor;
using Found = std::vector<std::optional<Tensor>>;
using Warn = std::function<void(const std::string&)>;

std::optional<size_t> find_input(std::span<const InputInfo> inputs, const std::string& name) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].name == name) return i;
  return std::nullopt;
}

std::string list_of(std::span<const InputInfo> inputs) {
  std::string names;
  for (const InputInfo& input : inputs) names += fmt::format("{}{}", names.empty() ? "" : ", ", input.name);
  return names;
}

// The tensor as the input's type: bits of a type that NumPy lacks arrive as integers of its size.
Tensor fitted(const InputInfo& input, const Tensor& tensor, const std::string& file) {
  if (tensor.element == input.type) return tensor;
  const bool raw =
      !is_integer(input.type) && input.type != DataType::boolean && npy_type(input.type) == tensor.element;
  if (raw) {
    Tensor result = tensor;
    result.element = input.type;
    return result;
  }
  throw UserError(
      fmt::format("{} holds {} and input '{}' is {}", file, name_of(tensor.element), input.name,
                  name_of(input.type)),
      {.file = file, .hint = fmt::format("convert it with numpy: x.astype('{}')", name_of(input.type))});
}

bool is_test_folder(const fs::path& folder) { return fs::exists(folder / "input_0.pb"); }

void read_test_folder(std::span<const InputInfo> inputs, const fs::path& folder, Found& found) {
  for (size_t i = 0;; ++i) {
    const fs::path path = folder / fmt::format("input_{}.pb", i);
    if (!fs::exists(path)) break;
    const graph::ConstantData data = read_onnx_tensor(path.string());
    const std::optional<size_t> named = find_input(inputs, data.name);
    const size_t input = named ? *named : i;
    if (input >= inputs.size())
      throw UserError(fmt::format("{} belongs to no input; the model has {}", path.string(), list_of(inputs)),
                      {.file = path.string()});
    found[input] = fitted(inputs[input], read_tensor_file(path.string()), path.string());
  }
}

void read_folder(std::span<const InputInfo> inputs, const fs::path& folder, Found& found, const Warn& warn) {
  std::map<std::string, size_t> by_file;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = file_name_of(inputs[i].name) + ".npy";
    if (!by_file.emplace(name, i).second && fs::exists(folder / name))
      throw UserError(fmt::format("{} stands for two inputs, '{}' and '{}'", name, inputs[by_file[name]].name,
                                  inputs[i].name),
                      {.file = (folder / name).string(), .hint = "use a .npz file, which has exact names"});
  }
  std::set<std::string> names;  // sorted, so that messages are the same every time
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".npy") names.insert(entry.path().filename().string());
  for (const std::string& name : names) {
    const auto input = by_file.find(name);
    const std::string path = (folder / name).string();
    if (input == by_file.end())
      warn(fmt::format("{} belongs to no input; the model has {}", path, list_of(inputs)));
    else
      found[input->second] = fitted(inputs[input->second], read_npy(path), path);
  }
}

void read_archive(std::span<const InputInfo> inputs, const std::string& path, Found& found,
                  const Warn& warn) {
  for (auto& [name, tensor] : read_npz(path)) {
    const std::optional<size_t> input = find_input(inputs, name);
    if (!input)
      warn(fmt::format("'{}' in {} belongs to no input; the model has {}", name, path, list_of(inputs)));
    else
      found[*input] = fitted(inputs[*input], tensor, fmt::format("'{}' in {}", name, path));
  }
}

void read_source(std::span<const InputInfo> inputs, const std::string& source, Found& found,
                 const Warn& warn) {
  std::error_code error;
  if (!fs::exists(source, error))
    throw UserError(fmt::format("cannot read the inputs in {}: there is no such file or folder", source),
                    {.file = source});
  if (!fs::is_directory(source, error)) {
    if (fs::path(source).extension() != ".npz")
      throw UserError(fmt::format("{} is neither a folder nor a .npz file", source),
                      {.file = source, .hint = "give a single tensor with --input NAME=FILE"});
    return read_archive(inputs, source, found, warn);
  }
  if (is_test_folder(source)) return read_test_folder(inputs, source, found);
  read_folder(inputs, source, found, warn);
}

}  // namespace

Tensor read_tensor_file(const std::string& path) {
  const std::string suffix = fs::path(path).extension().string();
  if (suffix == ".npy") return read_npy(path);
  if (suffix != ".pb")
    throw UserError(fmt::format("{} is neither a .npy nor a .pb file", path), {.file = path});
  const graph::ConstantData data = read_onnx_tensor(path);
  std::vector<int64_t> shape;
  for (const Dim& extent : data.type.shape) shape.push_back(extent.value());
  return Tensor::borrow(data.type.element, shape, data.bytes, data.owner).aligned();
}

Found read_inputs(std::span<const InputInfo> inputs, const InputRequest& request, const Warn& warn) {
  Found found(inputs.size());
  if (!request.source.empty()) read_source(inputs, request.source, found, warn);
  for (const auto& [name, path] : request.files) {
    const std::optional<size_t> input = find_input(inputs, name);
    if (!input)
      throw UserError(fmt::format("the model has no input '{}'", name),
                      {.hint = fmt::format("its inputs are {}", list_of(inputs))});
    found[*input] = fitted(inputs[*input], read_tensor_file(path), path);
  }
  return found;
}

}  // namespace fusewise::session

#include "session/model.h"

#include <fmt/core.h>

#include <chrono>
#include <filesystem>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/mapped_file.h"
#include "import/onnx/importer.h"
#include "import/onnx/reader.h"

namespace fusewise::session {
namespace {

namespace fs = std::filesystem;
using Locations = std::set<std::string>;

void add_location(const onnx::Tensor& tensor, Locations& locations) {
  if (!tensor.is_external) return;
  for (const auto& [key, value] : tensor.external)
    if (key == "location") locations.emplace(value);
}

void add_locations(const std::vector<onnx::Node>& nodes, Locations& locations);

void add_locations(const onnx::Graph& graph, Locations& locations) {
  for (const onnx::Tensor& tensor : graph.initializers) add_location(tensor, locations);
  add_locations(graph.nodes, locations);
}

void add_locations(const std::vector<onnx::Node>& nodes, Locations& locations) {
  for (const onnx::Node& node : nodes)
    for (const onnx::Attribute& attribute : node.attributes) {
      for (const onnx::Tensor& tensor : attribute.tensors) add_location(tensor, locations);
      for (const auto& body : attribute.graphs) add_locations(*body, locations);
    }
}

// The files beside the model that hold its weights, sorted.
Locations external_files(const std::string& path) {
  const onnx::Model model = onnx::read_model(path);
  Locations locations;
  add_locations(model.graph, locations);
  for (const onnx::Function& function : model.functions) add_locations(function.nodes, locations);
  return locations;
}

graph::Graph import(const std::string& path, const ModelOptions& options) {
  if (options.extra_outputs.empty()) return import_onnx(path, options.import);
  onnx::Model model = onnx::read_model(path);
  for (const std::string& name : options.extra_outputs) {
    onnx::ValueInfo output;
    output.name = name;
    model.graph.outputs.push_back(output);
  }
  return onnx::Importer(model, options.import).run();
}

// Of the files, as the cache knows it or as it is found by reading them.
Hash128 file_hash(const std::string& path, const Cache& cache) {
  if (const auto known = cache.find_model(path)) return *known;
  // Identities first: a file that changes while it is hashed then has another one.
  std::vector<FileIdentity> files;
  Hasher hasher;
  const auto add = [&](const std::string& file) {
    const auto identity = identify(file);
    if (!identity) return;  // importing it says what is missing
    files.push_back(*identity);
    hasher.add_bytes(MappedFile(file).bytes());
  };
  add(path);
  for (const std::string& location : external_files(path)) {
    hasher.add(std::string_view(location));
    add((fs::path(path).parent_path() / location).string());
  }
  const Hash128 hash = hasher.finish();
  cache.store_model(path, files, hash);
  return hash;
}

}  // namespace

struct Model::State {
  std::string path;
  ModelOptions options;
  std::mutex mutex;
  std::unique_ptr<const graph::Graph> graph;
  double import_ms = 0;
};

Model Model::load(const std::string& path, const ModelOptions& options) {
  if (!identify(path))
    throw UserError(fmt::format("cannot read {}: there is no such file", path), {.file = path});
  Model model;
  model.state_ = std::make_shared<State>();
  model.state_->path = path;
  model.state_->options = options;
  return model;
}

const std::string& Model::path() const { return state_->path; }

const graph::Graph& Model::graph() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->graph) {
    const auto start = std::chrono::steady_clock::now();
    state_->graph = std::make_unique<const graph::Graph>(import(state_->path, state_->options));
    state_->import_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  return *state_->graph;
}

double Model::import_ms() const {
  const std::lock_guard lock(state_->mutex);
  return state_->import_ms;
}

Hash128 Model::content_hash(const Cache& cache) const {
  const ModelOptions& options = state_->options;
  Hasher hasher;
  hasher.add(file_hash(path(), cache)).add(options.extra_outputs.size());
  for (const std::string& name : options.extra_outputs) hasher.add(std::string_view(name));
  hasher.add(options.import.symbol_values.size());
  for (const auto& [name, value] : options.import.symbol_values)
    hasher.add(std::string_view(name)).add(value);
  hasher.add(options.import.bound_inputs.size());
  for (const auto& [name, data] : options.import.bound_inputs) {
    hasher.add(std::string_view(name)).add(std::string_view(graph::to_string(data.type)));
    hasher.add_bytes(data.bytes);
  }
  return hasher.finish();
}

}  // namespace fusewise::session

#include "zoo/zoo.h"

#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "cli/commands/commands.h"

namespace fusewise::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string name, output;
};

int list(Console& console) {
  TextTable table({{"model"}, {""}});
  Json models = Json::array();
  for (const ZooEntry& entry : zoo_models()) {
    table.add_row({entry.name, entry.description});
    models.push_back({{"name", entry.name}, {"description", entry.description}});
  }
  console.print(table.to_string());
  console.finish("zoo", {{"models", models}});
  return exit_done;
}

int zoo(const Options& options, Console& console) {
  if (options.name.empty() && options.output.empty()) return list(console);
  if (options.name.empty() || options.output.empty())
    throw UsageError("a model's name and -o FILE.onnx belong together", "fusewise zoo lists the names");
  write_zoo(options.name, options.output);
  console.print("wrote {}\n", options.output);
  std::error_code error;
  const auto bytes = std::filesystem::file_size(options.output, error);
  console.finish("zoo", {{"name", options.name}, {"file", options.output}, {"bytes", error ? 0 : bytes}});
  return exit_done;
}

Action declare(Parser& parser) {
  auto options = std::make_shared<Options>();
  parser.positional("NAME", options->name, "the model to write; without it the models are listed", false);
  parser.option("-o,--output", options->output, "FILE", "where to write it");
  return [options](Console& console) { return zoo(*options, console); };
}

}  // namespace

Command zoo_command() {
  return {"zoo", "lists the embedded models, or writes one", "fusewise zoo resnet50 -o resnet50.onnx",
          declare};
}

}  // namespace fusewise::cli

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text_table.h"
#include "cli/commands/commands.h"
#include "cli/shared_options.h"
#include "graph/statistics.h"
#include "import/import.h"

namespace fusewise::cli {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

struct Options {
  std::string model;
};

// What importing the model gives: the graph's figures, or all that is not supported.
struct Imported {
  std::optional<graph::Graph> graph;
  std::vector<UnsupportedItem> unsupported;
  std::string message;
};

Imported try_import(const std::string& model) {
  Imported result;
  try {
    result.graph = import_onnx(model, {.allow_missing_external_data = true});
  } catch (const UnsupportedError& error) {
    result.unsupported = error.items;
    result.message = error.what();
  }
  return result;
}

std::string tensors_table(const std::string& title, const std::vector<ModelSummary::Tensor>& tensors) {
  TextTable table({{title}, {"type"}});
  for (const ModelSummary::Tensor& tensor : tensors) table.add_row({tensor.name, tensor.type});
  return table.to_string();
}

std::string operators_table(const ModelSummary& summary) {
  std::vector<std::pair<std::string, int64_t>> counts(summary.op_counts.begin(), summary.op_counts.end());
  std::stable_sort(counts.begin(), counts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  TextTable table({{"operator"}, {"count", Align::right}});
  for (const auto& [name, count] : counts) table.add_row({name, fmt::format("{}", count)});
  return table.to_string();
}

std::string unsupported_table(const Imported& imported) {
  if (imported.unsupported.empty()) return fmt::format("not supported: {}\n", imported.message);
  TextTable table({{"not supported"}, {"count", Align::right}, {"first node"}});
  for (const UnsupportedItem& item : imported.unsupported)
    table.add_row({item.what, fmt::format("{}", item.count), item.first_node});
  return table.to_string();
}

std::string grouped(int64_t number) {
  std::string text = fmt::format("{}", number);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<size_t>(at), ",");
  return text;
}

void print_words(const ModelSummary& summary, const Imported& imported, Console& console) {
  std::string opsets;
  for (const auto& [domain, version] : summary.opsets)
    opsets +=
        fmt::format("{}{} {}", opsets.empty() ? "" : ", ", domain.empty() ? "ai.onnx" : domain, version);
  TextTable facts({{""}, {""}});
  facts.add_row({"format", fmt::format("ONNX, IR version {}", summary.ir_version)});
  if (!summary.producer.empty()) facts.add_row({"producer", summary.producer});
  facts.add_row({"operator sets", opsets});
  facts.add_row({"nodes", grouped(summary.nodes)});
  if (summary.functions > 0) facts.add_row({"functions", grouped(summary.functions)});
  facts.add_row(
      {"parameters", fmt::format("{} ({:.1f} MB in {} tensors)", grouped(summary.parameters),
                                 static_cast<double>(summary.parameter_bytes) / 1e6, summary.initializers)});
  if (!summary.symbols.empty())
    facts.add_row({"symbols", fmt::format("{}", fmt::join(summary.symbols, ", "))});
  if (imported.graph) {
    facts.add_row({"primitives", grouped(static_cast<int64_t>(imported.graph->size()))});
    const Dim flops = graph::flops_of(*imported.graph);
    facts.add_row({"operations", flops.is_constant() ? grouped(flops.value()) : flops.to_string()});
  }
  console.print(facts.to_string());
  console.print("\n" + tensors_table("input", summary.inputs) + "\n" +
                tensors_table("output", summary.outputs));
  console.print("\n" + operators_table(summary));
  console.print("\n" + (imported.graph ? "everything in it is supported\n" : unsupported_table(imported)));
}

Json tensors_json(const std::vector<ModelSummary::Tensor>& tensors) {
  Json list = Json::array();
  for (const ModelSummary::Tensor& tensor : tensors)
    list.push_back({{"name", tensor.name}, {"type", tensor.type}});
  return list;
}

Json to_json(const std::string& model, const ModelSummary& summary, const Imported& imported) {
  Json result = {{"model", model},
                 {"ir_version", summary.ir_version},
                 {"producer", summary.producer},
                 {"opsets", Json::object()},
                 {"inputs", tensors_json(summary.inputs)},
                 {"outputs", tensors_json(summary.outputs)},
                 {"symbols", summary.symbols},
                 {"nodes", summary.nodes},
                 {"functions", summary.functions},
                 {"operators", summary.op_counts},
                 {"parameters", summary.parameters},
                 {"parameter_bytes", summary.parameter_bytes},
                 {"unsupported", Json::array()}};
  for (const auto& [domain, version] : summary.opsets) result["opsets"][domain] = version;
  for (const UnsupportedItem& item : imported.unsupported)
    result["unsupported"].push_back(
        {{"what", item.what}, {"count", item.count}, {"first_node", item.first_node}});
  if (!imported.graph) return result;
  result["primitives"] = graph::histogram(*imported.graph);
  const Dim flops = graph::flops_of(*imported.graph);
  if (flops.is_constant())
    result["flops"] = flops.value();
  else
    result["flops"] = flops.to_string();
  return result;
}

int inspect(const Options& options, Console& console) {
  const ModelSummary summary = summarize_onnx(options.model);
  const Imported imported = try_import(options.model);
  print_words(summary, imported, console);
  console.finish("inspect", to_json(options.model, summary, imported));
  return exit_done;
}

Action declare(Parser& parser) {
  auto options = std::make_shared<Options>();
  parser.positional("MODEL", options->model, "an ONNX file; its external weights may be missing");
  return [options](Console& console) { return inspect(*options, console); };
}

}  // namespace

Command inspect_command() {
  return {"inspect", "says what a model consists of, and all in it that is not supported",
          "fusewise inspect model.onnx", declare};
}

}  // namespace fusewise::cli

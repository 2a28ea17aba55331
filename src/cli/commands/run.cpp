#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "cli/results.h"
#include "cli/shared_options.h"
#include "graph/interpreter/interpreter.h"
#include "import/import.h"

namespace fusewise::cli {
namespace {

struct Options {
  std::string model;
  InputOptions inputs;
  ThreadOptions threads;
  std::string output_folder, output_format = "npy";
  bool interpreter = false;
};

std::vector<NamedTensor> interpreted(const Options& options, Console& console) {
  console.progress("import");
  const graph::Graph graph = import_onnx(options.model);
  const auto warn = [&](const std::string& text) { console.warn(text); };
  const session::PreparedInputs inputs =
      session::prepare_inputs(session::inputs_of(graph), options.inputs.request(), warn);
  graph::InterpretOptions interpret;
  interpret.threads = options.threads.count();
  interpret.progress = [&](graph::NodeId node, size_t nodes) {
    if (node % 64 == 0) console.progress(fmt::format("interpret {} of {}", node, nodes));
  };
  const std::vector<graph::Tensor> tensors = graph::interpret(graph, inputs.tensors, interpret);
  std::vector<NamedTensor> outputs;
  for (size_t i = 0; i < tensors.size(); ++i) outputs.push_back({graph.outputs[i].name, tensors[i]});
  return outputs;
}

int run(const Options& options, Console& console) {
  if (!options.interpreter) throw UnsupportedError("not supported yet: compiled runs (use --interpreter)");
  const std::vector<NamedTensor> outputs = interpreted(options, console);
  if (!options.output_folder.empty()) write_outputs(options.output_folder, options.output_format, outputs);
  console.print(summary_table(outputs));
  console.finish("run", {{"model", options.model}, {"outputs", summary_json(outputs)}});
  return exit_done;
}

Action declare(Parser& parser) {
  auto options = std::make_shared<Options>();
  parser.positional("MODEL", options->model, "an ONNX file");
  options->inputs.declare(parser);
  options->threads.declare(parser);
  parser.option("--output-dir", options->output_folder, "DIR", "write the outputs there, and outputs.json");
  parser.choice("--output-format", options->output_format, {"npy", "pb"}, "of the files in --output-dir");
  parser.flag("--interpreter", options->interpreter, "run the reference interpreter instead of compiled code (slow)");
  return [options](Console& console) { return run(*options, console); };
}

}  // namespace

Command run_command() {
  return {"run", "compiles a model and runs it once", "fusewise run model.onnx --inputs folder --output-dir results",
          declare};
}

}  // namespace fusewise::cli

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "cli/results.h"
#include "cli/session_options.h"
#include "graph/interpreter/interpreter.h"

namespace fusewise::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  CompileFlags compile;
  std::string output_folder, output_format = "npy";
  bool interpreter = false;
};

std::vector<NamedTensor> interpreted(const Options& options, Console& console) {
  console.progress("import");
  std::vector<NamedTensor> outputs;
  const auto warn = [&](const std::string& text) { console.warn(text); };
  with_model(options.compile, console, [&](const Chosen& chosen) {
    const graph::Graph& graph = chosen.model.graph();
    const std::vector<graph::Tensor> inputs =
        chosen.inputs
            ? *chosen.inputs
            : session::prepare_inputs(session::inputs_of(graph), options.compile.inputs.request(), warn)
                  .tensors;
    graph::InterpretOptions interpret;
    interpret.threads = options.compile.threads.count();
    interpret.progress = [&](graph::NodeId node, size_t nodes) {
      if (node % 64 == 0) console.progress(fmt::format("interpret {} of {}", node, nodes));
    };
    const std::vector<graph::Tensor> tensors = graph::interpret(graph, inputs, interpret);
    for (size_t i = 0; i < graph.outputs.size(); ++i) outputs.push_back({graph.outputs[i].name, tensors[i]});
  });
  return outputs;
}

std::vector<NamedTensor> compiled(const Options& options, Console& console, Json& json) {
  const Prepared prepared = prepare(options.compile, console);
  const session::SessionInfo& info = prepared.session.info();
  json["threads"] = info.threads;
  json["cache_hit"] = info.cache_hit;
  json["import_ms"] = info.import_ms;
  json["compile_ms"] = info.compile_ms;
  json["load_ms"] = info.load_ms;
  json["kernels"] = info.kernels;
  json["inputs"] = Json::object();
  for (const auto& [name, type] : input_types(info, prepared.inputs)) json["inputs"][name] = type;
  const std::vector<graph::Tensor> tensors = prepared.session.run(prepared.inputs);
  std::vector<NamedTensor> outputs;
  for (size_t i = 0; i < tensors.size(); ++i) outputs.push_back({info.outputs[i].name, tensors[i]});
  return outputs;
}

int run(const Options& options, Console& console) {
  Json json = {{"model", options.compile.model}};
  const std::vector<NamedTensor> outputs =
      options.interpreter ? interpreted(options, console) : compiled(options, console, json);
  if (!options.output_folder.empty()) write_outputs(options.output_folder, options.output_format, outputs);
  console.print(summary_table(outputs));
  json["outputs"] = summary_json(outputs);
  console.finish("run", json);
  return exit_done;
}

Action declare(Parser& parser) {
  auto options = std::make_shared<Options>();
  options->compile.declare(parser);
  parser.list(
      "--output-tensor", options->compile.output_tensors, "NAME",
      "deliver this tensor of the file, too, after the model's outputs; also a pattern such as '*attn*', or "
      "a node, which stands for its outputs");
  parser.option("--output-dir", options->output_folder, "DIR", "write the outputs there, and outputs.json");
  parser.choice("--output-format", options->output_format, {"npy", "pb"}, "of the files in --output-dir");
  parser.flag("--interpreter", options->interpreter,
              "run the reference interpreter instead of compiled code (slow)");
  return [options](Console& console) { return run(*options, console); };
}

}  // namespace

Command run_command() {
  return {"run", "compiles a model and runs it once",
          "fusewise run model.onnx --inputs folder --output-dir results\n"
          "  fusewise run model.onnx --output-tensor 'Conv#3' --output-tensor '*Relu_output_0'",
          declare};
}

}  // namespace fusewise::cli

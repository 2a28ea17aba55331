#include "cli/reduce_failure.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "graph/interpreter/interpreter.h"
#include "session/files/tensor_proto.h"
#include "session/reduce.h"
#include "session/reference.h"

namespace fusewise::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using graph::Tensor;

enum class Outcome : uint8_t { agrees, differs, breaks };

Outcome outcome_of(const session::Model& model, std::span<const Tensor> inputs,
                   const session::SessionOptions& options, const Judge& judge) {
  try {
    const session::Session session(model, options);
    return session::all_passed(judge(model.graph(), inputs, session.run(inputs))) ? Outcome::agrees
                                                                                  : Outcome::differs;
  } catch (const InternalError&) {
    return Outcome::breaks;
  }
}

// OUT.onnx -> OUT.data
fs::path data_folder_of(const std::string& out) { return fs::path(out).replace_extension(".data"); }

void write_data(const fs::path& folder, const session::ReducedModel& reduced, const session::Model& model,
                int threads) {
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directories(folder, error);
  if (error)
    throw UserError(fmt::format("cannot make the folder {}: {}", folder.string(), error.message()),
                    {.file = folder.string()});
  for (size_t i = 0; i < reduced.inputs.size(); ++i)
    session::write_tensor_proto(folder / fmt::format("input_{}.pb", i), reduced.input_names[i],
                                reduced.inputs[i]);
  graph::InterpretOptions interpret;
  interpret.threads = threads;
  const std::vector<Tensor> expected = graph::interpret(model.graph(), reduced.inputs, interpret);
  for (size_t i = 0; i < expected.size(); ++i)
    session::write_tensor_proto(folder / fmt::format("output_{}.pb", i), reduced.output_names[i],
                                expected[i]);
}

}  // namespace

Json reduce_failure(const CompileFlags& flags, const Judge& judge, const std::string& out, Console& console) {
  session::SessionOptions options = flags.options(console);
  options.use_cache = false;
  options.progress = {};
  const session::Model model = session::Model::load(flags.model);
  const std::vector<Tensor> inputs =
      session::prepare_inputs(session::inputs_of(model.graph()), flags.inputs.request(), options.warn)
          .tensors;
  const Outcome wanted = outcome_of(model, inputs, options, judge);
  if (wanted == Outcome::agrees) {
    console.print("nothing to reduce: the model does not fail\n");
    return {};
  }
  const TemporaryFolder folder;
  const auto still_fails = [&](const OnnxBuilder& part, std::span<const Tensor> part_inputs) {
    const fs::path path = folder.path() / "part.onnx";
    part.write(path);
    return outcome_of(session::Model::load(path.string()), part_inputs, options, judge) == wanted;
  };
  session::ReduceOptions how;
  how.threads = options.threads;
  how.progress = [&](int64_t tried, size_t nodes) {
    console.progress(fmt::format("reduce: try {}, {} nodes", tried, nodes));
  };
  const auto reduced = session::reduce_model(flags.model, inputs, still_fails, how);
  if (!reduced)
    throw UserError("the model fails, but not as the sum of its nodes: no part can be cut out",
                    {.file = flags.model, .hint = "try --per-kernel, which names the kernel that is off"});
  reduced->model.write(out);
  const fs::path data = data_folder_of(out);
  write_data(data, *reduced, session::Model::load(out), options.threads);
  console.print("{} of {} nodes fail alone, found in {} tries{}: {}\n", reduced->node_names.size(),
                reduced->nodes_before, reduced->tried,
                reduced->complete ? "" : ", which are the most that are made; there may be a smaller part",
                out);
  for (const OnnxNode& node : reduced->model.nodes)
    console.print("  {:<20} {}\n", node.op_type, node.name.empty() ? node.outputs.at(0) : node.name);
  console.print("see it with: fusewise verify {} --inputs {} --numerics {} --fusion {} --threads {}\n", out,
                data.string(), flags.numerics, flags.fusion, options.threads);
  return {{"model", out},
          {"data", data.string()},
          {"nodes", reduced->node_names},
          {"inputs", reduced->input_names},
          {"outputs", reduced->output_names},
          {"nodes_before", reduced->nodes_before},
          {"tries", reduced->tried},
          {"complete", reduced->complete},
          {"failure", wanted == Outcome::breaks ? "breaks" : "differs"}};
}

}  // namespace fusewise::cli

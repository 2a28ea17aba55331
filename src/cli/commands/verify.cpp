#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/reduce_failure.h"
#include "cli/session_options.h"
#include "cli/verdicts.h"
#include "session/compile.h"
#include "session/expected_outputs.h"
#include "session/kernel_check.h"
#include "session/reference.h"

namespace fusewise::cli {
namespace {

using Json = nlohmann::ordered_json;
using graph::Tensor;
using session::OutputVerdict;

struct Options {
  CompileFlags compile;
  std::string against, given, reduce_to;
  std::string bound = "probable";
  std::optional<double> tolerance;
  bool per_kernel = false;
};

void check_usage(const Options& options) {
  const bool others = !options.against.empty() || !options.given.empty();
  if (others && (options.per_kernel || !options.reduce_to.empty()))
    throw UsageError(
        "--per-kernel and --reduce compare compiled code with the interpreter; --against and --outputs do "
        "not");
  if (!options.reduce_to.empty() && !options.reduce_to.ends_with(".onnx"))
    throw UsageError(fmt::format("--reduce: '{}' does not end in .onnx", options.reduce_to));
}

std::vector<OutputVerdict> against_files(const Options& options, const Prepared& prepared,
                                         const std::vector<Tensor>& outputs, Console& console) {
  const std::vector<session::OutputInfo>& infos = prepared.session.info().outputs;
  const auto expected = session::read_expected_outputs(infos, options.against,
                                                       [&](const std::string& text) { console.warn(text); });
  std::vector<OutputVerdict> verdicts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (expected[i])
      verdicts.push_back(
          session::compare_within(infos[i].name, *expected[i], outputs[i], options.tolerance.value_or(1e-4)));
    else
      console.warn(fmt::format("{} has no values for output '{}'", options.against, infos[i].name));
  }
  if (verdicts.empty())
    throw UserError(fmt::format("{} has values for none of the model's outputs", options.against),
                    {.file = options.against});
  return verdicts;
}

session::ReferenceOptions reference_options(const Options& options, int threads, Console& console) {
  session::ReferenceOptions how;
  how.bounds = options.compile.numerics == "default" && !options.tolerance;
  how.model = options.bound == "worst" ? graph::ErrorModel::worst_case : graph::ErrorModel::probable;
  how.threads = threads;
  how.progress = [&console](const char* what, graph::NodeId node, size_t nodes) {
    if (node % 16 == 0) console.progress(fmt::format("{} {} of {}", what, node, nodes));
  };
  return how;
}

std::vector<OutputVerdict> judge(const Options& options, const session::Reference& reference,
                                 std::span<const Tensor> outputs) {
  const std::string& numerics = options.compile.numerics;
  if (numerics == "default" && !options.tolerance) return reference.rounded_otherwise(outputs);
  if (options.tolerance || numerics == "fast")
    return reference.within(outputs, options.tolerance.value_or(1e-3));
  return reference.exact(outputs);
}

std::vector<OutputVerdict> against_interpreter(const Options& options, const graph::Graph& graph,
                                               std::span<const Tensor> inputs,
                                               std::span<const Tensor> outputs, Console& console) {
  const int threads = options.compile.threads.count();
  const session::Reference reference(graph, inputs, reference_options(options, threads, console));
  return judge(options, reference, outputs);
}

// Of the compiled run, or those that are to be judged in its place.
std::vector<Tensor> outputs_of(const Options& options, const Prepared& prepared, Console& console) {
  if (options.given.empty()) return prepared.session.run(prepared.inputs);
  const std::vector<session::OutputInfo>& infos = prepared.session.info().outputs;
  std::vector<std::optional<Tensor>> found = session::read_expected_outputs(
      infos, options.given, [&](const std::string& text) { console.warn(text); });
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i])
      throw UserError(fmt::format("{} has no values for output '{}'", options.given, infos[i].name),
                      {.file = options.given});
    outputs.push_back(std::move(*found[i]));
  }
  return outputs;
}

// Compiled anew: a program from the cache no longer knows which values its buffers hold.
std::vector<session::KernelVerdict> kernel_verdicts(const Options& options, const Prepared& prepared,
                                                    Console& console) {
  const session::SessionOptions session = options.compile.options(console);
  session::KernelCheckOptions how;
  how.threads = prepared.session.info().threads;
  how.reference = reference_options(options, how.threads, console);
  how.judge = [&options](const session::Reference& reference, std::span<const Tensor> values) {
    return judge(options, reference, values);
  };
  const compiler::Compiled compiled =
      compiler::compile(prepared.model.graph(), session::compile_options_for(session));
  return session::check_kernels(compiled, prepared.inputs, how);
}

bool report_kernels(const Options& options, const Prepared& prepared, bool outputs_passed, Console& console,
                    Json& json) {
  const std::vector<session::KernelVerdict> kernels = kernel_verdicts(options, prepared, console);
  bool passed = true;
  for (const session::KernelVerdict& kernel : kernels) passed = passed && kernel.verdict.passed;
  console.print(kernel_words(kernels));
  if (passed && !outputs_passed)
    console.print(prepared.session.info().cache_hit
                      ? "the outputs are those of a program from the cache: try --cache off\n"
                      : "no kernel is to blame for the outputs: look at the rewrites with --disable-pass\n");
  json.update(kernel_json(kernels));
  return passed;
}

int verify(const Options& options, Console& console) {
  check_usage(options);
  Json json = {{"model", options.compile.model},
               {"numerics", options.compile.numerics},
               {"against", options.against.empty() ? "interpreter" : options.against}};
  bool passed = true;
  std::string broken;
  try {
    const Prepared prepared = prepare(options.compile, console);
    const std::vector<Tensor> outputs = outputs_of(options, prepared, console);
    const std::vector<OutputVerdict> verdicts =
        options.against.empty()
            ? against_interpreter(options, prepared.model.graph(), prepared.inputs, outputs, console)
            : against_files(options, prepared, outputs, console);
    passed = session::all_passed(verdicts);
    console.print(verdict_table("output", verdicts));
    json["outputs"] = verdict_json(verdicts);
    if (options.per_kernel) passed = report_kernels(options, prepared, passed, console, json) && passed;
  } catch (const InternalError& error) {
    if (options.reduce_to.empty()) throw;
    broken = error.what();
  }
  if (!broken.empty()) console.print("it breaks: {}\n", broken);
  if (!options.reduce_to.empty())
    json["reduced"] = reduce_failure(
        options.compile,
        [&](const graph::Graph& graph, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
          return against_interpreter(options, graph, inputs, outputs, console);
        },
        options.reduce_to, console);
  passed = passed && broken.empty();
  console.print(passed ? "verdict: passed\n" : "verdict: FAILED\n");
  json["verdict"] = passed ? "passed" : "failed";
  console.finish("verify", json);
  return passed ? exit_done : exit_negative;
}

Action declare(Parser& parser) {
  auto options = std::make_shared<Options>();
  options->compile.declare(parser);
  parser.option(
      "--against", options->against, "DIR|FILE",
      "compare with these outputs instead of the interpreter's: a folder that run --output-dir wrote or an "
      "ONNX test's, or a .npz file");
  parser.option(
      "--outputs", options->given, "DIR|FILE",
      "judge these outputs, which somebody else computed from the same inputs, instead of a compiled run's");
  parser.flag("--per-kernel", options->per_kernel,
              "compare every value that a kernel stores, and name the first kernel that is off");
  parser.option(
      "--reduce", options->reduce_to, "OUT.onnx",
      "when it fails: write a part of the model, as small as can be, that fails alone, and its inputs "
      "to OUT.data");
  parser.choice("--bound", options->bound, {"probable", "worst"},
                "how roundings add up in the propagated bound: as independent errors do, or at their worst; "
                "whichever it is, errors must not be larger than rounding explains either");
  parser.option(
      "--tolerance", options->tolerance, "T",
      "largest error, as a share of the output's largest magnitude, instead of the propagated bound");
  return [options](Console& console) { return verify(*options, console); };
}

}  // namespace

Command verify_command() {
  return {"verify", "compares a compiled run with the reference interpreter",
          "fusewise verify model.onnx --numerics strict --per-kernel\n"
          "  fusewise verify model.onnx --reduce small.onnx",
          declare};
}

}  // namespace fusewise::cli

#include "session/verify.h"

#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text_table.h"
#include "cli/commands/commands.h"
#include "cli/results.h"
#include "cli/session_options.h"
#include "graph/interpreter/double_interpreter.h"
#include "graph/interpreter/interpreter.h"
#include "session/expected_outputs.h"

namespace fusewise::cli {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;
using session::OutputVerdict;

struct Options {
  CompileFlags compile;
  std::string against;
  std::string bound = "probable";
  std::optional<double> tolerance;
};

graph::BoundedOptions interpret_options(const char* what, const Prepared& prepared, Console& console) {
  graph::BoundedOptions options;
  options.threads = prepared.session.info().threads;
  options.progress = [&console, what](graph::NodeId node, size_t nodes) {
    if (node % 16 == 0) console.progress(fmt::format("{} {} of {}", what, node, nodes));
  };
  return options;
}

std::vector<OutputVerdict> against_files(const Options& options, const Prepared& prepared,
                                         const std::vector<graph::Tensor>& outputs, Console& console) {
  const auto expected = session::read_expected_outputs(prepared.session.info().outputs, options.against);
  std::vector<OutputVerdict> verdicts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = prepared.session.info().outputs[i].name;
    if (expected[i])
      verdicts.push_back(
          session::compare_within(name, *expected[i], outputs[i], options.tolerance.value_or(1e-4)));
    else
      console.warn(fmt::format("{} has no values for output '{}'", options.against, name));
  }
  if (verdicts.empty())
    throw UserError(fmt::format("{} has values for none of the model's outputs", options.against),
                    {.file = options.against});
  return verdicts;
}

std::vector<OutputVerdict> against_interpreter(const Options& options, const Prepared& prepared,
                                               const std::vector<graph::Tensor>& outputs, Console& console) {
  const graph::Graph& graph = prepared.model.graph();
  const std::vector<graph::Tensor> reference =
      graph::interpret(graph, prepared.inputs, interpret_options("interpret", prepared, console));
  const bool bounded = options.compile.numerics == "default" && !options.tolerance;
  std::vector<graph::BoundedTensor> bounds;
  if (bounded) {
    graph::BoundedOptions bound = interpret_options("bound", prepared, console);
    bound.model = options.bound == "worst" ? graph::ErrorModel::worst_case : graph::ErrorModel::probable;
    bounds = graph::interpret_bounded(graph, prepared.inputs, bound);
  }
  std::vector<OutputVerdict> verdicts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = graph.outputs[i].name;
    if (bounded)
      verdicts.push_back(session::compare_bounded(name, bounds[i], reference[i], outputs[i]));
    else if (options.tolerance || options.compile.numerics == "fast")
      verdicts.push_back(
          session::compare_within(name, reference[i], outputs[i], options.tolerance.value_or(1e-3)));
    else
      verdicts.push_back(session::compare_exactly(name, reference[i], outputs[i]));
  }
  return verdicts;
}

std::string place_of(const OutputVerdict& verdict) {
  if (verdict.worst_index < 0) return "-";
  std::vector<int64_t> place(verdict.shape.size());
  int64_t rest = verdict.worst_index;
  for (size_t d = place.size(); d-- > 0;) {
    place[d] = rest % verdict.shape[d];
    rest /= verdict.shape[d];
  }
  return graph::to_string(place);
}

std::string words_of(const std::vector<OutputVerdict>& verdicts) {
  TextTable table({{"output"},
                   {"verdict"},
                   {"max abs", Align::right},
                   {"max rel", Align::right},
                   {"tolerance", Align::right},
                   {"worst at"},
                   {"value", Align::right},
                   {"expected", Align::right},
                   {"median share", Align::right},
                   {"max share", Align::right}});
  std::string notes;
  for (const OutputVerdict& v : verdicts) {
    table.add_row({v.name, v.passed ? "agrees" : "DIFFERS", fmt::format("{:.3g}", v.max_absolute),
                   fmt::format("{:.3g}", v.max_relative), fmt::format("{:.3g}", v.tolerance), place_of(v),
                   fmt::format("{:.9g}", v.actual), fmt::format("{:.9g}", v.expected),
                   fmt::format("{:.3g}", v.median_share), fmt::format("{:.3g}", v.max_share)});
    if (!v.note.empty()) notes += fmt::format("output '{}': {}\n", v.name, v.note);
    if (v.differing > 0)
      notes += fmt::format("output '{}': {} of {} elements are outside of their tolerance\n", v.name,
                           v.differing, v.elements);
    if (v.unbounded > 0)
      notes += fmt::format(
          "output '{}': no bound is known for {} of {} elements; they are held to the interpreter's "
          "values instead\n",
          v.name, v.unbounded, v.elements);
  }
  return table.to_string() + notes;
}

Json to_json(const std::vector<OutputVerdict>& verdicts) {
  Json list = Json::array();
  for (const OutputVerdict& v : verdicts)
    list.push_back({{"name", v.name},
                    {"dtype", name_of(v.type)},
                    {"shape", v.shape},
                    {"passed", v.passed},
                    {"elements", v.elements},
                    {"differing", v.differing},
                    {"unbounded", v.unbounded},
                    {"max_abs", json_number(v.max_absolute)},
                    {"max_rel", json_number(v.max_relative)},
                    {"tolerance", json_number(v.tolerance)},
                    {"worst_index", v.worst_index},
                    {"value", json_number(v.actual)},
                    {"expected", json_number(v.expected)},
                    {"median_share", json_number(v.median_share)},
                    {"max_share", json_number(v.max_share)},
                    {"note", v.note}});
  return list;
}

int verify(const Options& options, Console& console) {
  const Prepared prepared = prepare(options.compile, console);
  const std::vector<graph::Tensor> outputs = prepared.session.run(prepared.inputs);
  const std::vector<OutputVerdict> verdicts = options.against.empty()
                                                  ? against_interpreter(options, prepared, outputs, console)
                                                  : against_files(options, prepared, outputs, console);
  bool passed = true;
  for (const OutputVerdict& verdict : verdicts) passed = passed && verdict.passed;
  console.print(words_of(verdicts));
  console.print(passed ? "verdict: passed\n" : "verdict: FAILED\n");
  console.finish("verify", {{"model", options.compile.model},
                            {"numerics", options.compile.numerics},
                            {"against", options.against.empty() ? "interpreter" : options.against},
                            {"verdict", passed ? "passed" : "failed"},
                            {"outputs", to_json(verdicts)}});
  return passed ? exit_done : exit_negative;
}

Action declare(Parser& parser) {
  auto options = std::make_shared<Options>();
  options->compile.declare(parser);
  parser.option(
      "--against", options->against, "DIR|FILE",
      "compare with these outputs instead of the interpreter's: a folder that run --output-dir wrote or an "
      "ONNX test's, or a .npz file");
  parser.choice("--bound", options->bound, {"probable", "worst"},
                "how roundings add up in the propagated bound: as independent errors do, or at their worst");
  parser.option(
      "--tolerance", options->tolerance, "T",
      "largest error, as a share of the output's largest magnitude, instead of the propagated bound");
  return [options](Console& console) { return verify(*options, console); };
}

}  // namespace

Command verify_command() {
  return {"verify", "compares a compiled run with the reference interpreter",
          "fusewise verify model.onnx --numerics strict", declare};
}

}  // namespace fusewise::cli

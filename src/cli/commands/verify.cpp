#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/text_table.h"
#include "cli/commands/commands.h"
#include "cli/results.h"
#include "cli/session_options.h"
#include "session/expected_outputs.h"
#include "session/reference.h"

namespace fusewise::cli {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;
using session::OutputVerdict;

struct Options {
  CompileFlags compile;
  std::string against, given;
  std::string bound = "probable";
  std::optional<double> tolerance;
};

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
  const std::string& numerics = options.compile.numerics;
  session::ReferenceOptions how;
  how.bounds = numerics == "default" && !options.tolerance;
  how.model = options.bound == "worst" ? graph::ErrorModel::worst_case : graph::ErrorModel::probable;
  how.threads = prepared.session.info().threads;
  how.progress = [&console](const char* what, graph::NodeId node, size_t nodes) {
    if (node % 16 == 0) console.progress(fmt::format("{} {} of {}", what, node, nodes));
  };
  const session::Reference reference(prepared.model.graph(), prepared.inputs, how);
  if (how.bounds) return reference.rounded_otherwise(outputs);
  if (options.tolerance || numerics == "fast")
    return reference.within(outputs, options.tolerance.value_or(1e-3));
  return reference.exact(outputs);
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
                   {"max share", Align::right},
                   {"own errors", Align::right}});
  std::string notes;
  for (const OutputVerdict& v : verdicts) {
    table.add_row({v.name, v.passed ? "agrees" : "DIFFERS", fmt::format("{:.3g}", v.max_absolute),
                   fmt::format("{:.3g}", v.max_relative), fmt::format("{:.3g}", v.tolerance), place_of(v),
                   fmt::format("{:.9g}", v.actual), fmt::format("{:.9g}", v.expected),
                   fmt::format("{:.3g}", v.median_share), fmt::format("{:.3g}", v.max_share),
                   v.spread > 0 ? fmt::format("x {:.3g}", v.spread) : "-"});
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
                    {"spread", json_number(v.spread)},
                    {"spread_share", json_number(v.spread_share)},
                    {"note", v.note}});
  return list;
}

// Of the compiled run, or those that are to be judged in its place.
std::vector<graph::Tensor> outputs_of(const Options& options, const Prepared& prepared) {
  if (options.given.empty()) return prepared.session.run(prepared.inputs);
  const std::vector<session::OutputInfo>& infos = prepared.session.info().outputs;
  std::vector<std::optional<graph::Tensor>> found = session::read_expected_outputs(infos, options.given);
  std::vector<graph::Tensor> outputs;
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i])
      throw UserError(fmt::format("{} has no values for output '{}'", options.given, infos[i].name),
                      {.file = options.given});
    outputs.push_back(std::move(*found[i]));
  }
  return outputs;
}

int verify(const Options& options, Console& console) {
  const Prepared prepared = prepare(options.compile, console);
  const std::vector<graph::Tensor> outputs = outputs_of(options, prepared);
  const std::vector<OutputVerdict> verdicts = options.against.empty()
                                                  ? against_interpreter(options, prepared, outputs, console)
                                                  : against_files(options, prepared, outputs, console);
  const bool passed = session::all_passed(verdicts);
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
  parser.option(
      "--outputs", options->given, "DIR|FILE",
      "judge these outputs, which somebody else computed from the same inputs, instead of a compiled run's");
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
          "fusewise verify model.onnx --numerics strict", declare};
}

}  // namespace fusewise::cli

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/results.h"
#include "cli/session_options.h"
#include "graph/interpreter/interpreter.h"
#include "session/expected_outputs.h"
#include "session/verify.h"

namespace fusewise::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Options {
  CompileFlags compile;
  std::vector<std::string> folders;
  std::optional<double> tolerance;
  bool interpreter = false;
};

enum class Outcome : uint8_t { passed, failed, unsupported };
constexpr const char* words[] = {"passed", "failed", "unsupported"};

struct Result {
  std::string test;
  Outcome outcome = Outcome::passed;
  std::string why;
};

// Folders with a model.onnx at or below `folder`, sorted.
std::vector<fs::path> find_tests(const std::string& folder) {
  if (!fs::is_directory(folder))
    throw UserError(fmt::format("there is no folder {}", folder), {.file = folder});
  std::vector<fs::path> tests;
  if (fs::exists(fs::path(folder) / "model.onnx")) tests.emplace_back(folder);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_directory() && fs::exists(entry.path() / "model.onnx")) tests.push_back(entry.path());
  std::sort(tests.begin(), tests.end());
  return tests;
}

std::vector<fs::path> data_sets(const fs::path& test) {
  std::vector<fs::path> sets;
  for (const fs::directory_entry& entry : fs::directory_iterator(test))
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_"))
      sets.push_back(entry.path());
  std::sort(sets.begin(), sets.end());
  return sets;
}

// A test folder holds its inputs in full: nothing is drawn at random.
std::vector<graph::Tensor> inputs_from(const std::vector<session::InputInfo>& inputs, const fs::path& set) {
  session::InputRequest request;
  request.source = set.string();
  std::string missing;
  request.warn_of_random = true;
  auto prepared = session::prepare_inputs(inputs, request, [&](const std::string& text) { missing = text; });
  if (!missing.empty() && fs::exists(set / "input_0.pb")) throw UserError(missing);
  return prepared.tensors;
}

double tolerance_for(const Options& options, DataType type) {
  if (options.tolerance) return *options.tolerance;
  return type == DataType::float16 || type == DataType::bfloat16 ? 4e-3 : 1e-4;
}

std::string compare(const Options& options, const std::vector<session::OutputInfo>& infos,
                    const std::vector<graph::Tensor>& outputs, const fs::path& set) {
  const auto expected = session::read_expected_outputs(infos, set.string(), [](const std::string&) {});
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!expected[i]) return fmt::format("no values for output '{}'", infos[i].name);
    const session::OutputVerdict verdict = session::compare_within(
        infos[i].name, *expected[i], outputs[i], tolerance_for(options, outputs[i].element));
    if (verdict.passed) continue;
    if (!verdict.note.empty()) return fmt::format("output '{}': {}", verdict.name, verdict.note);
    return fmt::format("output '{}': {} of {} elements differ; element {} is {:.9g} and should be {:.9g}",
                       verdict.name, verdict.differing, verdict.elements, verdict.worst_index, verdict.actual,
                       verdict.expected);
  }
  return {};
}

std::string run_compiled(const Options& options, const session::Model& model,
                         const std::vector<fs::path>& sets, Console& console) {
  const session::Session session(model, options.compile.options(console));
  for (const fs::path& set : sets) {
    const auto outputs = session.run(inputs_from(session.info().inputs, set));
    if (std::string why = compare(options, session.info().outputs, outputs, set); !why.empty())
      return fmt::format("{}: {}", set.filename().string(), why);
  }
  return {};
}

std::string run_interpreter(const Options& options, const session::Model& model,
                            const std::vector<fs::path>& sets) {
  const graph::Graph& graph = model.graph();
  std::vector<session::OutputInfo> infos;
  for (const graph::GraphOutput& output : graph.outputs)
    infos.push_back({output.name, graph.type(output.value).element, graph.type(output.value).shape});
  for (const fs::path& set : sets) {
    const auto outputs =
        graph::interpret(graph, inputs_from(session::inputs_of(graph), set),
                         {.threads = options.compile.threads.count(), .also = {}, .progress = {}});
    if (std::string why = compare(options, infos, outputs, set); !why.empty())
      return fmt::format("{}: {}", set.filename().string(), why);
  }
  return {};
}

Result run_test(const Options& options, const fs::path& test, Console& console) {
  Result result{test.string(), Outcome::passed, {}};
  try {
    const session::Model model = session::Model::load((test / "model.onnx").string());
    const std::vector<fs::path> sets = data_sets(test);
    result.why = options.interpreter ? run_interpreter(options, model, sets)
                                     : run_compiled(options, model, sets, console);
    if (sets.empty()) result.why = "it has no test_data_set_N";
    if (!result.why.empty()) result.outcome = Outcome::failed;
  } catch (const UnsupportedError& error) {
    result = {test.string(), Outcome::unsupported, {}};
    for (const UnsupportedItem& item : error.items)
      result.why += fmt::format("{}{}", result.why.empty() ? "" : "; ", item.what);
    if (result.why.empty()) result.why = error.what();
  } catch (const std::exception& error) {
    // One broken test must not end the others.
    result = {test.string(), Outcome::failed, error.what()};
  }
  std::replace(result.why.begin(), result.why.end(), '\n', ' ');  // a line per test
  return result;
}

int test(const Options& options, Console& console) {
  std::vector<fs::path> tests;
  for (const std::string& folder : options.folders)
    for (const fs::path& found : find_tests(folder)) tests.push_back(found);
  if (tests.empty())
    throw UserError("there is no model.onnx in these folders",
                    {.hint = "name a folder of an ONNX test, or one above"});
  int64_t counts[3] = {};
  Json list = Json::array();
  for (const fs::path& folder : tests) {
    console.progress(folder.string());
    const Result result = run_test(options, folder, console);
    const auto outcome = static_cast<size_t>(result.outcome);
    ++counts[outcome];
    console.print("{:<12}{}{}{}\n", words[outcome], result.test, result.why.empty() ? "" : ": ", result.why);
    list.push_back({{"test", result.test}, {"outcome", words[outcome]}, {"why", result.why}});
  }
  console.print("{} passed, {} failed, {} unsupported\n", counts[0], counts[1], counts[2]);
  console.finish("test",
                 {{"passed", counts[0]}, {"failed", counts[1]}, {"unsupported", counts[2]}, {"tests", list}});
  return counts[1] == 0 ? exit_done : exit_negative;
}

Action declare(Parser& parser) {
  auto options = std::make_shared<Options>();
  parser.positionals("DIR", options->folders,
                     "folders of ONNX tests: model.onnx and test_data_set_N, or folders above");
  parser.option("--tolerance", options->tolerance, "T",
                "largest error, as a share of the output's largest magnitude");
  parser.flag("--interpreter", options->interpreter,
              "run the reference interpreter instead of compiled code");
  options->compile.declare_compilation(parser);
  return [options](Console& console) { return test(*options, console); };
}

}  // namespace

Command test_command() {
  return {"test", "runs ONNX test folders", "fusewise test onnx/backend/test/data/node", declare};
}

}  // namespace fusewise::cli

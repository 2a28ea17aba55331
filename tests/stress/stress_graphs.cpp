// Long runs over random graphs; stress_graphs --help says how.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <cstdint>
#include <fstream>
#include <string_view>

#include "graph/text.h"
#include "stress/graph_case.h"
#include "stress/graph_stress.h"
#include "stress/shrink.h"

using namespace fusewise::test;

namespace {

struct Arguments {
  StressOptions options;
  std::string cases;
  bool print = false;
};

void define(CLI::App& app, Arguments& arguments) {
  app.add_option("--count", arguments.options.count, "how many graphs (1000)");
  app.add_option("--seconds", arguments.options.seconds, "instead of a count: for how long");
  app.add_option("--seed", arguments.options.seed, "of the first graph (1)");
  app.add_option_function<std::string>(
         "--mode", [&](const std::string& mode) { arguments.options.compile = mode == "compile"; },
         "machine code, or the kernels interpreted (interpret)")
      ->check(CLI::IsMember({"compile", "interpret"}));
  app.add_option("--failures", arguments.options.most_failures, "stop after so many (5)");
  app.add_option("--cases", arguments.cases, "append every failure, made smaller, to this file");
  app.add_flag("--print", arguments.print, "print the graph of the seed first");
  app.footer(
      "Examples:\n"
      "  stress_graphs --count 100000 --mode interpret\n"
      "  stress_graphs --seconds 600 --mode compile --cases failures.case\n"
      "  stress_graphs --seed 4711 --count 1 --print\n\n"
      "Exits with 1 when something was wrong.");
}

void write_case(const std::string& path, const StressFailure& failure) {
  const GraphFailure small =
      shrink_failure(random_graph(failure.seed, stress_graphs(failure.seed)), failure.settings);
  CaseFile file;
  file.cases.push_back(to_case(fmt::format("seed {}", failure.seed), small.what, {small.settings}));
  file.cases.back().comments.push_back("# " + small.words.substr(0, small.words.find('\n')));
  file.cases.back().blocks.push_back({"expect", "agrees\n"});
  std::ofstream(path, std::ios::app) << print_case_file(file);
}

}  // namespace

int main(int count, char** words) {
  Arguments arguments;
  CLI::App app("runs random graphs through the compiler and compares with the reference interpreter");
  define(app, arguments);
  CLI11_PARSE(app, count, words);
  if (arguments.options.seconds > 0) arguments.options.count = INT64_MAX;
  arguments.options.progress = true;
  if (arguments.print) {
    const uint64_t seed = arguments.options.seed;
    const GraphCase what = random_graph(seed, stress_graphs(seed));
    fmt::print("{}", fusewise::graph::print(what.graph));
    for (const auto& [name, value] : what.symbols) fmt::print("# {} = {}\n", name, value);
  }
  handle_signals();
  const StressSummary summary = run_stress(arguments.options);
  fmt::print("{}", to_text(summary));
  std::fflush(stdout);
  if (!arguments.cases.empty())
    for (const StressFailure& failure : summary.failures) write_case(arguments.cases, failure);
  return summary.failures.empty() ? 0 : 1;
}

// Long runs over random graphs:
//   stress_graphs --count 100000 --seed 1 --mode interpret
//   stress_graphs --seconds 600 --mode compile --cases failures.case
//   stress_graphs --seed 4711 --count 1 --print
// Exits with 1 when something was wrong. With --cases every failure is made smaller and appended as a text case.
#include <fmt/format.h>

#include <cstdlib>
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

Arguments parse(int count, char** words) {
  Arguments result;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--print") {
      result.print = true;
      continue;
    }
    if (i + 1 == count) {
      fmt::print(stderr, "{} needs a value\n", word);
      std::exit(2);
    }
    const char* value = words[++i];
    if (word == "--count") {
      result.options.count = std::atoll(value);
    } else if (word == "--seed") {
      result.options.seed = std::strtoull(value, nullptr, 10);
    } else if (word == "--seconds") {
      result.options.seconds = std::atof(value);
      result.options.count = INT64_MAX;
    } else if (word == "--mode") {
      result.options.compile = std::string_view(value) == "compile";
    } else if (word == "--failures") {
      result.options.most_failures = std::atoll(value);
    } else if (word == "--cases") {
      result.cases = value;
    } else {
      fmt::print(stderr, "{} is no option\n", word);
      std::exit(2);
    }
  }
  return result;
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
  const Arguments arguments = parse(count, words);
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

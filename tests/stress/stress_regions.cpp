// Long runs over random regions; stress_regions --help says how.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "compiler/region_generator.h"
#include "compiler/region_stress.h"
#include "stress/region_case.h"

int main(int count, char** words) {
  fusewise::test::RegionStress options;
  options.threads = 1;
  std::string cases;
  CLI::App app(
      "runs random regions under chosen and random schedules and compares with the reference interpreter");
  app.add_option("--count", options.regions, "how many regions (3000)");
  app.add_option("--seconds", options.seconds, "instead of a count: for how long");
  app.add_option("--seed", options.seed, "of the first region (1)");
  app.add_option("--schedules", options.random_schedules,
                 "random schedules per region, beside the chosen one (2)");
  app.add_option("--compile-every", options.compile_every,
                 "make machine code of every Nth region; 0: of none (20)");
  app.add_option("--threads", options.threads, "regions at once; 0: all processors (1)");
  app.add_option("--cases", cases, "append failures, made smaller, to this file");
  app.footer(
      "Examples:\n"
      "  stress_regions --count 100000 --schedules 4 --compile-every 20\n"
      "  stress_regions --seconds 600 --threads 0\n\n"
      "Exits with 1 when something was wrong, of which the shortest descriptions are printed.");
  CLI11_PARSE(app, count, words);
  if (options.seconds > 0) options.regions = INT64_MAX;
  options.progress = true;
  const fusewise::test::Tally all = run_stress(options);
  fmt::print("{}", to_text(all));
  for (size_t i = 0; i < all.wrong.size() && i < 3; ++i) fmt::print("WRONG {}\n", all.wrong[i]);
  std::fflush(stdout);
  for (size_t i = 0; !cases.empty() && i < all.wrong.size() && i < 10; ++i) {
    const uint64_t seed = std::strtoull(all.wrong[i].c_str() + std::string_view("seed ").size(), nullptr, 10);
    const auto small = fusewise::test::shrunk_region(fmt::format("region of seed {}", seed),
                                                     fusewise::test::random_region(seed));
    if (!small) continue;
    fusewise::test::CaseFile file;
    file.cases.push_back(*small);
    std::ofstream(cases, std::ios::app) << print_case_file(file);
  }
  return all.wrong.empty() ? 0 : 1;
}

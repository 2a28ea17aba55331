// Long runs over random regions:
//   stress_regions --count 100000 --seed 1 --schedules 4 --compile-every 20
//   stress_regions --seconds 600
// Exits with 1 when something was wrong, of which the shortest descriptions are printed. With --cases FILE failures are
// made smaller and appended as text cases.
#include <fmt/format.h>

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
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view word = words[i];
    const char* value = words[i + 1];
    if (word == "--count") {
      options.regions = std::atoll(value);
    } else if (word == "--seed") {
      options.seed = std::strtoull(value, nullptr, 10);
    } else if (word == "--schedules") {
      options.random_schedules = std::atoll(value);
    } else if (word == "--compile-every") {
      options.compile_every = std::atoll(value);
    } else if (word == "--cases") {
      cases = value;
    } else if (word == "--threads") {
      options.threads = std::atoi(value);
    } else if (word == "--seconds") {
      options.seconds = std::atof(value);
      options.regions = INT64_MAX;
    } else {
      fmt::print(stderr, "{} is no option\n", word);
      return 2;
    }
  }
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

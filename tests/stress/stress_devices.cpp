// Long runs of random regions on an OpenCL device:
//   stress_devices --count 1000 --seed 1 --platform pocl --print-every 1
//   stress_devices --seconds 600 --platform none
// Exits with 1 when something was wrong, of which the shortest descriptions are printed.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "compiler/device_runner.h"
#include "compiler/device_stress.h"

int main(int count, char** words) {
  fusewise::test::DeviceStress options;
  options.is_verbose = true;
  std::string platform = "Portable Computing Language";
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view word = words[i];
    const char* value = words[i + 1];
    if (word == "--count") {
      options.regions = std::atoll(value);
    } else if (word == "--seed") {
      options.seed = std::strtoull(value, nullptr, 10);
    } else if (word == "--platform") {
      platform = value;
    } else if (word == "--print-every") {
      options.print_every = std::atoll(value);
    } else if (word == "--batch") {
      options.batch = std::atoll(value);
    } else if (word == "--seconds") {
      options.seconds = std::atof(value);
      options.regions = INT64_MAX;
    } else {
      fmt::print(stderr, "{} is no option\n", word);
      return 2;
    }
  }
  if (platform != "none") {
    options.device = fusewise::test::device_of(platform);
    if (options.device == nullptr) return 2;
  }
  fusewise::test::DeviceTally all = run_stress(options);
  fmt::print("{}{} wrong\n", to_text(all), all.wrong.size());
  std::sort(all.wrong.begin(), all.wrong.end(),
            [](const auto& a, const auto& b) { return a.size() < b.size(); });
  for (size_t i = 0; i < all.wrong.size() && i < 3; ++i) fmt::print("WRONG {}\n", all.wrong[i]);
  return all.wrong.empty() ? 0 : 1;
}

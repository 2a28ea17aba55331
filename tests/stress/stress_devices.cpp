// Long runs of random regions on an OpenCL device.
#include <fmt/format.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>

#include <algorithm>
#include <string>

#include "compiler/device_runner.h"
#include "compiler/device_stress.h"

int main(int count, char** words) {
  fusewise::test::DeviceStress options;
  options.is_verbose = true;
  std::string platform = "Portable Computing Language";
  CLI::App app("runs random regions on an OpenCL device and compares with the reference interpreter");
  app.add_option("--count", options.regions, "how many regions (1000)");
  app.add_option("--seconds", options.seconds, "instead of a count: for how long");
  app.add_option("--seed", options.seed, "of the first region (1)");
  app.add_option("--platform", platform, "words of its name (pocl's); none: kernels are only interpreted");
  app.add_option("--print-every", options.print_every, "run every Nth region on the device, too (1)")
      ->check(CLI::PositiveNumber);
  app.add_option("--batch", options.batch, "kernels that the driver gets in one program (32)")
      ->check(CLI::PositiveNumber);
  app.footer(
      "Examples:\n"
      "  stress_devices --count 1000 --platform rusticl\n"
      "  stress_devices --seconds 600 --platform none\n\n"
      "Exits with 1 when something was wrong, of which the shortest descriptions are printed.");
  CLI11_PARSE(app, count, words);
  if (options.seconds > 0) options.regions = INT64_MAX;
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

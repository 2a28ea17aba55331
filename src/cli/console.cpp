#include "cli/console.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace fusewise::cli {

void Console::wipe_progress() {
  if (!progress_shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  progress_shown_ = false;
}

void Console::print(const std::string& text) {
  wipe_progress();
  if (!quiet) std::fwrite(text.data(), 1, text.size(), stdout);
}

void Console::warn(const std::string& text) {
  wipe_progress();
  fmt::print(stderr, "warning: {}\n", text);
}

void Console::note(const std::string& text) {
  if (!verbose) return;
  wipe_progress();
  fmt::print(stderr, "{}\n", text);
}

void Console::progress(const std::string& text) {
  static const bool on_terminal = ::isatty(STDERR_FILENO) == 1;
  if (!on_terminal || quiet) return;
  fmt::print(stderr, "\r\x1b[K{}", text);
  std::fflush(stderr);
  progress_shown_ = true;
}

void Console::finish(const std::string& command, nlohmann::ordered_json object) {
  wipe_progress();
  if (!json) return;
  nlohmann::ordered_json document = {{"schema", "fusewise." + command + "/1"}};
  for (auto& [key, value] : object.items()) document[key] = value;
  // Names in a model need not be valid UTF-8.
  const std::string text = document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::fputs((text + "\n").c_str(), stdout);
}

nlohmann::ordered_json json_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

}  // namespace fusewise::cli

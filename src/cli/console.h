// Where a command writes: results to standard output, everything else to standard error, and the JSON object of
// --json as the last line of standard output.
#pragma once

#include <fmt/core.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>

namespace fusewise::cli {

class Console {
 public:
  bool json = false, quiet = false, verbose = false;

  // A result, for people.
  void print(const std::string& text);
  template <class First, class... Rest>
  void print(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
    print(fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...));
  }
  void warn(const std::string& text);
  void note(const std::string& text);  // with --verbose
  // What is being done, on a terminal only; the next output wipes it away.
  void progress(const std::string& text);
  // The JSON object, with --json; `schema` is the command's name.
  void finish(const std::string& command, nlohmann::ordered_json object);

 private:
  void wipe_progress();
  bool progress_shown_ = false;
};

// JSON has no infinity and no NaN: those become strings.
nlohmann::ordered_json json_number(double value);

}  // namespace fusewise::cli

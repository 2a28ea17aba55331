// Options that several commands have, and what they mean for inputs and compilation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "cli/parser.h"
#include "session/inputs.h"

namespace fusewise::cli {

// Which inputs a command runs on.
struct InputOptions {
  std::string source;
  std::vector<std::string> files, shapes, dims, ranges;
  std::optional<int64_t> seed;

  void declare(Parser& parser);
  session::InputRequest request() const;  // UsageError
};

// "NAME=VALUE": NAME ends at the last '='. UsageError that names the option.
std::pair<std::string, std::string> split_assignment(std::string_view option, const std::string& text);
int64_t parse_integer(std::string_view option, const std::string& text);
double parse_number(std::string_view option, const std::string& text);
// "2x128"; "" and "scalar" are no dimensions. UsageError that names the option.
std::vector<int64_t> parse_shape(std::string_view option, const std::string& text);
std::vector<std::string> split(const std::string& text, std::string_view separators);

// The threads that --threads (or FUSEWISE_NUM_THREADS) asks for.
struct ThreadOptions {
  std::string threads = "auto";
  bool pin = false;
  void declare(Parser& parser);
  int count() const;  // UsageError
};

}  // namespace fusewise::cli

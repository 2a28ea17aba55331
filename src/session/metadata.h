// What a session knows beside the program itself, kept in the program's metadata so that a program from the cache
// tells as much as one just compiled.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "numerics/dim.h"

namespace fusewise::session {

struct Metadata {
  std::vector<std::optional<Dim>> index_extents;  // by input
  Dim flops;
  std::map<std::string, double> phases_ms;
  double predicted_ms = 0, lower_bound_ms = 0;
  std::vector<std::optional<double>> predicted_step_ms;  // by run step
  std::string machine;
  std::string compiler;  // what the compiler had written there
};

std::string to_text(const Metadata& metadata);
// UserError when the text is none of ours.
Metadata metadata_from(const std::string& text);

}  // namespace fusewise::session

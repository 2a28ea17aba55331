// Outputs that the user wants to grow in place: which input each of them is, with something behind it.
#pragma once

#include <string>
#include <vector>

#include "fusion/assemblies.h"

namespace fusewise::compiler {

// Each wish is "auto", all outputs that are a concatenation beginning with an input, or "OUTPUT=INPUT", where * in
// OUTPUT stands for any text and * in INPUT for the same text. UserError for a wish that nothing fulfils.
std::vector<fusion::Append> find_appends(const graph::Graph& graph, const std::vector<std::string>& wishes);

}  // namespace fusewise::compiler

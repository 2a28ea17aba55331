// A graph with its inputs as the blocks of a text case (support/case_file.h): `graph` and `inputs`, the latter a graph
// of constants, one per input. `settings` has a line for each way to run it.
#pragma once

#include <string>
#include <vector>

#include "stress/graph_runner.h"
#include "support/case_file.h"

namespace fusewise::test {

Case to_case(const std::string& name, const GraphCase& what, const std::vector<GraphSettings>& settings);
// UserError where the blocks do not say it.
GraphCase graph_of(const Case& text);
std::vector<GraphSettings> settings_of(const Case& text);

}  // namespace fusewise::test

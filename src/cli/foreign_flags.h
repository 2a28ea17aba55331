// Flags of other programs that do what ours do: people's fingers and scripts know them.
#pragma once

#include <string>

namespace fusewise::cli {

// Throws UsageError with the translation when `flag` belongs to a program that we know.
void throw_if_foreign(const std::string& flag);

}  // namespace fusewise::cli

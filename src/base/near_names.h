// What somebody may have meant who wrote a name that there is not.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fusewise {

// How many characters must be added, removed or replaced.
int edit_distance(std::string_view a, std::string_view b);

// The names nearest to `wanted`, nearest first and at most `most`: few characters away, or holding it, or held by it.
std::vector<std::string> near_names(std::string_view wanted, std::span<const std::string> names,
                                    size_t most = 3);

// "did you mean 'a', 'b'?", or nothing.
std::string did_you_mean(std::string_view wanted, std::span<const std::string> names);

}  // namespace fusewise

// Verdicts of comparisons in words and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "session/kernel_check.h"
#include "session/verify.h"

namespace fusewise::cli {

// A table, and what it does not say; `what` heads the column of names.
std::string verdict_table(const std::string& what, std::span<const session::OutputVerdict> verdicts);
nlohmann::ordered_json verdict_json(std::span<const session::OutputVerdict> verdicts);

// The first kernel that is off, or that none is.
std::string kernel_words(std::span<const session::KernelVerdict> verdicts);
// "kernels" and "first_off".
nlohmann::ordered_json kernel_json(std::span<const session::KernelVerdict> verdicts);

}  // namespace fusewise::cli

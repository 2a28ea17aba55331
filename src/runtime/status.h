// How a run ended. The runtime reports by value: nothing is thrown across a run.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace fusewise::runtime {

enum class StatusCode : uint8_t {
  ok,
  cancelled,      // outputs are incomplete
  bad_argument,   // nothing ran
  out_of_memory,  // nothing ran
  failed,         // outputs are incomplete
};

struct [[nodiscard]] Status {
  StatusCode code = StatusCode::ok;
  std::string message;

  bool ok() const { return code == StatusCode::ok; }
  static Status success() { return {}; }
  static Status error(StatusCode code, std::string message) { return {code, std::move(message)}; }
};

}  // namespace fusewise::runtime

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
  bad_data,       // the inputs' values ask for what cannot be: outputs are incomplete
  out_of_memory,  // outputs are incomplete
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

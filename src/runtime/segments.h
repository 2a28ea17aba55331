// A run in pieces between the points where its steps bind symbols. Each segment but the last ends with a step that
// binds some; what speaks of them belongs to the next segment and is evaluated when they are known. A program whose
// sizes all follow from the inputs has one segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program/program.h"

namespace fusewise::runtime {

struct Segments {
  std::vector<size_t> first_step;  // by segment
  std::vector<uint32_t> of_step;
  // Where what they speak of is known first.
  std::vector<uint32_t> of_buffer, of_guard, of_output;

  size_t count() const { return first_step.size(); }
  size_t end_of(size_t segment) const {
    return segment + 1 < first_step.size() ? first_step[segment + 1] : of_step.size();
  }
};
Segments segments_of(const program::Program& program);

}  // namespace fusewise::runtime

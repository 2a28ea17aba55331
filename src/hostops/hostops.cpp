#include "hostops/hostops.h"

#include <fmt/format.h>

#include <array>

#include "hostops/implementation.h"

namespace fusewise::hostops {

namespace {

struct Row {
  Facts facts;
  void (*implementation)(const Call&);
};

constexpr auto rows = std::to_array<Row>({
#define FUNCTION(name, least, most, results) {{#name, least, most, results}, name},
#include "hostops/functions.def"
#undef FUNCTION
});

const Row& row_of(Function function) {
  check(static_cast<size_t>(function) < rows.size(), "host function out of range");
  return rows[static_cast<size_t>(function)];
}

}  // namespace

const Facts& facts_of(Function function) { return row_of(function).facts; }
std::string_view name_of(Function function) { return row_of(function).facts.name; }

std::optional<Function> function_of(std::string_view name) {
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i].facts.name == name) return static_cast<Function>(i);
  return std::nullopt;
}

std::byte* Scratch::take_bytes(size_t bytes) {
  if (used_ == blocks_.size()) blocks_.emplace_back();
  AlignedBuffer& block = blocks_[used_++];
  if (block.size() < bytes) {
    block = AlignedBuffer();
    block = AlignedBuffer(bytes);
  }
  return block.data();
}

int64_t count_of(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

void call(Function function, std::span<const Operand> operands, std::span<const int64_t> parameters,
          Receiver& receiver, Scratch& scratch) {
  const Row& row = row_of(function);
  const auto given = static_cast<int>(operands.size());
  if (given < row.facts.least_operands || given > row.facts.most_operands)
    throw InternalError(fmt::format("host function {} with {} operands", row.facts.name, given));
  scratch.release();
  row.implementation({operands, parameters, receiver, scratch});
}

}  // namespace fusewise::hostops

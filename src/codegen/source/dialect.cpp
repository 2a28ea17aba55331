#include "codegen/source/dialect.h"

#include <fmt/format.h>

#include "base/error.h"

namespace fusewise::codegen {

std::span<const Dialect* const> dialects() {
  static const Dialect* const list[] = {&opencl_dialect()};
  return list;
}

const Dialect& dialect_named(std::string_view name) {
  std::string known;
  for (const Dialect* dialect : dialects()) {
    if (dialect->name == name) return *dialect;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", dialect->name);
  }
  throw UserError(fmt::format("unknown language '{}' of kernels: {} is known", name, known));
}

}  // namespace fusewise::codegen

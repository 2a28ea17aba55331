#include "codegen/source/source.h"

#include <fmt/format.h>

#include "base/error.h"
#include "codegen/source/source_printer.h"

namespace fusewise::codegen {

namespace {

void check_limits(const kernel::Kernel& kernel, const Launch& launch, const machine::Machine& machine) {
  if (launch.threads > machine.most_threads)
    throw UnsupportedError(
        fmt::format("not supported yet: kernel '{}' wants {} threads in a group, {} has {}", kernel.name,
                    launch.threads, machine.name, machine.most_threads));
  if (launch.shared > machine.shared_bytes)
    throw UnsupportedError(
        fmt::format("not supported yet: kernel '{}' wants {} bytes of memory that threads share, {} has {}",
                    kernel.name, launch.shared, machine.name, machine.shared_bytes));
}

}  // namespace

SourceKernel print_source(const kernel::Kernel& kernel, const Dialect& dialect,
                          const machine::Machine& machine) {
  SourceKernel result;
  for (size_t i = 0; i < kernel.phases.size(); ++i) {
    Launch launch;
    SourcePrinter printer(kernel, dialect);
    result.text += printer.phase(i, launch);
    result.uses_double = result.uses_double || printer.uses_double();
    check_limits(kernel, launch, machine);
    result.launches.push_back(std::move(launch));
  }
  return result;
}

std::string source_module(std::span<const SourceKernel> kernels, const Dialect& dialect) {
  std::string text(dialect.prelude);
  for (const SourceKernel& kernel : kernels)
    if (kernel.uses_double) {
      text += dialect.double_prelude;
      break;
    }
  for (const SourceKernel& kernel : kernels) text += "\n" + kernel.text;
  return text;
}

kernel::PassOptions source_passes() {
  kernel::PassOptions options;
  options.vector_bits = 0;
  // A driver unrolls by itself; text that has it done already takes it far longer to compile. Register tiles are short.
  options.unroll_factor = 1;
  options.most_unrolled = 400;
  // Pointers of their own cost a thread registers; a compiler for a GPU finds the addresses' common parts itself.
  options.disabled = {"hoist_addresses", "join_rows", "place_scratch"};
  return options;
}

}  // namespace fusewise::codegen

// The text that kernels are printed as, and what is refused. What it computes is tested where drivers run it
// (tests/compiler/opencl_regions_test.cpp).
#include <gtest/gtest.h>

#include "base/error.h"
#include "codegen/source/source.h"
#include "kernel/verifier.h"
#include "support/case_file.h"

namespace fusewise::codegen {
namespace {

TEST(Source, Cases) {
  test::run_cases("codegen/source.case", [](const test::Case& c) -> std::string {
    const kernel::Kernel kernel = kernel::parse(c.text("input"));
    kernel::verify(kernel);
    const Dialect& dialect = dialect_named(c.word("dialect", "opencl"));
    try {
      const SourceKernel printed = print_source(kernel, dialect, machine::plain_gpu());
      std::string launches;
      for (const Launch& launch : printed.launches)
        launches += launch.function + ": " + launch.blocks.to_string() + " groups of " +
                    std::to_string(launch.threads) + ", " + std::to_string(launch.shared) + " bytes shared\n";
      return printed.text + launches;
    } catch (const UnsupportedError& error) {
      return std::string(error.what()) + "\n";
    }
  });
}

TEST(Source, UnknownDialectIsNamed) {
  try {
    dialect_named("fortran");
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("opencl is known"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace fusewise::codegen

// Random graphs through the whole compiler. Long runs: build/release/stress_graphs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "graph/form.h"
#include "numerics/scalar_op.h"
#include "stress/graph_stress.h"

namespace fusewise::test {
namespace {

void expect_right(const StressSummary& summary) {
  fmt::print("{}", to_text(summary));
  for (const StressFailure& f : summary.failures)
    ADD_FAILURE() << "seed " << f.seed << " " << to_text(f.settings) << ": " << f.words;
  EXPECT_LT(summary.unfit * 20, summary.graphs);
  EXPECT_LT(summary.refused * 50, summary.runs);
}

TEST(RandomGraphs, InterpretedKernelsAreRight) {
  StressOptions options;
  options.count = 300;
  const StressSummary summary = run_stress(options);
  expect_right(summary);
  const auto covers = [&](const std::string& what, int64_t least) {
    const auto it = summary.coverage.find(what);
    EXPECT_GE(it == summary.coverage.end() ? 0 : it->second, least) << what;
  };
#define OP(name, kind, arity) \
  if (std::string(#name) != "map") covers("op " #name, 5);
#include "graph/ops.def"
#undef OP
#define SCALAR_OP(name, arity, class_) covers(fmt::format("op {}", name_of(ScalarOp::name)), 1);
#include "numerics/scalar_ops.def"
#undef SCALAR_OP
#define FUNCTION(name, least, most, results) covers("host " #name, 2);
#include "hostops/functions.def"
#undef FUNCTION
  for (const char* how : {"replace", "sum", "product", "max", "min"})
    covers(fmt::format("scatter {}", how), 2);
  for (const char* how : {"", " exclusive", " reverse", " exclusive reverse"})
    covers(fmt::format("prefix sum{}", how), 2);
  for (const char* how : {"product", "max", "min"}) covers(fmt::format("prefix {}", how), 1);
  for (const char* type : {"boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                           "uint64", "float16", "bfloat16", "float32", "float64"})
    covers(fmt::format("type {}", type), 3);
  for (const char* what : {"dim 0", "dim symbol", "dim symbol that is 1", "several outputs",
                           "convolution grouped", "convolution 1-d", "convolution 2-d", "convolution 3-d"})
    covers(what, 3);
}

TEST(RandomGraphs, MachineCodeIsRight) {
  StressOptions options;
  options.count = 20;
  options.graphs = GraphOptions{};
  options.graphs->most_elements = 300;
  options.graphs->most_work = 3000;
  options.seed = 500000;
  options.compile = true;
  expect_right(run_stress(options));
}

}  // namespace
}  // namespace fusewise::test

// Every rewrite on the graphs of the text case file of its name, and the whole order on those of
// pipeline.case.
#include <gtest/gtest.h>

#include <ostream>

#include "rewrite/rewrite_testing.h"
#include "support/case_file.h"

namespace fusewise::rewrite {

// What GoogleTest prints for a parameter.
static void PrintTo(const Rewrite& rewrite, std::ostream* out) { *out << rewrite.name; }

namespace {

using test::Case;
using test::run_cases;

// Finite inputs alone where a case says so: what rounds near an infinity may be one.
bool special_values(const Case& c) { return c.word("inputs", "special") == "special"; }

class Cases : public ::testing::TestWithParam<Rewrite> {};

TEST_P(Cases, Golden) {
  const Rewrite& rewrite = GetParam();
  run_cases("rewrite/" + std::string(rewrite.name) + ".case", [&](const Case& c) {
    const graph::Graph before = graph::parse(c.text("input"));
    const auto [after, changed] = rewrite.apply(before, {});
    graph::verify(after);
    EXPECT_EQ(changed, !same_graph(before, after)) << c.name;
    testing::expect_same_results(before, after, rewrite.exactness, static_cast<unsigned>(c.line),
                                 special_values(c));
    return graph::print(after);
  });
}

// Once more changes nothing, on its own result and on that of any order of two.
TEST_P(Cases, Settles) {
  const Rewrite& rewrite = GetParam();
  const std::string path = std::string(FUSEWISE_TESTS) + "/rewrite/" + std::string(rewrite.name) + ".case";
  const test::CaseOptions options;
  test::check_cases(
      path,
      [&](const Case& c) {
        const graph::Graph once = rewrite.apply(graph::parse(c.text("input")), {}).graph;
        const auto [twice, changed] = rewrite.apply(once, {});
        EXPECT_EQ(graph::print(twice), graph::print(once)) << c.name;
        EXPECT_FALSE(changed) << c.name;
        for (const Rewrite& other : rewrites()) {
          const graph::Graph both = other.apply(once, {}).graph;
          graph::verify(both);
          testing::expect_same_results(once, both, other.exactness, static_cast<unsigned>(c.line),
                                       special_values(c));
        }
        return std::string();
      },
      options);
}

INSTANTIATE_TEST_SUITE_P(Rewrites, Cases, ::testing::ValuesIn(rewrites().begin(), rewrites().end()),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Pipeline, Golden) {
  run_cases("rewrite/pipeline.case", [](const Case& c) {
    const graph::Graph before = graph::parse(c.text("input"));
    DriverOptions options;
    if (c.word("numerics", "default") == "strict") options.allowed = Exactness::exact;
    const graph::Graph after = run_rewrites(before, options);
    testing::expect_same_results(before, after, options.allowed, static_cast<unsigned>(c.line),
                                 special_values(c));
    return graph::print(after);
  });
}

}  // namespace
}  // namespace fusewise::rewrite

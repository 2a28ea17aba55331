// What `build_tree` refuses and why, and the text form of schedules.
#include "schedule/tree.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "graph/builder.h"
#include "schedule/code_size.h"
#include "schedule/schedule_text.h"

namespace fusewise::schedule {
namespace {

using graph::GraphBuilder;

class TreeTest : public testing::Test {
 protected:
  graph::Graph graph_;
  GraphBuilder builder_{graph_};

  std::string verdict(const std::string& schedule) {
    graph::Region region;
    for (NodeId n = 0; n < graph_.size(); ++n)
      if (graph::has_form(graph_, n)) region.nodes.push_back(n);
    for (const graph::GraphOutput& o : graph_.outputs) region.outputs.push_back(o.value);
    std::sort(region.outputs.begin(), region.outputs.end());
    const RegionForms forms = region_forms(graph_, region);
    return build_tree(forms, parse_schedule(schedule), {}).verdict.code;
  }

  // %1 = exp(%0), %2 = a window of 3 by 3 over it.
  void windowed() {
    const Value x = builder_.input("x", {DataType::float32, {12, 10}});
    graph::WindowReduceAttributes a;
    a.window = {3, 3};
    a.strides = a.dilations = {1, 1};
    a.pad_low = a.pad_high = {1, 1};
    builder_.output(builder_.window_reduce(builder_.map(ScalarOp::exp, {x}), a), "y");
  }
  // %1 = exp(%0), %2 = its sums over rows, %4 = %1 less them; %1 is an output too.
  void rows() {
    const Value x = builder_.input("x", {DataType::float32, {12, 10}});
    const Value e = builder_.map(ScalarOp::exp, {x});
    builder_.output(builder_.map_broadcast(ScalarOp::sub, {e, builder_.reduce(e, Combine::sum, {1}, true)}),
                    "y");
    builder_.output(e, "e");
  }
};

TEST_F(TreeTest, AllowsWhatIsRight) {
  windowed();
  EXPECT_EQ(verdict("stage %2 root phase=0 memory loops=[0:4 1:4] grid=1 vector=1 storage=[0 1]"), "");
  EXPECT_EQ(verdict("stage %2 root phase=0 memory loops=[1:4 0:1] grid=1 vector=1 storage=[0 1]\n"
                    "stage %1 in=0 depth=2 scratch slide=0 loops=[] vector=1 storage=[1 0]"),
            "");
}

TEST_F(TreeTest, RefusesWhatIsNoSchedule) {
  windowed();
  EXPECT_EQ(verdict("stage %2 root phase=0 memory loops=[2:4] grid=1 vector=1 storage=[0 1]"), "malformed");
  EXPECT_EQ(verdict("stage %2 root phase=0 memory loops=[0:0] grid=1 vector=1 storage=[0 1]"), "malformed");
  EXPECT_EQ(verdict("stage %2 root phase=0 memory loops=[0:2 0:4] grid=1 vector=1 storage=[0 1]"),
            "malformed");
  EXPECT_EQ(verdict("stage %2 root phase=0 memory loops=[] grid=1 vector=1 storage=[0 1]"), "malformed");
  EXPECT_EQ(verdict("stage %2 root phase=0 memory loops=[] grid=0 vector=3 storage=[0 1]"), "malformed");
  EXPECT_EQ(verdict("stage %2 root phase=0 memory loops=[] grid=0 vector=1 storage=[0 0]"), "malformed");
  EXPECT_EQ(verdict("stage %2 root phase=0 memory loops=[0:4] grid=1 vector=1 storage=[0 1]\n"
                    "stage %1 in=0 depth=0 scratch loops=[] vector=1 storage=[0 1]"),
            "malformed");
  EXPECT_EQ(verdict("stage %1 root phase=0 memory loops=[] grid=0 vector=1 storage=[0 1]"), "missing-stage");
}

TEST_F(TreeTest, RefusesRingsThatWouldLoseElements) {
  windowed();
  // Along a grid loop, along the wrong axis, and with a loop of the body inside.
  EXPECT_EQ(verdict("stage %2 root phase=0 memory loops=[1:16 0:1] grid=2 vector=1 storage=[0 1]\n"
                    "stage %1 in=0 depth=2 scratch slide=0 loops=[] vector=1 storage=[0 1]"),
            "slide");
  EXPECT_EQ(verdict("stage %2 root phase=0 memory loops=[1:16 0:1] grid=0 vector=1 storage=[0 1]\n"
                    "stage %1 in=0 depth=2 scratch slide=1 loops=[] vector=1 storage=[0 1]"),
            "slide");
  EXPECT_EQ(verdict("stage %2 root phase=0 memory loops=[0:1] grid=0 vector=1 storage=[0 1]\n"
                    "stage %1 in=0 depth=1 scratch slide=0 loops=[] vector=1 storage=[0 1]"),
            "slide");
}

TEST_F(TreeTest, RefusesOutputsStoredTwice) {
  rows();
  const std::string sums = "stage %2 in=0 depth=1 scratch loops=[] vector=1 storage=[0]\n";
  const std::string output = "stage %1 in=0 depth=1 memory loops=[] vector=1 storage=[0 1]\n";
  EXPECT_EQ(
      verdict("stage %5 root phase=0 memory loops=[0:1] grid=1 vector=1 storage=[0 1]\n" + sums + output),
      "");
  EXPECT_EQ(
      verdict("stage %5 root phase=0 memory loops=[1:4] grid=1 vector=1 storage=[0 1]\n" + sums + output),
      "not-owned");
}

TEST_F(TreeTest, RefusesValuesThatAreNotThere) {
  rows();
  const std::string root = "stage %5 root phase=0 memory loops=[0:1] grid=1 vector=1 storage=[0 1]\n";
  EXPECT_EQ(verdict(root + "stage %2 in=0 depth=1 scratch loops=[] vector=1 storage=[0]\n"
                           "stage %1 root phase=0 memory loops=[] grid=0 vector=1 storage=[0 1]"),
            "phase");
  EXPECT_EQ(verdict(root + "stage %2 in=0 depth=1 registers loops=[] vector=-1 storage=[0]\n"
                           "stage %1 in=1 depth=0 memory loops=[] vector=1 storage=[0 1]"),
            "not-visible");
}

TEST_F(TreeTest, RefusesCodeThatIsTooLong) {
  windowed();
  EXPECT_EQ(verdict("stage %2 root phase=0 memory loops=[0:12 1:10] grid=0 vector=-1 storage=[0 1]"),
            "code-size");
}

TEST(ScheduleText, ReadsBackWhatItPrints) {
  const std::string text =
      "order block=1024 lanes=8\n"
      "stage %9 root phase=1 memory loops=[0:64 1:16] grid=1 vector=1 storage=[0 1]\n"
      "stage %7 in=0 depth=2 scratch slide=1 loops=[] vector=-1 storage=[1 0]\n"
      "stage %6 in=0 depth=1 scratch recompute loops=[0:3] vector=2 storage=[]\n"
      "stage %5 in=0 depth=2 registers loops=[] vector=0 storage=[0]\n";
  EXPECT_EQ(to_text(parse_schedule(text)), text);
  EXPECT_TRUE(parse_schedule(text) == parse_schedule("# a comment\n\n" + text));
}

TEST(ScheduleText, RefusesOtherTexts) {
  for (const char* text : {"stage", "stage %1 root phase=0 cache loops=[] grid=0 vector=0 storage=[]",
                           "stage %1 root phase=0 memory loops=[0] grid=0 vector=0 storage=[]",
                           "stage %1 in=0 memory loops=[] vector=0 storage=[]", "order block=512",
                           "stage %1 root phase=0 memory loops=[] grid=0 vector=0 storage=[] more"})
    EXPECT_THROW(parse_schedule(text), UserError) << text;
}

}  // namespace
}  // namespace fusewise::schedule

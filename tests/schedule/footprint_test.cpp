// The extents of the boxes that a tile of the root needs.
#include "schedule/footprint.h"

#include <gtest/gtest.h>

#include "graph/builder.h"

namespace fusewise::schedule {
namespace {

using graph::GraphBuilder;

class FootprintTest : public testing::Test {
 protected:
  graph::Graph graph_;
  GraphBuilder builder_{graph_};

  // What `node` needs for a root tile, the root being the last node.
  Extents needed(Value node, const Extents& tile) {
    graph::Region region;
    for (NodeId n = 0; n < graph_.size(); ++n)
      if (graph::has_form(graph_, n)) region.nodes.push_back(n);
    const NodeId root = graph_.size() - 1;
    region.outputs = {{root, 0}};
    const RegionForms forms = region_forms(graph_, region);
    const std::vector<NodeId> cone(region.nodes.rbegin(), region.nodes.rend());
    return needed_extents(forms, cone, tile, {}).at(node.node);
  }
};

TEST_F(FootprintTest, NeighboursAddToTheirSpan) {
  const Value e = builder_.map(ScalarOp::exp, {builder_.input("x", {DataType::float32, {20, 8}})});
  const Value first = builder_.slice(e, {0, 0}, {1, 1}, {18, 8});
  const Value third = builder_.slice(e, {2, 0}, {1, 1}, {18, 8});
  builder_.output(builder_.map(ScalarOp::sub, {third, first}), "y");
  EXPECT_EQ(needed(e, {1, 4}), (Extents{3, 4}));
  EXPECT_EQ(needed(e, {5, 8}), (Extents{7, 8}));
  EXPECT_EQ(needed(e, {18, 8}), (Extents{20, 8}));
}

TEST_F(FootprintTest, PiecesFarApartNeedWhatLiesBetween) {
  const Value e = builder_.map(ScalarOp::exp, {builder_.input("x", {DataType::float32, {20, 8}})});
  const Value tail = builder_.slice(e, {3, 0}, {1, 1}, {17, 8});
  const Value head = builder_.slice(e, {0, 0}, {1, 1}, {3, 8});
  builder_.output(builder_.concat({tail, head}, 0), "y");
  EXPECT_EQ(needed(e, {1, 1}), (Extents{20, 1}));
}

TEST_F(FootprintTest, PlacesThatNothingRelatesNeedAll) {
  const Value e = builder_.map(ScalarOp::exp, {builder_.input("x", {DataType::float32, {9, 9}})});
  builder_.output(builder_.map(ScalarOp::add, {e, builder_.transpose(e, {1, 0})}), "y");
  EXPECT_EQ(needed(e, {1, 1}), (Extents{9, 9}));
}

TEST_F(FootprintTest, EqualPlacesThroughAReshapeStayOnePoint) {
  const Value e = builder_.map(ScalarOp::exp, {builder_.input("x", {DataType::float32, {6, 8}})});
  const Value flat = builder_.reshape(e, {48});
  builder_.output(builder_.map(ScalarOp::add, {builder_.map(ScalarOp::neg, {flat}), flat}), "y");
  EXPECT_EQ(needed(e, {1}), (Extents{1, 1}));
  EXPECT_EQ(needed(e, {8}), (Extents{6, 8}));
}

}  // namespace
}  // namespace fusewise::schedule

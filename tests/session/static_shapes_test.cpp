#include "session/static_shapes.h"

#include <gtest/gtest.h>

#include "graph/builder.h"
#include "graph/interpreter/interpreter.h"
#include "graph/text.h"
#include "graph/verifier.h"

namespace fusewise::session {
namespace {

TEST(StaticShapes, NoChosenSymbolIsLeftAndTheResultsAreTheSame) {
  graph::Graph graph;
  graph::GraphBuilder builder(graph);
  const Dim batch = Dim::symbol("batch"), width = Dim::symbol("width");
  const auto x = builder.input("x", {DataType::float32, {batch, width, 4}});
  const auto flat = builder.reshape(x, {batch, width * Dim(4)});
  graph.outputs.push_back({builder.map(ScalarOp::add, {flat, flat}), "y"});
  const graph::Graph baked = with_static_shapes(graph, {{"batch", 2}, {"width", 3}});
  graph::verify(baked);
  EXPECT_EQ(graph::print(baked).find("batch"), std::string::npos) << graph::print(baked);
  EXPECT_EQ(graph::print(baked).find("width"), std::string::npos);
  const graph::Tensor input(DataType::float32, {2, 3, 4});
  const auto expected = graph::interpret(graph, std::vector{input}), actual = graph::interpret(baked, std::vector{input});
  EXPECT_EQ(actual[0].shape, expected[0].shape);
  EXPECT_THROW(graph::interpret(baked, std::vector{graph::Tensor(DataType::float32, {1, 3, 4})}), UserError);
  // A symbol that nobody chose stays.
  EXPECT_NE(graph::print(with_static_shapes(graph, {{"batch", 2}})).find("width"), std::string::npos);
}

}  // namespace
}  // namespace fusewise::session

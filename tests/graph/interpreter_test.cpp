// Binding of symbols, lifetimes and options of the interpreter, and tensors.
#include "interpreter_testing.h"

#include <gmock/gmock.h>

#include "graph/interpreter/bind.h"

namespace fusewise::graph::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Property;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "nothing";
}

Tensor zeros(DataType type, std::vector<int64_t> shape) {
  Tensor result(type, std::move(shape));
  std::fill(result.mutable_bytes().begin(), result.mutable_bytes().end(), std::byte{0});
  return result;
}

TEST(Tensors, CopiesShareUntilWritten) {
  Tensor a = Tensor::from<float>(DataType::float32, {2}, {1, 2});
  Tensor b = a;
  EXPECT_EQ(a.bytes().data(), b.bytes().data());
  b.mutable_as<float>()[0] = 5;
  EXPECT_EQ(a.as<float>()[0], 1);
  EXPECT_EQ(b.as<float>()[0], 5);
  const float outside[] = {7, 8};
  Tensor c = Tensor::borrow(DataType::float32, {2}, std::as_bytes(std::span(outside)));
  c.mutable_as<float>()[1] = 9;
  EXPECT_EQ(outside[1], 8);
}

TEST(Tensors, SizesAreChecked) {
  EXPECT_THAT(error_of([] { Tensor::from<float>(DataType::float32, {3}, {1, 2}); }),
              HasSubstr("needs 12 bytes of data, not 8"));
  EXPECT_THAT(error_of([] { Tensor(DataType::float32, {INT64_MAX, 3}); }), HasSubstr("too large"));
  EXPECT_THAT(error_of([] { Tensor(DataType::float32, {2, -1}); }), HasSubstr("negative"));
  EXPECT_EQ(Tensor(DataType::float32, {INT64_MAX, 3, 0}).count(), 0);
  EXPECT_EQ(Tensor(DataType::int4, {3}).bytes().size(), 2u);
  EXPECT_THROW(Tensor(DataType::string, {1}), UnsupportedError);
  EXPECT_THROW(zeros(DataType::float32, {1}).as<double>(), InternalError);
}

class Binding : public ::testing::Test {
 protected:
  Graph graph;
  GraphBuilder b{graph};
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
};

TEST_F(Binding, SymbolsAndExpressions) {
  b.input("a", {DataType::float32, {2 * m + 1, n}});
  b.input("b", {DataType::int64, {n * m, 3}});
  const auto bind = [&](int64_t rows, int64_t columns, int64_t both) {
    return bind_symbols(
        graph, std::vector{zeros(DataType::float32, {rows, columns}), zeros(DataType::int64, {both, 3})});
  };
  EXPECT_EQ(bind(7, 5, 15), (SymbolValues{{"n", 5}, {"m", 3}}));
  EXPECT_THAT(error_of([&] { bind(7, 5, 14); }),
              AllOf(HasSubstr("input 'b'"), HasSubstr("dimension 0 is 14 and should be 15"),
                    HasSubstr("m is 3 by dimension 0 of input 'a'")));
  EXPECT_THAT(error_of([&] { bind(8, 5, 14); }), HasSubstr("m"));
}

TEST_F(Binding, DisagreementNamesInputDimensionAndValues) {
  b.input("first", {DataType::float32, {n}});
  b.input("second", {DataType::float32, {4, n}});
  const auto bind = [&](Tensor x, Tensor y) { bind_symbols(graph, std::vector{std::move(x), std::move(y)}); };
  EXPECT_THAT(
      error_of([&] { bind(zeros(DataType::float32, {3}), zeros(DataType::float32, {4, 2})); }),
      AllOf(HasSubstr("input 'second': dimension 1 is 2 and should be 3"), HasSubstr("of input 'first'")));
  EXPECT_THAT(error_of([&] { bind(zeros(DataType::float32, {3}), zeros(DataType::float32, {5, 3})); }),
              HasSubstr("input 'second': dimension 0 is 5 and should be 4"));
  EXPECT_THAT(error_of([&] { bind(zeros(DataType::float32, {3, 1}), zeros(DataType::float32, {4, 3})); }),
              HasSubstr("input 'first' has shape [3, 1] and the model needs rank 1"));
  EXPECT_THAT(error_of([&] { bind(zeros(DataType::float64, {3}), zeros(DataType::float32, {4, 3})); }),
              HasSubstr("input 'first' is float64 and the model needs float32"));
  EXPECT_THAT(error_of([&] { bind_symbols(graph, {}); }), HasSubstr("2 inputs and 0 are given"));
}

TEST_F(Binding, RequirementsOfNodesAreChecked) {
  const Value x = b.input("x", {DataType::float32, {n}}), y = b.input("y", {DataType::float32, {m}});
  b.output(b.dot(x, y, {{}, {}, {0}, {0}}), "z");
  EXPECT_THAT(error_of([&] {
                interpret(graph, std::vector{zeros(DataType::float32, {3}), zeros(DataType::float32, {2})});
              }),
              AllOf(HasSubstr("dot"), HasSubstr("break")));
  EXPECT_EQ(interpret(graph, std::vector{zeros(DataType::float32, {3}), zeros(DataType::float32, {3})})[0]
                .as<float>()[0],
            0);
}

TEST(Interpreter, ReturnsOutputsIntermediatesAndSkipsTheRest) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", {DataType::float32, {2}});
  const Value twice = b.map(ScalarOp::add, {x, x});
  const Value unused = b.map(ScalarOp::sqrt, {twice});
  const Value squared = b.map(ScalarOp::mul, {twice, twice});
  b.output(squared, "squared");
  b.output(x, "x");
  b.output(squared, "again");
  InterpretOptions options;
  options.also = {twice};
  std::vector<NodeId> seen;
  options.progress = [&](NodeId node, size_t) { seen.push_back(node); };
  const std::vector<Tensor> y =
      interpret(graph, std::vector{Tensor::from<float>(DataType::float32, {2}, {1, 3})}, options);
  ASSERT_EQ(y.size(), 4u);
  EXPECT_THAT(y[0].as<float>(), ::testing::ElementsAre(4, 36));
  EXPECT_THAT(y[1].as<float>(), ::testing::ElementsAre(1, 3));
  EXPECT_THAT(y[2].as<float>(), ::testing::ElementsAre(4, 36));
  EXPECT_THAT(y[3].as<float>(), ::testing::ElementsAre(2, 6));
  EXPECT_THAT(seen, ::testing::Not(::testing::Contains(unused.node)));
}

TEST(Interpreter, ErrorsNameTheModelNode) {
  Graph graph;
  GraphBuilder b(graph);
  graph.model_nodes.push_back({"encoder/reshape", "Reshape", "out"});
  b.set_source(0);
  const Value x = b.input("x", {DataType::float32, {Dim::symbol("n")}});
  b.output(b.reshape(x, {Dim::symbol("n") - 4, 2}), "y");
  EXPECT_THAT(error_of([&] { interpret(graph, std::vector{zeros(DataType::float32, {9})}); }),
              HasSubstr("encoder/reshape"));
}

// Each tensor of this chain is 4 MB, and all 300 would be 1.2 GB.
TEST(Interpreter, LongChainsFreeWhatIsUsed) {
  Graph graph;
  GraphBuilder b(graph);
  Value x = b.input("x", {DataType::float32, {1 << 20}});
  for (int i = 0; i < 300; ++i) x = b.map(ScalarOp::neg, {x});
  b.output(b.reduce(x, Combine::sum, {0}), "y");
  const Tensor ones = Tensor::from<float>(DataType::float32, {1 << 20}, std::vector<float>(1 << 20, 1.0f));
  EXPECT_EQ(interpret(graph, std::vector{ones})[0].as<float>()[0], 1 << 20);
}

}  // namespace
}  // namespace fusewise::graph::testing

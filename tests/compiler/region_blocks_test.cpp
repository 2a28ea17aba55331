// Known compositions through the tile chooser and the general lowering, to the bit.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "fusion/tiles/choose_schedule.h"
#include "graph/builder.h"
#include "known_blocks.h"
#include "region_runner.h"

namespace fusewise::test {
namespace {

using graph::Graph;
using graph::GraphBuilder;
using graph::Tensor;
using graph::Value;

Tensor random_tensor(std::vector<int64_t> shape, unsigned seed) {
  Tensor t(DataType::float32, std::move(shape));
  std::mt19937 generator(seed);
  for (float& x : t.mutable_as<float>())
    x = static_cast<float>(static_cast<int>(generator() % 2001) - 1000) / 256.0f;
  return t;
}

void expect_right(const Graph& graph, const std::vector<Tensor>& inputs,
                  const schedule::Layouts& layouts = {}) {
  const graph::Region region = whole_region(graph);
  const schedule::RegionForms forms = schedule::region_forms(graph, region);
  for (const char* target : {"x86-64-v3", "x86-64-v4"}) {
    const machine::Machine machine = machine::host_machine(target);
    fusion::TileOptions options;
    options.threads = 2;
    const schedule::Schedule schedule = fusion::choose_schedule(forms, layouts, machine, options);
    RegionRun how;
    how.target = target;
    how.vector_bits = machine.vector_bits;
    how.compile = std::string(target) == "x86-64-v3" || machine::host_machine().vector_bits == 512;
    EXPECT_EQ(check_region(graph, region, schedule, layouts, inputs, how), "") << target;
  }
}

TEST(RegionBlocks, MatMulBiasRelu) {
  for (const auto& [m, k, n] :
       {std::array<int64_t, 3>{5, 7, 11}, {1, 1, 1}, {17, 33, 65}, {3, 0, 4}, {64, 16, 100}}) {
    Graph graph;
    GraphBuilder b(graph);
    const Value x = b.input("x", {DataType::float32, {m, k}}), w = b.input("w", {DataType::float32, {k, n}});
    const Value bias = b.input("bias", {DataType::float32, {n}});
    Value y = b.map_broadcast(ScalarOp::add, {b.matmul(x, w), bias});
    y = b.map_broadcast(ScalarOp::max, {y, b.scalar(DataType::float32, 0.0)});
    b.output(y, "y");
    expect_right(graph, {random_tensor({m, k}, 1), random_tensor({k, n}, 2), random_tensor({n}, 3)});
  }
}

TEST(RegionBlocks, Softmax) {
  for (int64_t n : {1, 3, 16, 37, 600, 1700}) {
    Graph graph;
    GraphBuilder b(graph);
    const Value x = b.input("x", {DataType::float32, {4, n}});
    b.output(softmax(b, x), "y");
    expect_right(graph, {random_tensor({4, n}, 1)});
  }
}

TEST(RegionBlocks, SymbolicSoftmax) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", {DataType::float32, {Dim::symbol("m"), Dim::symbol("n")}});
  b.output(softmax(b, x), "y");
  for (int64_t n : {1, 3, 16, 37, 600, 1700}) expect_right(graph, {random_tensor({5, n}, 1)});
}

TEST(RegionBlocks, LayerNormWithResidualOutput) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", {DataType::float32, {2, 5, 48}}),
              r = b.input("r", {DataType::float32, {2, 5, 48}});
  const Value t = b.map(ScalarOp::add, {x, r});
  const Value n = b.scalar(DataType::float32, 48.0);
  const Value mean = b.map_broadcast(ScalarOp::div, {b.reduce(t, Combine::sum, {2}, true), n});
  const Value d = b.map_broadcast(ScalarOp::sub, {t, mean});
  const Value variance =
      b.map_broadcast(ScalarOp::div, {b.reduce(b.map(ScalarOp::mul, {d, d}), Combine::sum, {2}, true), n});
  const Value eps = b.scalar(DataType::float32, 1e-5);
  const Value y = b.map_broadcast(
      ScalarOp::div, {d, b.map(ScalarOp::sqrt, {b.map_broadcast(ScalarOp::add, {variance, eps})})});
  b.output(y, "y");
  b.output(t, "t");
  expect_right(graph, {random_tensor({2, 5, 48}, 1), random_tensor({2, 5, 48}, 2)});
}

TEST(RegionBlocks, Attention) {
  for (int64_t s : {1, 5, 40}) {
    Graph graph;
    GraphBuilder b(graph);
    const Shape shape = {1, 2, Dim::symbol("s"), 24};
    const Value q = b.input("q", {DataType::float32, shape}), k = b.input("k", {DataType::float32, shape});
    const Value v = b.input("v", {DataType::float32, shape});
    Value scores = b.matmul(q, b.transpose(k, {0, 1, 3, 2}));
    scores = b.map_broadcast(ScalarOp::mul, {scores, b.scalar(DataType::float32, 0.125)});
    b.output(b.matmul(softmax(b, scores), v), "o");
    expect_right(graph, {random_tensor({1, 2, s, 24}, 1), random_tensor({1, 2, s, 24}, 2),
                         random_tensor({1, 2, s, 24}, 3)});
  }
}

Value convolution(GraphBuilder& b, Value x, Value w, int64_t stride, int64_t pad, int64_t groups) {
  graph::ConvolutionAttributes a;
  a.strides = {stride, stride};
  a.dilations = {1, 1};
  a.pad_low = a.pad_high = {pad, pad};
  a.groups = groups;
  return b.convolution(x, w, a);
}

TEST(RegionBlocks, ConvolutionAddRelu) {
  for (int64_t size : {1, 7, 20})
    for (int64_t stride : {1, 2}) {
      Graph graph;
      GraphBuilder b(graph);
      const Value x = b.input("x", {DataType::float32, {1, 3, size, size}}),
                  w = b.input("w", {DataType::float32, {20, 3, 3, 3}});
      const Value c = convolution(b, x, w, stride, 1, 1);
      const int64_t out = (size + 2 - 3) / stride + 1;
      const Value r = b.input("r", {DataType::float32, {1, 20, out, out}});
      const Value y =
          b.map_broadcast(ScalarOp::max, {b.map(ScalarOp::add, {c, r}), b.scalar(DataType::float32, 0.0)});
      b.output(y, "y");
      const std::vector<Tensor> inputs = {random_tensor({1, 3, size, size}, 1),
                                          random_tensor({20, 3, 3, 3}, 2),
                                          random_tensor({1, 20, out, out}, 3)};
      expect_right(graph, inputs);
      schedule::Layouts layouts;
      layouts[x] = layouts[r] = layouts[y] = schedule::Layout{{0, 2, 3, 1}, {}};
      layouts[w] = schedule::Layout{{0, 2, 3, 1}, {{0, 16}}};
      expect_right(graph, inputs, layouts);
    }
}

// Groups of few channels: the register tile lies within a group, whatever divides its width.
TEST(RegionBlocks, GroupedConvolution) {
  for (const auto& [groups, in, out] : {std::array<int64_t, 3>{5, 8, 8}, {3, 4, 4}, {2, 3, 24}, {2, 2, 68}}) {
    Graph graph;
    GraphBuilder b(graph);
    const std::vector<int64_t> shape = {1, groups * in, 4, 17}, kernel = {groups * out, in, 3, 3};
    const Value x = b.input("x", {DataType::float32, {1, groups * in, 4, 17}}),
                w = b.input("w", {DataType::float32, {groups * out, in, 3, 3}});
    const Value c = convolution(b, x, w, 1, 1, groups);
    const Value y = b.map_broadcast(ScalarOp::max, {c, b.scalar(DataType::float32, 0.0)});
    b.output(y, "y");
    const std::vector<Tensor> inputs = {random_tensor(shape, 1), random_tensor(kernel, 2)};
    expect_right(graph, inputs);
    schedule::Layouts layouts;
    layouts[x] = layouts[y] = schedule::Layout{{0, 2, 3, 1}, {}};
    const machine::Machine machine = machine::host_machine("x86-64-v3");
    layouts[w] = schedule::Layout{
        {0, 2, 3, 1},
        {{0, fusion::contraction_tile(machine, DataType::float32, 17, groups * out, 1, 0, out).columns}}};
    expect_right(graph, inputs, layouts);
  }
}

// Rows of one to several register tiles whose windows reach into the padding on either side, absent taps included
// that would turn infinite weights into NaN.
TEST(RegionBlocks, TilesAtTheBorder) {
  for (int64_t width : {1, 2, 13, 15, 28, 29})
    for (const auto& [taps, pad, dilation] :
         {std::array<int64_t, 3>{3, 1, 1}, {5, 2, 1}, {7, 3, 1}, {3, 4, 4}, {2, 1, 1}}) {
      Graph graph;
      GraphBuilder b(graph);
      const Value x = b.input("x", {DataType::float32, {1, 2, 3, width}}),
                  w = b.input("w", {DataType::float32, {16, 2, 1, taps}});
      graph::ConvolutionAttributes a;
      a.strides = {1, 1};
      a.dilations = {1, dilation};
      a.pad_low = a.pad_high = {0, pad};
      const Value c = b.convolution(x, w, a);
      const Value y = b.map_broadcast(ScalarOp::max, {c, b.scalar(DataType::float32, 0.0)});
      b.output(y, "y");
      std::vector<Tensor> inputs = {random_tensor({1, 2, 3, width}, 1), random_tensor({16, 2, 1, taps}, 2)};
      inputs[1].mutable_as<float>()[0] = std::numeric_limits<float>::infinity();
      expect_right(graph, inputs);
      schedule::Layouts layouts;
      layouts[x] = layouts[y] = schedule::Layout{{0, 2, 3, 1}, {}};
      layouts[w] = schedule::Layout{{0, 2, 3, 1}, {{0, 16}}};
      expect_right(graph, inputs, layouts);
    }
}

// Many gathered rows side by side, and pieces along the vectors: each part of a loop reads one piece.
TEST(RegionBlocks, ConcatOfGathers) {
  for (int axis : {1, 2}) {
    Graph graph;
    GraphBuilder b(graph);
    const Value index = b.input("i", {DataType::int64, {5, 7}});
    std::vector<Value> parts;
    std::vector<Tensor> inputs;
    Tensor indices(DataType::int64, {5, 7});
    for (int64_t i = 0; i < 35; ++i) indices.mutable_as<int64_t>()[static_cast<size_t>(i)] = i * 5 % 11 - 3;
    inputs.push_back(indices);
    for (int64_t k = 0; k < 7; ++k) {
      const int64_t width = axis == 1 ? 20 : 9 + 4 * k;
      const Value table = b.input("t" + std::to_string(k), {DataType::float32, {11, width}});
      inputs.push_back(random_tensor({11, width}, static_cast<unsigned>(k)));
      const Value column = b.reshape(b.slice(index, {0, k}, {1, 1}, {5, 1}), {5, 1});
      parts.push_back(b.gather(table, column, 0));
    }
    b.output(b.concat(parts, axis), "y");
    expect_right(graph, inputs);
  }
}

// Statistics of rows below a rotation: neighbours in the result are far apart where the rows come from.
TEST(RegionBlocks, NormalizedThenRolled) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", {DataType::float32, {24, 37}});
  Value y = b.map_broadcast(ScalarOp::sub, {x, b.reduce(x, Combine::sum, {1}, true)});
  y = b.map_broadcast(ScalarOp::div, {y, b.reduce(b.map(ScalarOp::abs, {y}), Combine::sum, {1}, true)});
  b.output(b.concat({b.slice(y, {5, 0}, {1, 1}, {19, 37}), b.slice(y, {0, 0}, {1, 1}, {5, 37})}, 0), "y");
  expect_right(graph, {random_tensor({24, 37}, 1)});
}

TEST(RegionBlocks, InvertedResidual) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", {DataType::float32, {1, 8, 9, 11}});
  const Value w1 = b.input("w1", {DataType::float32, {24, 8, 1, 1}}),
              w2 = b.input("w2", {DataType::float32, {24, 1, 3, 3}});
  const Value w3 = b.input("w3", {DataType::float32, {8, 24, 1, 1}});
  const auto relu6 = [&](Value v) {
    return b.map_broadcast(ScalarOp::min,
                           {b.map_broadcast(ScalarOp::max, {v, b.scalar(DataType::float32, 0.0)}),
                            b.scalar(DataType::float32, 6.0)});
  };
  const Value e = relu6(convolution(b, x, w1, 1, 0, 1));
  const Value d = relu6(convolution(b, e, w2, 1, 1, 24));
  const Value y = b.map(ScalarOp::add, {convolution(b, d, w3, 1, 0, 1), x});
  b.output(y, "y");
  const std::vector<Tensor> inputs = {random_tensor({1, 8, 9, 11}, 1), random_tensor({24, 8, 1, 1}, 2),
                                      random_tensor({24, 1, 3, 3}, 3), random_tensor({8, 24, 1, 1}, 4)};
  expect_right(graph, inputs);
  schedule::Layouts layouts;
  layouts[x] = layouts[y] = schedule::Layout{{0, 2, 3, 1}, {}};
  layouts[w1] = layouts[w3] = schedule::Layout{{0, 2, 3, 1}, {{0, 16}}};
  layouts[w2] = schedule::Layout{{1, 2, 3, 0}, {}};
  expect_right(graph, inputs, layouts);
}

}  // namespace
}  // namespace fusewise::test

// Loops and branches, compiled, against the interpreter: bit for bit, for every length, fusion and thread count.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "e2e/zoo_model.h"
#include "export/onnx_builder.h"
#include "graph/interpreter/interpreter.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "import/import.h"
#include "machine/machine.h"
#include "program/program_file.h"
#include "runtime/executable.h"

namespace fusewise::test {
namespace {

using fusion::FusionMode;
using graph::Graph;
using graph::Tensor;
using Sizes = std::map<std::string, int64_t>;

Tensor random_tensor(std::mt19937& random, DataType type, const std::vector<int64_t>& shape) {
  Tensor tensor(type, shape);
  std::normal_distribution<double> normal;
  const int bytes = bytes_of(type);
  for (int64_t i = 0; i < tensor.count(); ++i)
    store_scalar(
        tensor.mutable_bytes().data() + i * bytes,
        convert({DataType::float64, is_float(type) ? normal(random) : std::abs(4 * normal(random)), 0},
                type));
  return tensor;
}

std::vector<Tensor> inputs_of(const Graph& graph, const Sizes& sizes, unsigned seed) {
  std::mt19937 random(seed);
  const SymbolValues symbols(sizes.begin(), sizes.end());
  std::vector<Tensor> inputs;
  for (const graph::GraphInput& input : graph.inputs) {
    std::vector<int64_t> shape;
    for (const Dim& d : graph.type({input.node, 0}).shape) shape.push_back(d.evaluate(symbols));
    inputs.push_back(random_tensor(random, graph.type({input.node, 0}).element, shape));
  }
  return inputs;
}

std::vector<Tensor> run(const runtime::Executable& executable, const std::vector<Tensor>& inputs) {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<const void*> from;
  for (const Tensor& input : inputs) {
    shapes.push_back(input.shape);
    from.push_back(input.bytes().data());
  }
  const auto binding = executable.bind(shapes);
  std::vector<Tensor> outputs;
  std::vector<void*> to;
  for (size_t i = 0; i < binding->output_shapes.size(); ++i) {
    outputs.emplace_back(executable.program().outputs[i].type, binding->output_shapes[i]);
    to.push_back(outputs.back().mutable_bytes().data());
  }
  const runtime::Status status = executable.run(*binding, from, to);
  EXPECT_TRUE(status.ok()) << status.message;
  return outputs;
}

// Strict, whatever is fused, by one thread or two; again from a file; with every buffer at the edge of a page.
void expect_exact(const Graph& graph, const std::vector<Sizes>& all_sizes) {
  graph::verify(graph);
  for (const FusionMode fusion : {FusionMode::on, FusionMode::operators, FusionMode::off}) {
    compiler::CompileOptions options;
    options.numerics = compiler::Numerics::strict;
    options.fusion = fusion;
    options.machine = machine::host_machine();
    options.threads = fusion == FusionMode::on ? 2 : 1;
    program::Program program = compiler::compile(graph, options).program;
    const TemporaryFolder folder;
    program::save(program, folder.path() / "program", {});
    program = program::load(folder.path() / "program", {});
    runtime::ExecutableOptions plain, checked;
    plain.threads = options.threads;
    plain.poison = true;
    checked.threads = 1;
    checked.guard_pages = runtime::GuardPages::after;
    const runtime::Executable first(program, plain), second(program, checked);
    unsigned seed = 1;
    for (const Sizes& sizes : all_sizes) {
      const std::vector<Tensor> inputs = inputs_of(graph, sizes, seed++);
      const std::vector<Tensor> expected = graph::interpret(graph, inputs);
      EXPECT_TRUE(same_bits(run(first, inputs), expected)) << testing::PrintToString(sizes);
      EXPECT_TRUE(same_bits(run(first, inputs), expected)) << "again, " << testing::PrintToString(sizes);
      EXPECT_TRUE(same_bits(run(second, inputs), expected)) << "guarded, " << testing::PrintToString(sizes);
    }
  }
}

const std::vector<Sizes> lengths = {{{"n", 0}}, {{"n", 1}}, {{"n", 2}}, {{"n", 7}}};

TEST(Loops, CarryScanAndStackBothWays) {
  // Swapped states, one of them stacked as it is and one backwards; a slice handed on; an outer value stacked.
  expect_exact(graph::parse(R"(
%0 = input index=0 name="x" : float32[n, 3]
%1 = input index=1 name="a" : float32[3]
%2 = input index=2 name="b" : float32[3]
%3 = loop %1, %2, %0, %0, %2 trips=[n] counted=0 conditional=0 carried=2 scanned=[1, -1] stacked=[1, -1, 1, 1, -1] : float32[3], float32[3], float32[n, 3], float32[n, 3], float32[n, 3], float32[n, 3], float32[n]
body "step" {
  %0 = input index=0 name="i" : int64[]
  %1 = input index=1 name="a" : float32[3]
  %2 = input index=2 name="b" : float32[3]
  %3 = input index=3 name="forwards" : float32[3]
  %4 = input index=4 name="backwards" : float32[3]
  %5 = input index=5 name="outer" : float32[3]
  %6 = map %1, %3 op=add : float32[3]
  %7 = map %6, %5 op=mul : float32[3]
  %8 = map %0 op=cast : float32[]
  %9 = map %7, %4 op=sub : float32[3]
  output %2 "a"
  output %7 "b"
  output %7 "b"
  output %9 "c"
  output %3 "x"
  output %5 "outer"
  output %8 "i"
}
%4 = result %3 : float32[3]
%5 = result %3.1 : float32[3]
%6 = result %3.2 : float32[n, 3]
%7 = result %3.3 : float32[n, 3]
%8 = result %3.4 : float32[n, 3]
%9 = result %3.5 : float32[n, 3]
%10 = result %3.6 : float32[n]
%11 = map %7, %8 op=add : float32[n, 3]
output %4 "a"
output %5 "b"
output %6 "bs"
output %11 "cs"
output %9 "outer"
output %10 "i"
output %4 "again"
)"),
               lengths);
}

TEST(Loops, WithACountAndAConditionOfData) {
  // Runs while the sum stays small, at most as often as the count says; a branch inside, with a loop in one of its bodies.
  expect_exact(graph::parse(R"(
constant 0 "limit" : float32[] = 30
%0 = input index=0 name="count" : int64[]
%1 = input index=1 name="x" : float32[n]
%2 = input index=2 name="start" : boolean[]
%3 = constant data=0 : float32[]
%4 = loop %0, %2, %1, %3 trips=[] counted=1 conditional=1 carried=1 scanned=[] stacked=[] : float32[n]
body "while" {
  constant 0 "two" : int64[] = 2
  constant 1 "zero" : int64[] = 0
  %0 = input index=0 name="i" : int64[]
  %1 = input index=1 name="x" : float32[n]
  %2 = input index=2 name="limit" : float32[]
  %3 = constant data=0 : int64[]
  %4 = constant data=1 : int64[]
  %5 = map %0, %3 op=remainder : int64[]
  %6 = map %5, %4 op=equal : boolean[]
  %7 = branch %6, %1, %0 : float32[n]
  body "then" {
    %0 = input index=0 name="x" : float32[n]
    %1 = input index=1 name="i" : int64[]
    %2 = map %1 op=cast : float32[]
    %3 = broadcast %2 dims=[] : float32[n]
    %4 = map %0, %3 op=add : float32[n]
    output %4 "y"
  }
  body "else" {
    %0 = input index=0 name="x" : float32[n]
    %1 = input index=1 name="i" : int64[]
    %2 = loop %1, %0 trips=[] counted=1 conditional=0 carried=1 scanned=[] stacked=[] : float32[n]
    body "double" {
      %0 = input index=0 name="j" : int64[]
      %1 = input index=1 name="x" : float32[n]
      %2 = map %1, %1 op=add : float32[n]
      output %2 "y"
    }
    %3 = result %2 : float32[n]
    output %3 "y"
  }
  %8 = result %7 : float32[n]
  %9 = reduce %8 combine=sum axes=[0] : float32[]
  %10 = map %9, %2 op=less : boolean[]
  output %10 "goes on"
  output %8 "x"
}
%5 = result %4 : float32[n]
%6 = map %5 op=neg : float32[n]
output %5 "y"
output %6 "minus y"
)"),
               {{{"n", 0}}, {{"n", 1}}, {{"n", 2}}, {{"n", 7}}, {{"n", 5}}, {{"n", 33}}});
}

TEST(Loops, NestedScans) {
  // The inner loop scans the outer one's slice and stacks into the outer one's stack.
  expect_exact(graph::parse(R"(
%0 = input index=0 name="x" : float32[n, m, 5]
%1 = input index=1 name="s" : float32[5]
%2 = loop %1, %0 trips=[n] counted=0 conditional=0 carried=1 scanned=[-1] stacked=[1] : float32[5], float32[n, m, 5]
body "outer" {
  %0 = input index=0 name="i" : int64[]
  %1 = input index=1 name="s" : float32[5]
  %2 = input index=2 name="x" : float32[m, 5]
  %3 = loop %1, %2 trips=[m] counted=0 conditional=0 carried=1 scanned=[1] stacked=[-1] : float32[5], float32[m, 5]
  body "inner" {
    %0 = input index=0 name="j" : int64[]
    %1 = input index=1 name="s" : float32[5]
    %2 = input index=2 name="x" : float32[5]
    %3 = map %1, %2 op=max : float32[5]
    %4 = map %3, %2 op=add : float32[5]
    %5 = map %4 op=tanh : float32[5]
    output %5 "s"
    output %3 "y"
  }
  %4 = result %3 : float32[5]
  %5 = result %3.1 : float32[m, 5]
  output %4 "s"
  output %5 "y"
}
%3 = result %2 : float32[5]
%4 = result %2.1 : float32[n, m, 5]
output %3 "s"
output %4 "y"
)"),
               {{{"n", 3}, {"m", 4}}, {{"n", 0}, {"m", 4}}, {{"n", 3}, {"m", 0}}, {{"n", 1}, {"m", 1}}});
}

Graph recurrent(const std::string& op, int64_t gates, const OnnxAttributes& attributes, bool with_lengths) {
  constexpr int64_t hidden = 19, width = 6, directions = 2;
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-0.5F, 0.5F);
  const auto weights = [&](int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& v : values) v = uniform(random);
    return values;
  };
  OnnxBuilder model(17);
  model.input("x", DataType::float32, {std::string("n"), std::string("b"), width});
  model.floats("w", {directions, gates * hidden, width}, weights(directions * gates * hidden * width));
  model.floats("r", {directions, gates * hidden, hidden}, weights(directions * gates * hidden * hidden));
  model.floats("bias", {directions, 2 * gates * hidden}, weights(directions * 2 * gates * hidden));
  if (with_lengths) model.input("lengths", DataType::int32, {std::string("b")});
  OnnxAttributes all = attributes;
  all.emplace_back("hidden_size", static_cast<int>(hidden));
  all.emplace_back("direction", "bidirectional");
  const bool has_cell = op == "LSTM";
  std::vector<std::string> outputs = {"y", "y_h"};
  if (has_cell) outputs.emplace_back("y_c");
  model.nodes.push_back(
      {"layer", op, "", {"x", "w", "r", "bias", with_lengths ? "lengths" : ""}, outputs, all});
  for (const std::string& name : outputs) model.output_without_shape(name, DataType::float32);
  auto owner = std::make_shared<const std::string>(model.serialize());
  return import_onnx(std::as_bytes(std::span(*owner)), owner, "");
}

const std::vector<Sizes> steps = {
    {{"n", 0}, {"b", 2}}, {{"n", 1}, {"b", 1}}, {{"n", 2}, {"b", 3}}, {{"n", 7}, {"b", 5}}};

TEST(Recurrent, LstmBothWays) { expect_exact(recurrent("LSTM", 4, {}, false), steps); }
TEST(Recurrent, LstmWithLengths) {
  expect_exact(recurrent("LSTM", 4, {OnnxAttribute("clip", OnnxAttributeValue(0.5F))}, true), steps);
}
TEST(Recurrent, GruBothWays) { expect_exact(recurrent("GRU", 3, {}, false), steps); }
TEST(Recurrent, GruThatResetsLate) {
  expect_exact(recurrent("GRU", 3, {{"linear_before_reset", 1}}, true), steps);
}
TEST(Recurrent, RnnBothWays) { expect_exact(recurrent("RNN", 1, {}, false), steps); }

}  // namespace
}  // namespace fusewise::test

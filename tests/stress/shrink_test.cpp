// The shrinker finds what matters of graphs with a planted fault.
#include <gtest/gtest.h>

#include "graph/interpreter/interpreter.h"
#include "graph/text.h"
#include "stress/graph_case.h"
#include "stress/shrink.h"

namespace fusewise::test {
namespace {

using graph::Graph;

bool has_map(const Graph& graph, ScalarOp op) {
  for (graph::NodeId n = 0; n < graph.size(); ++n)
    if (const auto* a = std::get_if<graph::MapAttributes>(&graph.node(n).attributes); a && a->op == op)
      return true;
  return false;
}

GraphOptions large() {
  GraphOptions options;
  options.least_operations = 15;
  options.most_operations = 25;
  options.most_elements = 300;
  options.most_work = 3000;
  options.control_depth = 0;
  return options;
}

// A compiler that is wrong wherever a value is multiplied: what is left is one product of least size.
TEST(Shrink, KeepsTheNodeThatMatters) {
  int found = 0;
  for (uint64_t seed = 1; found < 6; ++seed) {
    const GraphCase what = random_graph(seed, large());
    if (!has_map(what.graph, ScalarOp::mul)) continue;
    ++found;
    const GraphCase small = shrink(what, [](const GraphCase& c) {
      graph::interpret(c.graph, c.inputs);
      return has_map(c.graph, ScalarOp::mul);
    });
    EXPECT_LE(small.graph.size(), 3U) << graph::print(small.graph);
    EXPECT_EQ(small.graph.outputs.size(), 1U);
    EXPECT_TRUE(small.symbols.empty());
    for (const graph::GraphOutput& o : small.graph.outputs)
      EXPECT_LE(product(small.graph.type(o.value).shape).value(), 2);
  }
}

bool has_map_anywhere(const Graph& graph, ScalarOp op) {
  bool found = has_map(graph, op);
  for (graph::NodeId n = 0; n < graph.size(); ++n)
    for (const auto& body : graph.node(n).bodies) found = found || has_map_anywhere(*body, op);
  return found;
}

constexpr const char* loop_and_branch = R"(=== a loop and a branch
--- graph
graph ""
model 0 "n0" "Op" "t0"
constant 0 "" : uint8[] = 0
%0 = input index=0 name="x1" : float32[n1, 6, n2] from [0]
%1 = input index=1 name="x2" : int64[] from [0]
%2 = input index=2 name="x3" : boolean[] from [0]
%3 = loop %1, %0 trips=[] counted=1 conditional=0 carried=1 scanned=[] stacked=[] : float32[n1, 6, n2] from [0]
body "" {
  model 0 "n0" "Op" "t0"
  constant 0 "" : float32[] = -0.16819789
  %0 = input index=0 name="i" : int64[] from [0]
  %1 = input index=1 name="state" : float32[n1, 6, n2] from [0]
  %2 = constant data=0 : float32[] from [0]
  %3 = broadcast %2 dims=[] : float32[n1, 6, n2] from [0]
  %4 = map %1, %3 op=sub : float32[n1, 6, n2] from [0]
  output %4 "r0"
}
%4 = result %3 : float32[n1, 6, n2] from [0]
%5 = map %4 op=cast : uint8[n1, 6, n2] from [0]
%6 = constant data=0 : uint8[] from [0]
%7 = pad %5, %6 low=[-1, -1, 3] high=[1, 0, 0] : uint8[n1, 5, n2 + 3] from [0]
%8 = branch %2, %7 : uint8[n1, 5, n2 + 3] from [0]
body "" {
  model 0 "n0" "Op" "t0"
  %0 = input index=0 name="captured" : uint8[n1, 5, n2 + 3] from [0]
  %1 = reduce %0 combine=product axes=[0] : uint8[5, n2 + 3] from [0]
  %2 = reshape %1 : uint8[1, 5, n2 + 3] from [0]
  %3 = broadcast %2 dims=[0, 1, 2] : uint8[n1, 5, n2 + 3] from [0]
  %4 = map %0, %3 op=sub : uint8[n1, 5, n2 + 3] from [0]
  output %4 "r0"
}
body "" {
  model 0 "n0" "Op" "t0"
  constant 0 "" : uint8[] = 6
  %0 = input index=0 name="captured" : uint8[n1, 5, n2 + 3] from [0]
  %1 = constant data=0 : uint8[] from [0]
  %2 = broadcast %1 dims=[] : uint8[n1, 5, n2 + 3] from [0]
  %3 = map %0, %2 op=max : uint8[n1, 5, n2 + 3] from [0]
  output %3 "r0"
}
%9 = result %8 : uint8[n1, 5, n2 + 3] from [0]
output %9 "y"
--- inputs
graph ""
constant 0 "" : float32[3, 6, 1] = 1000.0013 1000.00116 1000.00073 999.99817 999.99756 1000.00183 1000.0045 1000.0001 1000.0043 1000.00146 999.9955 999.9962 999.996 1000.0019 999.9975 1000.00354 1000.0046 1000.0009
constant 1 "" : int64[] = 1
constant 2 "" : boolean[] = 1
%0 = constant data=0 : float32[3, 6, 1]
%1 = constant data=1 : int64[]
%2 = constant data=2 : boolean[]
output %0 "x1"
output %1 "x2"
output %2 "x3"
)";

// What matters lies in the body of a loop, or in that of a branch that is taken or not: what runs it goes.
TEST(Shrink, OpensBodies) {
  const GraphCase what = graph_of(parse_case_file(loop_and_branch, "here").cases.at(0));
  for (const ScalarOp op : {ScalarOp::sub, ScalarOp::max}) {
    const GraphCase small = shrink(what, [&](const GraphCase& c) {
      graph::interpret(c.graph, c.inputs);
      return has_map_anywhere(c.graph, op);
    });
    EXPECT_LE(small.graph.size(), 4U) << graph::print(small.graph);
  }
}

// The fault takes two nodes, and a number: a maximum of a product, above a limit.
TEST(Shrink, KeepsChainsAndNumbers) {
  GraphCase what = random_graph(7, large());
  for (uint64_t seed = 8; what.inputs.empty() || !is_float(what.inputs[0].element); ++seed)
    what = random_graph(seed, large());
  const auto fails = [](const GraphCase& c) {
    graph::interpret(c.graph, c.inputs);
    for (graph::NodeId n = 0; n < c.graph.size(); ++n) {
      const auto* a = std::get_if<graph::ReduceAttributes>(&c.graph.node(n).attributes);
      if (a && a->combine == Combine::max &&
          c.graph.node(c.graph.node(n).operands[0].node).op == graph::Op::map)
        return true;
    }
    return false;
  };
  for (uint64_t seed = 20; !fails(what); ++seed) what = random_graph(seed, large());
  const GraphCase small = shrink(what, fails);
  EXPECT_LE(small.graph.size(), 4U) << graph::print(small.graph);
}

// A fault planted into kernels: they add where they should subtract.
TEST(Shrink, FindsAPlantedFault) {
  const auto damage = [](kernel::Kernel& k) {
    for (kernel::Expr& e : k.exprs)
      if (e.kind == kernel::ExprKind::apply && e.op == ScalarOp::sub && is_float(e.type.element))
        e.op = ScalarOp::add;
  };
  const GraphSettings settings;
  const auto fails = [&](const GraphCase& c) {
    const GraphOracle oracle(c);
    return !oracle.judge(outputs_of(c, settings, damage), settings.numerics).empty();
  };
  int found = 0;
  for (uint64_t seed = 1; found < 3; ++seed) {
    GraphCase what = random_graph(seed, large());
    if (!has_map(what.graph, ScalarOp::sub) || !fails(what)) continue;
    ++found;
    const GraphCase small = shrink(std::move(what), fails);
    EXPECT_LE(small.graph.size(), 4U) << graph::print(small.graph);
    EXPECT_TRUE(has_map(small.graph, ScalarOp::sub)) << graph::print(small.graph);
    EXPECT_TRUE(fails(small));
  }
}

// What is written as text is read back, to the bit.
TEST(Shrink, CasesReadBack) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const GraphCase what = random_graph(seed);
    const GraphSettings settings{
        compiler::Numerics::default_, fusion::FusionMode::off, "x86-64-v4", 5, Execution::guarded, 77};
    const Case text = to_case("a", what, {settings});
    CaseFile file;
    file.cases.push_back(text);
    const CaseFile again = parse_case_file(print_case_file(file), "memory");
    const GraphCase read = graph_of(again.cases[0]);
    EXPECT_EQ(graph::print(read.graph), graph::print(what.graph));
    ASSERT_EQ(read.inputs.size(), what.inputs.size());
    for (size_t i = 0; i < read.inputs.size(); ++i)
      EXPECT_TRUE(std::ranges::equal(read.inputs[i].bytes(), what.inputs[i].bytes()))
          << seed << ", input " << i;
    EXPECT_EQ(settings_of(again.cases[0]), std::vector<GraphSettings>{settings});
  }
}

}  // namespace
}  // namespace fusewise::test

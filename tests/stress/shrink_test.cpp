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
  options.control_depth = 0;  // a body stays as it is
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

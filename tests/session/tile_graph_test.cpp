// The claims of the tile graph on the embedded models, end to end: what is one kernel by itself, what a plan file
// forces into one kernel, and that results stay right (strict: to the bit) at any tile, thread count and length.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/temporary_folder.h"
#include "fusion/plan_json.h"
#include "graph/interpreter/interpreter.h"
#include "session/compile.h"
#include "session/random_inputs.h"
#include "session/session.h"
#include "session/verify.h"
#include "zoo/zoo.h"

namespace fusewise::session {
namespace {

using graph::Tensor;
using testing::HasSubstr;
using Operators = std::vector<std::string>;
using Group = std::vector<uint32_t>;  // model nodes

class TileGraph : public testing::Test {
 protected:
  Model zoo(const std::string& name) const {
    const std::string path = (folder_.path() / (name + ".onnx")).string();
    if (!std::filesystem::exists(path)) write_zoo(name, path);
    return Model::load(path);
  }

  TemporaryFolder folder_;
};

SessionOptions options_of(compiler::Numerics numerics, int threads = 1,
                          std::optional<std::string> plan = {}) {
  SessionOptions options;
  options.use_cache = false;
  options.numerics = numerics;
  options.threads = threads;
  options.plan_text = std::move(plan);
  return options;
}

// Where the model's nodes have these operators in a row; "?" stands for one that may be missing.
std::vector<Group> find(const graph::Graph& graph, const Operators& operators) {
  std::vector<Group> groups;
  for (uint32_t first = 0; first < graph.model_nodes.size(); ++first) {
    Group group;
    uint32_t next = first;
    for (const std::string& op : operators) {
      const bool optional = op.back() == '?';
      const std::string name = optional ? op.substr(0, op.size() - 1) : op;
      const bool here = next < graph.model_nodes.size() && graph.model_nodes[next].op_type == name;
      if (here)
        group.push_back(next++);
      else if (!optional)
        group.clear();
      if (group.empty()) break;
    }
    if (!group.empty()) groups.push_back(group);
  }
  return groups;
}

std::vector<Group> attentions(const graph::Graph& graph) {
  std::vector<Group> groups = find(graph, {"MatMul", "Div", "Add", "Softmax", "MatMul"});
  for (const Group& g : find(graph, {"MatMul", "Div", "Where", "Softmax", "MatMul"})) groups.push_back(g);
  return groups;
}

// Those of the blocks that expand: their first convolution is 1x1.
std::vector<Group> expanding(const graph::Graph& graph, const Operators& operators) {
  std::vector<Group> groups = find(graph, operators);
  std::erase_if(groups, [&](const Group& g) {
    return graph.model_nodes[g.front()].name.find("expand") == std::string::npos;
  });
  return groups;
}

std::vector<Group> inverted_residuals(const graph::Graph& graph) {
  return expanding(graph, {"Conv", "BatchNormalization", "Clip", "Conv", "BatchNormalization", "Clip", "Conv",
                           "BatchNormalization", "Add?"});
}

std::string forced(const std::vector<Group>& groups, int64_t grid_tile) {
  nlohmann::json plan = {{"schema", "fusewise.plan/1"}, {"groups", nlohmann::json::array()}};
  for (const Group& group : groups) {
    nlohmann::json members = nlohmann::json::array();
    for (uint32_t m : group) members.push_back("#" + std::to_string(m));
    plan["groups"].push_back({{"members", members}, {"pin", true}, {"grid_tile", grid_tile}});
  }
  return plan.dump();
}

int phases_of(const fusion::PlannedRegion& region) {
  int phases = 1;
  for (const auto& stage : region.schedule.stages) phases = std::max(phases, stage.phase + 1);
  return phases;
}

// The regions that compute something of these model nodes each time; views that others read through do not count.
std::set<size_t> kernels_of(const compiler::Planned& planned, const Group& group) {
  std::set<size_t> found;
  for (size_t r = 0; r < planned.plan.regions.size(); ++r) {
    const fusion::PlannedRegion& region = planned.plan.regions[r];
    if (region.once) continue;
    for (graph::NodeId n : region.region.nodes) {
      const graph::Node& node = planned.graph.node(n);
      const bool of_group = !node.sources.empty() && std::count(group.begin(), group.end(), node.sources[0]);
      if (of_group && graph::kind_of(node.op) != graph::Kind::view) found.insert(r);
    }
  }
  return found;
}

// Every group is one kernel in one phase.
void expect_one_kernel_each(const compiler::Planned& planned, const std::vector<Group>& groups,
                            const std::string& what) {
  ASSERT_FALSE(groups.empty()) << what;
  for (const Group& group : groups) {
    const std::set<size_t> kernels = kernels_of(planned, group);
    EXPECT_EQ(kernels.size(), 1u) << what << " at " << planned.graph.model_nodes[group.front()].name;
    for (size_t k : kernels)
      EXPECT_EQ(phases_of(planned.plan.regions[k]), 1)
          << what << " at " << planned.graph.model_nodes[group.front()].name;
  }
}

std::vector<Tensor> random_inputs(const graph::Graph& graph, const SymbolValues& symbols) {
  std::vector<Tensor> inputs;
  const auto extents = index_extents(graph);
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const graph::TensorType& type = graph.type({graph.inputs[i].node, 0});
    std::vector<int64_t> shape;
    for (const Dim& d : type.shape) shape.push_back(d.evaluate(symbols));
    const std::optional<int64_t> extent =
        extents[i] ? std::optional(extents[i]->evaluate(symbols)) : std::nullopt;
    inputs.push_back(random_tensor(graph.inputs[i].name, type.element, shape, 3, {}, extent));
  }
  return inputs;
}

SymbolValues symbols_of(const graph::Graph& graph, int64_t length) {
  SymbolValues values;
  for (const graph::GraphInput& input : graph.inputs)
    for (const Dim& d : graph.type({input.node, 0}).shape)
      for (const std::string& s : d.symbols()) values[s] = s == "batch" ? 2 : length;
  return values;
}

void expect_right(const Model& model, const Session& session, bool exact, int64_t length,
                  const std::string& what) {
  const std::vector<Tensor> inputs = random_inputs(model.graph(), symbols_of(model.graph(), length));
  const std::vector<Tensor> expected = graph::interpret(model.graph(), inputs), actual = session.run(inputs);
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const OutputVerdict verdict = exact ? compare_exactly("output", expected[i], actual[i])
                                        : compare_within("output", expected[i], actual[i], 1e-4);
    EXPECT_TRUE(verdict.passed) << what << ", length " << length << ", output " << i << ": "
                                << verdict.max_absolute;
  }
}

void expect_forced_groups_right(const Model& model, const std::vector<Group>& groups,
                                const std::vector<int64_t>& tiles, const std::vector<int64_t>& lengths) {
  ASSERT_FALSE(groups.empty());
  for (int64_t tile : tiles) {
    const std::string plan = forced(groups, tile);
    for (auto numerics : {compiler::Numerics::strict, compiler::Numerics::default_}) {
      const bool exact = numerics == compiler::Numerics::strict;
      const std::string what = fmt::format("tile {}, {}", tile, exact ? "strict" : "default");
      expect_one_kernel_each(
          compiler::plan_graph(model.graph(), compile_options_for(options_of(numerics, 2, plan))), groups,
          what);
      for (int threads : {1, 2}) {
        const Session session(model, options_of(numerics, threads, plan));
        for (int64_t length : lengths) expect_right(model, session, exact, length, what);
      }
    }
  }
}

// ---------------------------------------------------------------- by itself

TEST_F(TileGraph, NormsSoftmaxesAndActivationsOfTransformersAreOneKernelEach) {
  for (const char* name : {"bert_base_tiny", "gpt2_prefill_tiny"}) {
    const Model model = zoo(name);
    const compiler::Planned planned =
        compiler::plan_graph(model.graph(), compile_options_for(options_of(compiler::Numerics::default_)));
    expect_one_kernel_each(planned, find(planned.graph, {"Softmax"}), std::string(name) + ", softmax");
    expect_one_kernel_each(planned, find(planned.graph, {"LayerNormalization"}),
                           std::string(name) + ", norm");
    for (const fusion::PlannedRegion& region : planned.plan.regions) EXPECT_EQ(phases_of(region), 1);
  }
  const Model bert = zoo("bert_base_tiny");
  const compiler::Planned planned =
      compiler::plan_graph(bert.graph(), compile_options_for(options_of(compiler::Numerics::default_)));
  expect_one_kernel_each(planned, find(planned.graph, {"MatMul", "Add", "Div", "Erf", "Add", "Mul", "Mul"}),
                         "product, bias, GELU");
}

TEST_F(TileGraph, ConvolutionsTakeNormAdditionAndActivation) {
  const Model resnet = zoo("resnet50_tiny");
  const auto compile = compile_options_for(options_of(compiler::Numerics::default_));
  const compiler::Planned planned = compiler::plan_graph(resnet.graph(), compile);
  expect_one_kernel_each(planned, find(planned.graph, {"Conv", "BatchNormalization", "Relu"}),
                         "Conv-BN-ReLU");
  // The shortcut of these blocks has a convolution of its own: one of the two takes the addition and what follows.
  const std::vector<Group> additions = find(planned.graph, {"Add", "Relu"});
  expect_one_kernel_each(planned, additions, "Add-ReLU");
  for (const Group& group : additions)
    for (size_t k : kernels_of(planned, group)) {
      const std::vector<graph::NodeId>& nodes = planned.plan.regions[k].region.nodes;
      EXPECT_TRUE(std::any_of(nodes.begin(), nodes.end(), [&](graph::NodeId n) {
        return planned.graph.node(n).op == graph::Op::convolution;
      }));
    }

  const Model efficientnet = zoo("efficientnet_b0_tiny");
  const compiler::Planned gated = compiler::plan_graph(efficientnet.graph(), compile);
  expect_one_kernel_each(gated, find(gated.graph, {"Conv", "BatchNormalization", "Sigmoid", "Mul"}),
                         "Conv-BN-SiLU");
  // The gate: a scale per channel in front of the projection.
  for (const Group& gate : find(gated.graph, {"Sigmoid", "Mul", "Conv", "BatchNormalization"}))
    EXPECT_LE(kernels_of(gated, {gate[1], gate[2], gate[3]}).size(), 2u);
}

TEST_F(TileGraph, NoKernelOfATransformerOnlyMovesElements) {
  const Model model = zoo("bert_base_tiny");
  const compiler::Planned planned =
      compiler::plan_graph(model.graph(), compile_options_for(options_of(compiler::Numerics::default_)));
  for (const fusion::PlannedRegion& region : planned.plan.regions) {
    const bool moves = std::all_of(
        region.region.nodes.begin(), region.region.nodes.end(),
        [&](graph::NodeId n) { return graph::kind_of(planned.graph.node(n).op) == graph::Kind::view; });
    EXPECT_TRUE(region.once || !moves) << "%" << region.region.outputs.front().node;
  }
}

// ---------------------------------------------------------------- forced

TEST_F(TileGraph, AttentionForcedIntoOneKernel) {
  const Model model = zoo("bert_base_tiny");
  expect_forced_groups_right(model, attentions(model.graph()), {4, 16}, {1, 7, 31, 64});
}

TEST_F(TileGraph, CausalAttentionForcedIntoOneKernel) {
  const Model model = zoo("gpt2_prefill_tiny");
  expect_forced_groups_right(model, attentions(model.graph()), {4, 16}, {1, 7, 31});
}

TEST_F(TileGraph, InvertedResidualsForcedIntoOneKernelEach) {
  const Model model = zoo("mobilenet_v2_tiny");
  expect_forced_groups_right(model, inverted_residuals(model.graph()), {2, 7}, {1});
}

// The values that slide, computed again instead, or kept: the whole of them in scratch.
void change_reuse(schedule::Schedule& schedule, schedule::Reuse reuse) {
  schedule::StageChoice& root = schedule.stages.front();
  if (reuse == schedule::Reuse::keep) {
    root.loops.erase(root.loops.begin(), root.loops.begin() + root.grid_loops + 1);
    root.grid_loops = 0;
  }
  for (schedule::StageChoice& stage : schedule.stages) {
    if (stage.parent == 0 && stage.placement == schedule::Placement::registers)
      stage.depth = static_cast<int>(root.loops.size());
    if (stage.placement != schedule::Placement::scratch) continue;
    if (reuse == schedule::Reuse::keep) stage.depth = 0;
    stage.reuse = reuse;
    stage.slide_axis = -1;
  }
}

TEST_F(TileGraph, RowsOfInvertedResidualsSlideAreKeptOrComputedAgain) {
  const Model model = zoo("mobilenet_v2_tiny");
  const std::string plan = forced(inverted_residuals(model.graph()), 4);
  const SessionOptions options = options_of(compiler::Numerics::strict, 2, plan);
  const compiler::Planned slid = compiler::plan_graph(model.graph(), compile_options_for(options));
  const auto slides = [](const schedule::StageChoice& stage) {
    return stage.reuse == schedule::Reuse::slide;
  };
  int sliding = 0;
  for (auto reuse : {schedule::Reuse::slide, schedule::Reuse::recompute, schedule::Reuse::keep}) {
    fusion::FusionPlan changed = slid.plan;
    for (fusion::PlannedRegion& region : changed.regions) {
      if (std::none_of(region.schedule.stages.begin(), region.schedule.stages.end(), slides)) continue;
      ++sliding;
      if (reuse != schedule::Reuse::slide) change_reuse(region.schedule, reuse);
    }
    const Session session(
        model, options_of(compiler::Numerics::strict, 2, fusion::to_json_text(slid.graph, changed)));
    expect_right(model, session, true, 1, "reuse " + std::to_string(static_cast<int>(reuse)));
  }
  EXPECT_GT(sliding, 0);
}

TEST_F(TileGraph, ExpansionAndDepthwiseOfEfficientNetForcedIntoOneKernelEach) {
  const Model model = zoo("efficientnet_b0_tiny");
  // The mean of the gate needs all of it: the rest is another kernel.
  const std::vector<Group> groups = expanding(
      model.graph(),
      {"Conv", "BatchNormalization", "Sigmoid", "Mul", "Conv", "BatchNormalization", "Sigmoid", "Mul"});
  expect_forced_groups_right(model, groups, {2, 7}, {1});
}

TEST_F(TileGraph, ScoresAndExpandedTensorsLiveInScratchOnly) {
  const auto arena = [](const Model& model, SessionOptions options, int64_t length) {
    const Session session(model, options);
    return session.prepare(random_inputs(model.graph(), symbols_of(model.graph(), length))).arena_bytes();
  };
  const Model bert = zoo("bert_base_tiny");
  SessionOptions apart = options_of(compiler::Numerics::default_);
  apart.fusion = fusion::FusionMode::operators;
  const SessionOptions together =
      options_of(compiler::Numerics::default_, 1, forced(attentions(bert.graph()), 8));
  const int64_t scores = 2 * 2 * 64 * 64 * 4;  // batch, heads, rows, columns
  EXPECT_LE(arena(bert, together, 64) + scores, arena(bert, apart, 64));

  const Model mobilenet = zoo("mobilenet_v2_tiny");
  const SessionOptions residuals =
      options_of(compiler::Numerics::default_, 1, forced(inverted_residuals(mobilenet.graph()), 4));
  EXPECT_LT(arena(mobilenet, residuals, 1), arena(mobilenet, apart, 1));
}

// ---------------------------------------------------------------- plans

// The kernels of a compilation, by name.
std::map<std::string, std::string> kernels_with(const Model& model, const SessionOptions& options) {
  std::map<std::string, std::string> kernels;
  compiler::CompileOptions compile = compile_options_for(options);
  compile.dump = [&](const std::string& stage, const std::string& name, const std::string& text) {
    if (stage == "kernel") kernels[name] = text;
  };
  compiler::compile(model.graph(), compile);
  return kernels;
}

TEST_F(TileGraph, AWrittenPlanGivesTheSameKernels) {
  for (const char* name : {"bert_base_tiny", "mobilenet_v2_tiny"}) {
    const Model model = zoo(name);
    SessionOptions options = options_of(compiler::Numerics::default_, 2);
    const compiler::Planned first = compiler::plan_graph(model.graph(), compile_options_for(options));
    const std::string text = fusion::to_json_text(first.graph, first.plan);
    const auto chosen = kernels_with(model, options);
    options.plan_text = text;
    EXPECT_EQ(kernels_with(model, options), chosen) << name;
    EXPECT_FALSE(chosen.empty());
  }
}

TEST_F(TileGraph, APlanForAnotherMachineKeepsItsGroups) {
  const Model model = zoo("bert_base_tiny");
  SessionOptions options = options_of(compiler::Numerics::default_);
  options.machine = machine::host_machine("x86-64-v4");
  const compiler::Planned wide = compiler::plan_graph(model.graph(), compile_options_for(options));
  options.machine = machine::host_machine("x86-64-v3");
  options.plan_text = fusion::to_json_text(wide.graph, wide.plan);
  const compiler::Planned narrow = compiler::plan_graph(model.graph(), compile_options_for(options));
  const auto groups = [](const fusion::FusionPlan& plan) {
    std::set<std::vector<graph::NodeId>> result;
    for (const fusion::PlannedRegion& region : plan.regions)
      if (!region.once) result.insert(region.region.nodes);
    return result;
  };
  EXPECT_EQ(groups(narrow.plan), groups(wide.plan));
  ASSERT_FALSE(narrow.plan.notes.empty());
  EXPECT_THAT(narrow.plan.notes.front(), HasSubstr("tiles are chosen anew"));
  const Session session(model, options);
  expect_right(model, session, false, 17, "replayed for x86-64-v3");
}

TEST_F(TileGraph, ThePlanDoesNotDependOnNames) {
  const Model model = zoo("gpt2_prefill_tiny");
  const auto options = compile_options_for(options_of(compiler::Numerics::default_));
  graph::Graph renamed = model.graph();
  for (size_t i = 0; i < renamed.model_nodes.size(); ++i)
    renamed.model_nodes[i].name = "n" + std::to_string(i * 7919 % 1000);
  for (graph::GraphInput& input : renamed.inputs) input.name += "_in";
  const compiler::Planned a = compiler::plan_graph(model.graph(), options),
                          b = compiler::plan_graph(renamed, options);
  ASSERT_EQ(a.plan.regions.size(), b.plan.regions.size());
  for (size_t r = 0; r < a.plan.regions.size(); ++r) {
    EXPECT_EQ(a.plan.regions[r].region.nodes, b.plan.regions[r].region.nodes);
    EXPECT_EQ(a.plan.regions[r].schedule, b.plan.regions[r].schedule);
  }
}

}  // namespace
}  // namespace fusewise::session

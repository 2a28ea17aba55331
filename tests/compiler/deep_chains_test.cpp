// Chains as deep as graphs get, on small stacks: nothing recurses along the graph.
#include <pthread.h>

#include <exception>
#include <functional>
#include <memory>

#include <gtest/gtest.h>

#include "compiler/compiler.h"
#include "export/onnx_builder.h"
#include "fusion/explain.h"
#include "fusion/plan_json.h"
#include "graph/text.h"
#include "import/import.h"
#include "machine/machine.h"

namespace fusewise::compiler {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t small_stack = 2 << 20;  // sanitizers make frames larger
#else
constexpr size_t small_stack = 256 << 10;
#endif

void on_stack_of(size_t bytes, const std::function<void()>& work) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
  pthread_t thread{};
  const auto run = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&work)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

std::string chain(int nodes) {
  OnnxBuilder model;
  std::string x = model.input("x", DataType::float32, {int64_t{4}, int64_t{4}});
  for (int i = 0; i < nodes; ++i) x = model.node(i % 2 ? "Tanh" : "Exp", {x});
  model.output_without_shape(x, DataType::float32);
  return model.serialize();
}

// Each joins what is before it, twice, with the input.
std::string joins(int nodes) {
  OnnxBuilder model;
  const std::string x = model.input("x", DataType::float32, {int64_t{2}, int64_t{1}});
  std::string y = model.node("Exp", {x});
  for (int i = 0; i < nodes; ++i) y = model.node("Concat", {y, model.node("Neg", {y}), x}, {{"axis", 1}});
  model.output_without_shape(y, DataType::float32);
  return model.serialize();
}

graph::Graph imported(std::string model) {
  const auto file = std::make_shared<const std::string>(std::move(model));
  return import_onnx(std::as_bytes(std::span(*file)), file, "chain.onnx", {});
}

CompileOptions options(fusion::FusionMode mode) {
  CompileOptions result;
  result.fusion = mode;
  result.machine = machine::host_machine();
  return result;
}

TEST(DeepChains, ImportPrintAndFreeOnASmallStack) {
  const std::string model = chain(200'000);
  on_stack_of(small_stack, [&] {
    graph::Graph graph = imported(model);
    EXPECT_GE(graph.size(), 200'001u);
    const std::string text = graph::print(graph);
    EXPECT_EQ(graph::print(graph::parse(text)), text);
    graph = {};
  });
}

TEST(DeepChains, PlanAndExplainOnASmallStack) {
  const std::string model = chain(200'000);
  on_stack_of(small_stack, [&] {
    const Planned planned = plan_graph(imported(model), options(fusion::FusionMode::operators));
    EXPECT_EQ(planned.plan.regions.size(), 200'000u);
  });
  const std::string shorter = chain(20'000);
  on_stack_of(small_stack, [&] {
    const Planned planned = plan_graph(imported(shorter), options(fusion::FusionMode::on));
    EXPECT_LT(planned.plan.regions.size(), 2'000u);
    EXPECT_FALSE(fusion::explain_model(planned.graph, planned.plan).empty());
    EXPECT_GT(fusion::to_json_text(planned.graph, planned.plan).size(), 20'000u);
  });
}

TEST(DeepChains, GrowingJoinsPlanOnASmallStack) {
  const std::string model = joins(12);
  on_stack_of(small_stack, [&] {
    const Planned planned = plan_graph(imported(model), options(fusion::FusionMode::on));
    EXPECT_FALSE(planned.plan.regions.empty());
  });
}

}  // namespace
}  // namespace fusewise::compiler

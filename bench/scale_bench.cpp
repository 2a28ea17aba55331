// How long models of many nodes take to import, rewrite, plan and print, and how that grows: a row per kind of graph
// and number of nodes. Where growth is linear, the microseconds per node stay the same from one size to the next.
//
//   scale_bench [NODES...]          10000 and 100000
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "export/onnx_builder.h"
#include "fusion/explain.h"
#include "fusion/plan_json.h"
#include "graph/statistics.h"
#include "graph/text.h"
#include "import/import.h"
#include "machine/machine.h"

namespace {

using namespace fusewise;
using Clock = std::chrono::steady_clock;

// A product, its softmax and a sum; the same in every layer.
OnnxBuilder equal_layers(int nodes) {
  OnnxBuilder model;
  std::string x = model.input("x", DataType::float32, {int64_t{16}, int64_t{8}});
  model.floats("w", {8, 8}, std::vector<float>(64, 0.5F));
  for (int done = 0; done < nodes; done += 5) {
    const std::string y = model.node("MatMul", {x, "w"});
    const std::string s = model.node("Softmax", {y});
    const std::string a = model.node("Mul", {s, x}), b = model.node("Tanh", {a});
    x = model.node("Add", {b, y});
  }
  model.output_without_shape(x, DataType::float32);
  return model;
}

// Branches over ever longer parts of the input: no two nodes have the same shape.
OnnxBuilder different_branches(int nodes) {
  OnnxBuilder model;
  const std::string x = model.input("x", DataType::float32, {int64_t{nodes}});
  model.ints("zero", {1}, {0});
  std::string sum;
  for (int done = 0; done < nodes; done += 6) {
    const std::string end = model.ints(fmt::format("end{}", done), {1}, {done + 1});
    const std::string part = model.node("Slice", {x, "zero", end});
    const std::string a = model.node("Exp", {part}), b = model.node("Mul", {a, part}),
                      c = model.node("Neg", {b});
    const std::string total = model.node("ReduceSum", {c}, {{"keepdims", 1}});
    sum = sum.empty() ? total : model.node("Add", {sum, total});
  }
  model.output_without_shape(sum, DataType::float32);
  return model;
}

OnnxBuilder one_chain(int nodes) {
  OnnxBuilder model;
  std::string x = model.input("x", DataType::float32, {int64_t{4}, int64_t{4}});
  for (int i = 0; i < nodes; ++i) x = model.node(i % 3 ? "Sigmoid" : "Softplus", {x});
  model.output_without_shape(x, DataType::float32);
  return model;
}

// Many readers of one value, and one reader of many values.
OnnxBuilder fan(int nodes) {
  OnnxBuilder model;
  const std::string x = model.input("x", DataType::float32, {int64_t{16}, int64_t{64}});
  const std::string shared = model.node("Exp", {x});
  std::vector<std::string> parts;
  for (int i = 0; i < nodes / 2; ++i)
    parts.push_back(model.node("ReduceMax", {model.node("Tanh", {shared})}));
  for (size_t begin = 0; begin < parts.size(); begin += 1000) {
    const size_t end = std::min(parts.size(), begin + 1000);
    const std::vector<std::string> some(parts.begin() + static_cast<int64_t>(begin),
                                        parts.begin() + static_cast<int64_t>(end));
    model.output_without_shape(model.node("Concat", some, {{"axis", 0}}), DataType::float32);
  }
  return model;
}

struct Kind {
  const char* name;
  OnnxBuilder (*build)(int nodes);
};
constexpr Kind kinds[] = {
    {"equal", equal_layers}, {"different", different_branches}, {"chain", one_chain}, {"fan", fan}};

double seconds(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void measure(const Kind& kind, int nodes) {
  const auto file = std::make_shared<const std::string>(kind.build(nodes).serialize());
  graph::Graph graph;
  const double import =
      seconds([&] { graph = import_onnx(std::as_bytes(std::span(*file)), file, "scale.onnx", {}); });
  const double inspect = seconds([&] { graph::flops_of(graph); });
  const double print = seconds([&] { graph::print(graph); });
  compiler::CompileOptions options;
  options.machine = machine::host_machine();
  compiler::Planned planned;
  seconds([&] { planned = compiler::plan_graph(std::move(graph), options); });
  const double json = seconds([&] { fusion::to_json_text(planned.graph, planned.plan); });
  const double explain = seconds([&] { fusion::explain_model(planned.graph, planned.plan); });
  fmt::print("{:10} {:8} primitives {:8} kernels", kind.name, planned.graph.size(),
             planned.plan.regions.size());
  const auto column = [&](const char* name, double value) {
    fmt::print("  {} {:.2f} s ({:.2f} us)", name, value, value * 1e6 / nodes);
  };
  column("import", import);
  column("rewrite", planned.milliseconds.at("rewrite") / 1e3);
  column("plan", planned.milliseconds.at("plan") / 1e3);
  column("inspect", inspect);
  column("print", print);
  column("plan.json", json);
  column("explain", explain);
  fmt::print("\n");
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<int> sizes;
  for (int i = 1; i < count; ++i) sizes.push_back(std::atoi(arguments[i]));
  if (sizes.empty()) sizes = {10'000, 100'000};
  for (const Kind& kind : kinds)
    for (const int nodes : sizes) measure(kind, nodes);
  return 0;
}

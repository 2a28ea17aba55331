// What strict mode gives, as committed hashes: the same on every processor, at every vector width and number of
// threads, and for every fusion setting. The cases name an embedded model or hold a graph; `tools/golden --update
// golden` rewrites the hashes, which is right only when the definition of strict results itself has changed.
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "codegen/codegen.h"
#include "export/onnx_builder.h"
#include "golden/compiled.h"
#include "graph/interpreter/interpreter.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "session/inputs.h"
#include "session/model.h"
#include "support/case_file.h"
#include "zoo/zoo.h"

namespace fusewise::test {
namespace {

using fusion::FusionMode;
using graph::Tensor;

// A graph to compile, inputs to run it on, and what the interpreter says of them.
struct Subject {
  graph::Graph graph;
  std::vector<Tensor> inputs;
  std::string expected;
};

graph::Graph graph_of(const Case& c) {
  if (!c.has("zoo")) return graph::parse(c.text("input"));
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "model.onnx";
  build_zoo(c.word("zoo")).write(path);
  return session::Model::load(path.string()).graph();
}

// "batch=3 length=37": sizes of symbols. "x=-5,5": from where the values of the inputs matching x are drawn.
session::InputRequest request_of(const Case& c) {
  session::InputRequest request;
  std::string word;
  for (std::istringstream words(c.word("dims")); words >> word;) {
    const size_t equals = word.find('=');
    request.dims[word.substr(0, equals)] = std::stoll(word.substr(equals + 1));
  }
  for (std::istringstream words(c.word("ranges")); words >> word;) {
    const size_t equals = word.find('='), comma = word.find(',');
    request.ranges.emplace_back(
        word.substr(0, equals),
        session::ValueRange{std::stod(word.substr(equals + 1, comma)), std::stod(word.substr(comma + 1))});
  }
  return request;
}

Subject subject_of(const Case& c) {
  Subject subject;
  subject.graph = graph_of(c);
  graph::verify(subject.graph);
  subject.inputs =
      session::prepare_inputs(session::inputs_of(subject.graph), request_of(c), [](const std::string&) {
      }).tensors;
  subject.expected = hashes_of(subject.graph, graph::interpret(subject.graph, subject.inputs));
  return subject;
}

// Any two values of two of: fusion, threads, vector width.
std::vector<Setting> settings_here() {
  const bool wide = codegen::host_runs("x86-64-v4");
  const std::string narrow_cpu = "x86-64-v3", wide_cpu = wide ? "x86-64-v4" : narrow_cpu;
  return {{narrow_cpu, FusionMode::on, 1},        {wide_cpu, FusionMode::on, 2},
          {narrow_cpu, FusionMode::on, 5},        {wide_cpu, FusionMode::operators, 1},
          {narrow_cpu, FusionMode::operators, 2}, {wide_cpu, FusionMode::operators, 5},
          {narrow_cpu, FusionMode::off, 2},       {wide_cpu, FusionMode::off, 5}};
}

TEST(Golden, CompiledHere) {
  if (!codegen::host_runs("x86-64-v3")) GTEST_SKIP() << "this processor has no AVX2";
  if (!codegen::host_runs("x86-64-v4"))
    fmt::print("left out: code for AVX-512, which this processor lacks\n");
  const std::vector<Setting> settings = settings_here();
  run_cases("golden", [&](const Case& c) {
    const Subject subject = subject_of(c);
    for (const Setting& setting : settings) {
      const auto outputs =
          run_here(compile_strictly(subject.graph, setting), subject.inputs, setting.threads);
      EXPECT_EQ(hashes_of(subject.graph, outputs), subject.expected) << c.name << ": " << describe(setting);
    }
    return subject.expected;
  });
}

TEST(Golden, CompiledForAarch64) {
  if (const std::string reason = no_emulation(); !reason.empty()) GTEST_SKIP() << reason;
  const TemporaryFolder folder;
  run_cases("golden", [&](const Case& c) {
    const Subject subject = subject_of(c);
    std::string hashes;
    for (const FusionMode fusion : {FusionMode::on, FusionMode::operators}) {
      const Setting setting{"aarch64", fusion, fusion == FusionMode::on ? 2 : 1};
      const program::Program program = compile_strictly(subject.graph, setting);
      hashes =
          hashes_of(subject.graph, run_emulated(program, subject.inputs, setting.threads, folder.path()));
      EXPECT_EQ(hashes, subject.expected) << c.name << ": " << describe(setting);
    }
    return hashes;
  });
}

// Code for another processor is refused with a reason, not run.
TEST(Golden, CodeForAnotherProcessorIsRefusedHere) {
  if (!codegen::host_runs("x86-64-v3")) GTEST_SKIP() << "this processor may be a 64-bit Arm one";
  graph::Graph graph = graph::parse(
      "%0 = input index=0 name=\"x\" : float32[4]\n%1 = map %0 op=neg : float32[4]\noutput %1 \"y\"\n");
  const Tensor x = Tensor::from<float>(DataType::float32, {4}, {1, 2, 3, 4});
  EXPECT_THROW(run_here(compile_strictly(graph, {.cpu = "aarch64"}), {&x, 1}, 1), UserError);
}

}  // namespace
}  // namespace fusewise::test

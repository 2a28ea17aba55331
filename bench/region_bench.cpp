// Kernel-level speed of regions as the planner would have them: tile chooser, lowering, kernel passes, machine code.
// Each row is interleaved with the FMA peak of one core measured in the same rounds; the share is median over rounds.
//
//   region_bench [native|x86-64-v3|x86-64-v4] [NAME]
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>

#include "base/aligned_buffer.h"
#include "codegen/codegen.h"
#include "fma_peak.h"
#include "fusion/layouts.h"
#include "fusion/tiles/choose_schedule.h"
#include "graph/builder.h"
#include "graph/statistics.h"
#include "kernel/passes/pipeline.h"
#include "machine/machine.h"
#include "schedule/lower.h"

namespace {

using namespace fusewise;
using graph::Graph;
using graph::GraphBuilder;
using graph::Value;

struct Case {
  std::string name;
  std::function<void(GraphBuilder&, schedule::Layouts&)> build;
};

Value weights(GraphBuilder& b, const Shape& shape, schedule::Layouts& layouts, schedule::Layout layout) {
  const Value w = b.input("w" + std::to_string(b.graph().inputs.size()), {DataType::float32, shape});
  layouts[w] = std::move(layout);
  return w;
}

int64_t panel(const machine::Machine& m, int64_t rows, int64_t columns) {
  return fusion::contraction_tile(m, DataType::float32, rows, columns, 1, 0).columns;
}

Value matmul_bias(GraphBuilder& b, schedule::Layouts& layouts, const machine::Machine& m, int64_t rows,
                  int64_t k, int64_t n) {
  const Value x = b.input("x", {DataType::float32, {rows, k}});
  const Value w = weights(b, {k, n}, layouts, {{1, 0}, {{1, panel(m, rows, n)}}});
  const Value bias = b.input("bias", {DataType::float32, {n}});
  return b.map_broadcast(ScalarOp::add, {b.matmul(x, w), bias});
}

Value gelu(GraphBuilder& b, Value x) {
  const auto c = [&](double v) { return b.scalar(DataType::float32, v); };
  const Value e = b.map(ScalarOp::erf, {b.map_broadcast(ScalarOp::mul, {x, c(0.70710678)})});
  return b.map(ScalarOp::mul,
               {b.map_broadcast(ScalarOp::mul, {x, c(0.5)}), b.map_broadcast(ScalarOp::add, {e, c(1.0)})});
}

Value convolution_relu(GraphBuilder& b, schedule::Layouts& layouts, const machine::Machine& m, int64_t size,
                       int64_t in, int64_t out, int64_t kernel, int64_t stride, bool depthwise = false) {
  const schedule::Layout last{{0, 2, 3, 1}, {}};
  const Value x = b.input("x", {DataType::float32, {1, in, size, size}});
  layouts[x] = last;
  graph::ConvolutionAttributes a;
  a.strides = {stride, stride};
  a.dilations = {1, 1};
  a.pad_low = a.pad_high = {kernel / 2, kernel / 2};
  a.groups = depthwise ? out : 1;
  const int64_t out_size = (size + 2 * (kernel / 2) - kernel) / stride + 1;
  const Value w = depthwise ? weights(b, {out, 1, kernel, kernel}, layouts, {{1, 2, 3, 0}, {}})
                            : weights(b, {out, in, kernel, kernel}, layouts,
                                      {{0, 2, 3, 1}, {{0, panel(m, out_size, out)}}});
  const Value bias = b.input("bias", {DataType::float32, {out}});
  Value y = b.convolution(x, w, a);
  y = b.map(ScalarOp::add, {y, b.broadcast(bias, b.shape(y), {1})});
  y = b.map_broadcast(ScalarOp::max, {y, b.scalar(DataType::float32, 0.0)});
  layouts[y] = last;
  return y;
}

// Expansion, depthwise convolution, projection and residual as one kernel.
void inverted_residual(GraphBuilder& b, schedule::Layouts& layouts, const machine::Machine& m, int64_t size,
                       int64_t channels, int64_t expanded) {
  const Shape shape = {1, channels, size, size};
  const Value x = b.input("x", {DataType::float32, shape});
  layouts[x] = {{0, 2, 3, 1}, {}};
  const auto convolution = [&](Value input, const Shape& kernel, int64_t groups) {
    graph::ConvolutionAttributes a;
    a.strides = a.dilations = {1, 1};
    a.pad_low = a.pad_high = {kernel[2].value() / 2, kernel[2].value() / 2};
    a.groups = groups;
    const bool depthwise = groups > 1;
    const schedule::Layout packed{{0, 2, 3, 1}, {{0, panel(m, size, kernel[0].value())}}};
    return b.convolution(
        input, weights(b, kernel, layouts, depthwise ? schedule::Layout{{1, 2, 3, 0}, {}} : packed), a);
  };
  const auto relu6 = [&](Value v) {
    v = b.map_broadcast(ScalarOp::max, {v, b.scalar(DataType::float32, 0.0)});
    return b.map_broadcast(ScalarOp::min, {v, b.scalar(DataType::float32, 6.0)});
  };
  const Value wide = relu6(convolution(x, {expanded, channels, 1, 1}, 1));
  const Value deep = relu6(convolution(wide, {expanded, 1, 3, 3}, expanded));
  const Value y = b.map(ScalarOp::add, {convolution(deep, {channels, expanded, 1, 1}, 1), x});
  layouts[y] = {{0, 2, 3, 1}, {}};
  b.output(y, "y");
}

Value softmax(GraphBuilder& b, Value x) {
  const int last = b.type(x).rank() - 1;
  const Value e =
      b.map(ScalarOp::exp, {b.map_broadcast(ScalarOp::sub, {x, b.reduce(x, Combine::max, {last}, true)})});
  return b.map_broadcast(ScalarOp::div, {e, b.reduce(e, Combine::sum, {last}, true)});
}

std::vector<Case> cases(const machine::Machine& m) {
  std::vector<Case> list;
  const auto mm = [&](const char* name, int64_t rows, int64_t k, int64_t n, bool with_gelu) {
    list.push_back({name, [=](GraphBuilder& b, schedule::Layouts& l) {
                      const Value y = matmul_bias(b, l, m, rows, k, n);
                      b.output(with_gelu ? gelu(b, y) : y, "y");
                    }});
  };
  mm("matmul_bias_256x768x3072", 256, 768, 3072, false);
  mm("matmul_bias_128x768x768", 128, 768, 768, false);
  mm("matmul_bias_gelu_128x768x3072", 128, 768, 3072, true);
  mm("matmul_bias_128x3072x768", 128, 3072, 768, false);
  mm("matmul_bias_1x768x3072", 1, 768, 3072, false);
  const auto conv = [&](const char* name, int64_t size, int64_t in, int64_t out, int64_t k, int64_t s,
                        bool dw) {
    list.push_back({name, [=](GraphBuilder& b, schedule::Layouts& l) {
                      b.output(convolution_relu(b, l, m, size, in, out, k, s, dw), "y");
                    }});
  };
  conv("conv3x3_56_64_64", 56, 64, 64, 3, 1, false);
  conv("conv3x3_28_128_128", 28, 128, 128, 3, 1, false);
  conv("conv3x3_14_256_256", 14, 256, 256, 3, 1, false);
  conv("conv3x3_7_512_512", 7, 512, 512, 3, 1, false);
  conv("conv3x3s2_56_128_128", 56, 128, 128, 3, 2, false);
  conv("conv1x1_56_64_256", 56, 64, 256, 1, 1, false);
  conv("conv1x1_14_1024_256", 14, 1024, 256, 1, 1, false);
  conv("conv1x1_7_512_2048", 7, 512, 2048, 1, 1, false);
  conv("depthwise3x3_56_144", 56, 144, 144, 3, 1, true);
  conv("depthwise5x5_14_672", 14, 672, 672, 5, 1, true);
  const auto residual = [&](const char* name, int64_t size, int64_t channels, int64_t expanded) {
    list.push_back({name, [=](GraphBuilder& b, schedule::Layouts& l) {
                      inverted_residual(b, l, m, size, channels, expanded);
                    }});
  };
  residual("inverted_residual_112_32_96", 112, 32, 96);
  residual("inverted_residual_56_32_144", 56, 32, 144);
  residual("inverted_residual_28_32_192", 28, 32, 192);
  list.push_back({"softmax_1536x128", [](GraphBuilder& b, schedule::Layouts&) {
                    b.output(softmax(b, b.input("x", {DataType::float32, {1536, 128}})), "y");
                  }});
  list.push_back({"attention_12x128x64", [](GraphBuilder& b, schedule::Layouts&) {
                    const Shape shape = {12, 128, 64};
                    const Value q = b.input("q", {DataType::float32, shape}),
                                k = b.input("k", {DataType::float32, shape}),
                                v = b.input("v", {DataType::float32, shape});
                    Value s = b.matmul(q, b.transpose(k, {0, 2, 1}));
                    s = b.map_broadcast(ScalarOp::mul, {s, b.scalar(DataType::float32, 0.125)});
                    b.output(b.matmul(softmax(b, s), v), "o");
                  }});
  return list;
}

using Run = void (*)(void* const*, const int64_t*, char*, int64_t, int64_t);
using Count = int64_t (*)(const int64_t*);

void measure(const Case& c, const machine::Machine& m) {
  Graph g;
  GraphBuilder b(g);
  schedule::Layouts layouts;
  c.build(b, layouts);
  graph::Region region;
  int64_t flops = 0;
  for (graph::NodeId n = 0; n < g.size(); ++n)
    if (graph::has_form(g, n)) {
      region.nodes.push_back(n);
      flops += graph::flops_of(g, n).value();
    }
  region.outputs = {g.outputs[0].value};
  const schedule::RegionForms forms = schedule::region_forms(g, region);
  fusion::TileOptions options;
  options.order = {int64_t{1} << 40, 16};
  const schedule::TreeResult built =
      schedule::build_tree(forms, fusion::choose_schedule(forms, layouts, m, options), layouts);
  if (!built.verdict) {
    fmt::print("{:32} refused: {}\n", c.name, built.verdict.detail);
    return;
  }
  schedule::LowerOptions lower_options;
  lower_options.vector_lanes = m.vector_bits / 32;
  schedule::LoweredKernel lowered = schedule::lower(forms, built.tree, lower_options);
  kernel::PassOptions passes;
  passes.vector_bits = m.vector_bits;
  const bool show = std::getenv("REGION_BENCH_SHOW") != nullptr;
  lowered.kernel.name = "k";
  if (show) fmt::print("{}\n", kernel::print(lowered.kernel));
  kernel::Kernel k = kernel::run_passes(std::move(lowered.kernel), passes);
  if (show) fmt::print("{}\n", kernel::print(k));
  const double compile_start = bench::processor_seconds();
  const auto objects = codegen::compile_objects({&k, 1}, codegen::target_named(m.cpu), 1);
  const double compile_ms = 1e3 * (bench::processor_seconds() - compile_start);
  if (show)
    fmt::print("{}\n", codegen::emit_text(k, codegen::target_named(m.cpu), codegen::TextForm::assembly));
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("region_bench_{}.so", getpid());
  codegen::link_shared(objects, path);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::filesystem::remove(path);
  std::vector<AlignedBuffer> buffers;
  std::vector<void*> pointers;
  for (Value v : lowered.arguments) {
    const auto it = layouts.find(v);
    const Dim count = it == layouts.end() ? product(g.type(v).shape)
                                          : schedule::physical_elements(it->second, g.type(v).shape);
    buffers.emplace_back(static_cast<size_t>(count.value()) * 4);
    auto* data = reinterpret_cast<float*>(buffers.back().data());
    for (int64_t i = 0; i < count.value(); ++i) data[i] = static_cast<float>(i * 7919 % 1000) / 1000.0f;
    pointers.push_back(data);
  }
  for (const schedule::LoweredKernel::Partial& partial : lowered.partials) {
    buffers.emplace_back(static_cast<size_t>(partial.elements.value() * bytes_of(partial.element)));
    pointers.push_back(buffers.back().data());
  }
  AlignedBuffer scratch(static_cast<size_t>(k.scratch_bytes.value()) + 64);
  std::vector<std::pair<Run, int64_t>> phases;
  for (size_t p = 0; p < k.phases.size(); ++p)
    phases.push_back(
        {reinterpret_cast<Run>(dlsym(library, codegen::phase_symbol(k, p).c_str())),
         reinterpret_cast<Count>(dlsym(library, codegen::block_count_symbol(k, p).c_str()))(nullptr)});
  const auto once = [&] {
    for (const auto& [run, blocks] : phases)
      run(pointers.data(), nullptr, reinterpret_cast<char*>(scratch.data()), 0, blocks);
  };
  once();
  const double first = bench::processor_seconds();
  once();
  const int repeats =
      std::max(1, static_cast<int>(2e-3 / std::max(bench::processor_seconds() - first, 1e-7)));
  std::vector<double> shares, times;
  for (int round = 0; round < 25; ++round) {
    const double peak = bench::fma_peak(m.vector_bits);
    const double start = bench::processor_seconds();
    for (int i = 0; i < repeats; ++i) once();
    const double time = (bench::processor_seconds() - start) / repeats;
    times.push_back(time);
    shares.push_back(static_cast<double>(flops) / time * 1e-9 / peak);
  }
  std::sort(shares.begin(), shares.end());
  std::sort(times.begin(), times.end());
  fmt::print("{:32} {:9.1f} us {:5.1f} % of peak  compile {:6.1f} ms  phases {} scratch {}\n", c.name,
             times[12] * 1e6, shares[12] * 100, compile_ms, k.phases.size(), k.scratch_bytes.value());
  std::fflush(stdout);
  dlclose(library);
}

}  // namespace

int main(int argc, char** argv) {
  const machine::Machine m = machine::host_machine(argc > 1 ? argv[1] : "native");
  for (const Case& c : cases(m))
    if (argc < 3 || c.name.find(argv[2]) != std::string::npos) measure(c, m);
}

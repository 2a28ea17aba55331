// Speed of one generated kernel: MatMul with bias and ReLU on packed weights, built by hand as the schedule lowers it,
// against the machine's multiply-add peak, measured in turns.
#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/fma_peak.h"
#include "codegen/codegen.h"
#include "kernel/kernel.h"
#include "kernel/passes/pipeline.h"

namespace {

using namespace fusewise;
using namespace fusewise::kernel;
using bench::seconds;

struct Tile {
  int rows, columns;
  bool prefetches;
};

struct Problem {
  int64_t m = 256, k = 768, n = 3072;
};

// Rows of one block: their part of A stays in the second-level cache while all panels pass.
int64_t rows_per_block(const Tile& tile) { return 96 / tile.rows * tile.rows; }

// For a block of rows and a panel (together the grid) / rows step MR: accumulate over k, add the bias, ReLU, store.
// Parameters: M, K, N, lda, ldc.
Kernel matmul(const Tile& tile) {
  Kernel kernel;
  kernel.name = fmt::format("matmul_{}x{}", tile.rows, tile.columns);
  kernel.parameters = {"M", "K", "N", "lda", "ldc"};
  Builder b(kernel);
  const BufferId A = b.buffer({.name = "A"});
  const BufferId B = b.buffer({.name = "B"});
  const BufferId bias = b.buffer({.name = "bias"});
  const BufferId C = b.buffer({.name = "C", .written = true});
  const ExprId M = b.parameter(0), K = b.parameter(1), N = b.parameter(2), lda = b.parameter(3),
               ldc = b.parameter(4);
  const ExprId zero = b.integer(0);
  const int MR = tile.rows, NR = tile.columns;
  const Type single = {DataType::float32, 1};
  const VariableId block = b.variable("block", {}), panel = b.variable("panel", {}),
                   start = b.variable("start", {}), m0 = b.variable("m0", {}), k = b.variable("k", {});
  const BufferId acc = b.buffer({.name = "acc", .scope = Scope::registers, .size = b.integer(MR * NR)});
  const auto tile_loop = [&](const char* name, auto&& body) {
    const VariableId u = b.variable("u", {}), v = b.variable(name, {});
    const ExprId row = b.read(u), column = b.read(v);
    const StmtId inner = body(row, column, b.add(b.mul(row, b.integer(NR)), column));
    return b.loop(LoopKind::unrolled, u, zero, b.integer(MR), 1,
                  b.loop(LoopKind::vector, v, zero, b.integer(NR), 1, inner));
  };
  const ExprId panel_start = b.mul(b.mul(b.read(panel), b.integer(NR)), K);
  const StmtId clear =
      tile_loop("v", [&](ExprId, ExprId, ExprId at) { return b.store(acc, at, b.floating(single, 0)); });
  const StmtId update = tile_loop("v", [&](ExprId u, ExprId v, ExprId at) {
    const ExprId a = b.load(A, b.add(b.mul(b.add(b.read(m0), u), lda), b.read(k)));
    const ExprId w = b.load(B, b.add(b.add(panel_start, b.mul(b.read(k), b.integer(NR))), v));
    return b.store(acc, at, b.fma(a, w, b.load(acc, at)));
  });
  std::vector<StmtId> step = {update};
  if (tile.prefetches) {
    // The next panel, spread over the row tiles: 4 lines for 4 steps of k while there is any of it left.
    const ExprId tile_index = b.floor_div(b.sub(b.read(m0), b.read(start)), b.integer(MR));
    const ExprId at = b.mul(b.add(b.mul(tile_index, K), b.read(k)), b.integer(16));
    const ExprId next_panel = b.mul(K, b.integer(NR));
    step.push_back(b.prefetch(B, b.add(b.add(panel_start, next_panel), b.min(at, next_panel)), 2));
  }
  const StmtId reduce = b.loop(LoopKind::serial, k, zero, K, 1, b.block(step));
  const StmtId finish = tile_loop("v", [&](ExprId u, ExprId v, ExprId at) {
    const ExprId column = b.add(b.mul(b.read(panel), b.integer(NR)), v);
    const ExprId sum = b.apply(ScalarOp::add, single, b.load(acc, at), b.load(bias, column));
    const ExprId value = b.apply(ScalarOp::max, single, sum, b.floating(single, 0));
    return b.store(C, b.add(b.mul(b.add(b.read(m0), u), ldc), column), value);
  });
  const ExprId MC = b.integer(rows_per_block(tile));
  const ExprId panels = b.floor_div(N, b.integer(NR));
  const ExprId first = b.read(start);
  const StmtId rows = b.loop(LoopKind::serial, m0, first, b.min(b.add(first, MC), M), MR,
                             b.block({b.allocate(acc), clear, reduce, finish}));
  const StmtId body = b.block({b.let(panel, b.floor_mod(b.read(block), panels)),
                               b.let(start, b.mul(b.floor_div(b.read(block), panels), MC)), rows});
  const ExprId row_blocks = b.floor_div(b.add(M, b.sub(MC, b.integer(1))), MC);
  kernel.phases = {b.loop(LoopKind::block, block, zero, b.mul(row_blocks, panels), 1, body)};
  return kernel;
}

struct Loaded {
  void (*run)(void* const*, const int64_t*, char*, int64_t, int64_t) = nullptr;
  int64_t (*blocks)(const int64_t*) = nullptr;
};

Loaded load(const Kernel& kernel, const codegen::CpuTarget& target) {
  const double start = seconds();
  const auto objects = codegen::compile_objects({&kernel, 1}, target, 1);
  const double compiled = seconds();
  const auto path = std::filesystem::temp_directory_path() / (kernel.name + ".so");
  codegen::link_shared(objects, path);
  const double linked = seconds();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::filesystem::remove(path);
  if (library == nullptr) {
    fmt::print(stderr, "error: {}\n", dlerror());
    std::exit(4);
  }
  Loaded result;
  result.run = std::bit_cast<decltype(result.run)>(dlsym(library, codegen::phase_symbol(kernel, 0).c_str()));
  result.blocks =
      std::bit_cast<decltype(result.blocks)>(dlsym(library, codegen::block_count_symbol(kernel, 0).c_str()));
  fmt::print("  compile {:.1f} ms, link {:.1f} ms\n", (compiled - start) * 1e3, (linked - compiled) * 1e3);
  return result;
}

// Cache lines, as the runtime's buffers are.
template <class T>
struct LineAllocator {
  using value_type = T;
  T* allocate(size_t count) {
    return static_cast<T*>(std::aligned_alloc(64, (count * sizeof(T) + 63) / 64 * 64));
  }
  void deallocate(T* memory, size_t) { std::free(memory); }
  friend bool operator==(const LineAllocator&, const LineAllocator&) { return true; }
};
using Floats = std::vector<float, LineAllocator<float>>;

Floats random_values(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  Floats values(static_cast<size_t>(count));
  for (float& value : values) value = distribution(generator);
  return values;
}

// The greatest difference from a plain loop, over a sample of the elements.
double error_of(const Problem& p, const Tile& tile, const Floats& a, const Floats& w, const Floats& bias,
                const Floats& c) {
  double worst = 0;
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = i % 7; j < p.n; j += 7) {
      const int64_t panel = j / tile.columns, column = j % tile.columns;
      float sum = 0;
      for (int64_t k = 0; k < p.k; ++k)
        sum = std::fma(a[static_cast<size_t>(i * p.k + k)],
                       w[static_cast<size_t>((panel * p.k + k) * tile.columns + column)], sum);
      const float expected = std::max(sum + bias[static_cast<size_t>(j)], 0.0F);
      worst = std::max(worst, static_cast<double>(std::fabs(expected - c[static_cast<size_t>(i * p.n + j)])));
    }
  }
  return worst;
}

void measure(Problem p, const Tile& tile, const codegen::CpuTarget& target, int unroll, bool dump) {
  p.m = p.m / tile.rows * tile.rows;
  p.n = p.n / tile.columns * tile.columns;
  const std::string name = fmt::format("{} {}x{}{} M={} K={} N={}", target.cpu, tile.rows, tile.columns,
                                       tile.prefetches ? " prefetch" : "", p.m, p.k, p.n);
  fmt::print("{}\n", name);
  PassOptions options;
  options.vector_bits = target.vector_bits;
  options.unroll_factor = unroll;
  if (dump)
    options.dump = [](std::string_view pass, const Kernel& kernel) {
      fmt::print("== {}\n{}\n", pass, print(kernel));
    };
  const double start = seconds();
  const Kernel kernel = run_passes(matmul(tile), options);
  fmt::print("  passes {:.1f} ms,", (seconds() - start) * 1e3);
  if (dump) fmt::print("{}\n", codegen::emit_text(kernel, target, codegen::TextForm::assembly));
  const Loaded loaded = load(kernel, target);
  const auto a = random_values(p.m * p.k, 1), bias = random_values(p.n, 3);
  const auto w = random_values((p.n + tile.columns) * p.k, 2);
  Floats c(static_cast<size_t>(p.m * p.n));
  void* buffers[] = {const_cast<float*>(a.data()), const_cast<float*>(w.data()),
                     const_cast<float*>(bias.data()), c.data()};
  const int64_t parameters[] = {p.m, p.k, p.n, p.k, p.n};
  const int64_t blocks = loaded.blocks(parameters);
  double best = 0, best_share = 0, peak = 0;
  for (int round = 0; round < 15; ++round) {
    const double now_peak = bench::fma_peak(target.vector_bits);
    const double begin = bench::processor_seconds();
    loaded.run(buffers, parameters, nullptr, 0, blocks);
    const double flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.k) * static_cast<double>(p.n);
    const double speed = flops / (bench::processor_seconds() - begin) * 1e-9;
    peak = std::max(peak, now_peak);
    best = std::max(best, speed);
    best_share = std::max(best_share, speed / now_peak);
  }
  fmt::print("  {:.1f} GFLOP/s of {:.1f}: {:.0f} % (best round {:.0f} %), worst error {:.1e}\n", best, peak,
             100 * best / peak, 100 * best_share, error_of(p, tile, a, w, bias, c));
}

}  // namespace

// Arguments: a tile as ROWSxCOLUMNS (all by default), m=, k=, n=, unroll=; "dump" prints the kernels.
int main(int argc, char** argv) {
  bool dump = false;
  int unroll = PassOptions{}.unroll_factor;
  Problem problem;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "dump")
      dump = true;
    else if (word.starts_with("m="))
      problem.m = std::atoll(word.c_str() + 2);
    else if (word.starts_with("k="))
      problem.k = std::atoll(word.c_str() + 2);
    else if (word.starts_with("n="))
      problem.n = std::atoll(word.c_str() + 2);
    else if (word.starts_with("unroll="))
      unroll = std::atoi(word.c_str() + 7);
    else
      only = word;
  }
  const auto run = [&](const codegen::CpuTarget& target, std::initializer_list<std::pair<int, int>> tiles) {
    for (const auto& [rows, columns] : tiles)
      for (bool prefetches : {false, true})
        if (only.empty() || only == fmt::format("{}x{}", rows, columns))
          measure(problem, {rows, columns, prefetches}, target, unroll, dump);
  };
  if (codegen::host_runs("x86-64-v4"))
    run(codegen::host_target(), {{8, 48}, {6, 64}, {14, 32}, {12, 32}});
  else
    fmt::print("AVX-512 tiles are left out: this processor has no AVX-512\n");
  if (codegen::host_runs("x86-64-v3")) run(codegen::target_named("x86-64-v3"), {{6, 16}, {4, 24}});
  return 0;
}

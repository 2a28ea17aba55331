// Regions under schedules for a GPU: through the kernel interpreter, which reports races and barriers that not all
// threads reach, and as printed OpenCL C on the drivers that are installed, to the bit. pocl runs the threads of a group
// one after the other and hides barriers that are missing; Mesa's driver does not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <map>

#include "base/error.h"
#include "compiler/device_runner.h"
#include "compiler/device_stress.h"
#include "compiler/operand_views.h"
#include "fusion/tiles/choose_group_schedule.h"
#include "graph/builder.h"
#include "graph/text.h"
#include "kernel/synchronization.h"
#include "kernel/verifier.h"
#include "kernel/visit.h"
#include "known_blocks.h"
#include "schedule/schedule_text.h"
#include "support/random.h"

namespace fusewise::test {
namespace {

using graph::Graph;
using graph::GraphBuilder;
using graph::Tensor;
using graph::Value;

// A region with the schedule that is chosen for it; no kernel where none is possible.
struct Prepared : PreparedKernel {
  std::shared_ptr<const RegionOracle> oracle;
  fusion::GroupSchedule chosen;
};

Prepared prepared(const Graph& graph, const schedule::Layouts& layouts, const std::vector<Tensor>& inputs) {
  Prepared result;
  const graph::Region region = whole_region(graph);
  result.oracle = std::make_shared<RegionOracle>(graph, region, layouts, inputs);
  const schedule::RegionForms forms = schedule::region_forms(graph, region);
  result.chosen = fusion::choose_group_schedule(forms, layouts, machine::plain_gpu(), {});
  if (result.chosen.verdict.allowed())
    static_cast<PreparedKernel&>(result) = prepare_kernel(forms, result.chosen.tree);
  return result;
}

// What the kernel interpreter says about both forms of the kernel; empty if they are right.
std::string interpreted(const Prepared& p) {
  for (const kernel::Kernel* kernel : {&p.lowered.kernel, &p.passed})
    if (const std::string wrong = p.oracle->interpret(p.lowered, *kernel); !wrong.empty())
      return fmt::format("{}\n{}{}", wrong, schedule::to_text(p.chosen.schedule), kernel::print(*kernel));
  return {};
}

// Every device that is installed, each with the regions of one test.
std::vector<DeviceBatch> batches_of(std::initializer_list<const char*> platforms) {
  std::vector<DeviceBatch> batches;
  for (const char* platform : platforms)
    if (const auto* device = device_of(platform)) batches.emplace_back(*device);
  return batches;
}

constexpr const char* pocl = "Portable Computing Language";
constexpr const char* mesa = "rusticl";

// Regions made by hand: interpreted at once, run together.
class Blocks {
 public:
  Blocks() : batches_(batches_of({pocl, mesa})) {}

  // Expects one kernel of so many phases. Mesa's compiler takes seconds for a kernel, so that it gets few.
  void add(const std::string& name, std::unique_ptr<Graph> graph, const std::vector<Tensor>& inputs,
           size_t phases, bool shares, bool on_mesa = false, bool on_devices = true) {
    graphs_.push_back(std::make_unique<Graph>(compiler::view_operands(*graph)));
    Prepared p = prepared(*graphs_.back(), layouts_, inputs);
    ASSERT_TRUE(p.chosen.verdict.allowed()) << name << ": " << p.chosen.verdict.detail;
    EXPECT_EQ(p.passed.phases.size(), phases) << name << "\n" << schedule::to_text(p.chosen.schedule);
    EXPECT_EQ(schedule::shared_bytes(p.lowered).value_or(0) > 0, shares) << name << "\n"
                                                                         << kernel::print(p.lowered.kernel);
    const std::string wrong = interpreted(p);
    ASSERT_EQ(wrong, "") << name;
    for (DeviceBatch& batch : batches_)
      if (on_devices && (on_mesa || batch.platform() != mesa)) batch.add(p.oracle, p, name, {});
  }
  void run() {
    for (DeviceBatch& batch : batches_) {
      const auto start = std::chrono::steady_clock::now();
      for (const DeviceBatch::Result& result : batch.run()) EXPECT_EQ(result.wrong, "");
      const auto end = std::chrono::steady_clock::now();
      fmt::print("ran in {:.1f} s\n", std::chrono::duration<double>(end - start).count());
    }
  }

 private:
  std::vector<std::unique_ptr<Graph>> graphs_;
  schedule::Layouts layouts_;
  std::vector<DeviceBatch> batches_;
};

Tensor random_tensor(std::vector<int64_t> shape, unsigned seed) {
  Tensor t(DataType::float32, std::move(shape));
  Random random(seed);
  for (float& x : t.mutable_as<float>()) x = static_cast<float>(random.unit() * 4 - 2);
  return t;
}

Value gelu(GraphBuilder& b, Value x) {
  const Value scaled = b.map_broadcast(ScalarOp::mul, {x, b.scalar(DataType::float32, 0.70710678)});
  const Value one =
      b.map_broadcast(ScalarOp::add, {b.map(ScalarOp::erf, {scaled}), b.scalar(DataType::float32, 1.0)});
  const Value half = b.map_broadcast(ScalarOp::mul, {x, b.scalar(DataType::float32, 0.5)});
  return b.map(ScalarOp::mul, {half, one});
}

bool is_reached(const kernel::Kernel& kernel, kernel::StmtId wanted) {
  bool found = false;
  kernel::visit_statements(kernel, [&](kernel::StmtId id) { found = found || id == wanted; });
  return found;
}

// The kernel with a statement so many places further on in its block; the same where there is no such place.
kernel::Kernel moved(kernel::Kernel kernel, kernel::StmtId wanted, int by) {
  for (kernel::Stmt& stmt : kernel.stmts) {
    if (stmt.kind != kernel::StmtKind::block) continue;
    const auto at = std::find(stmt.children.begin(), stmt.children.end(), wanted) - stmt.children.begin();
    const int64_t to = at + by, count = static_cast<int64_t>(stmt.children.size());
    if (at < count && to >= 0 && to < count)
      std::swap(stmt.children[static_cast<size_t>(at)], stmt.children[static_cast<size_t>(to)]);
  }
  return kernel;
}

kernel::ExprId first_thread(const kernel::Kernel& kernel, kernel::Builder& builder) {
  for (const kernel::Stmt& stmt : kernel.stmts)
    if (stmt.kind == kernel::StmtKind::loop && stmt.loop == kernel::LoopKind::thread)
      return builder.less(builder.read(stmt.target), builder.integer(1));
  return builder.boolean(false);
}

// Either the kernel's text tells that it is wrong, or it is not: moving a barrier past what has nothing to do with it
// does no harm.
void expect_noticed(const Prepared& p, const kernel::Kernel& kernel) {
  try {
    kernel::verify(kernel);
    kernel::verify_synchronization(kernel);
  } catch (const InternalError&) {
    return;
  }
  EXPECT_EQ(p.oracle->interpret(p.lowered, kernel), "") << kernel::print(kernel);
}

TEST(OpenclRegions, MatMulBiasGeluInTiles) {
  Blocks blocks;
  for (const auto& [m, k, n] :
       {std::array<int64_t, 3>{1, 1, 1}, {33, 17, 65}, {64, 32, 32}, {3, 0, 4}, {0, 5, 4}}) {
    auto graph = std::make_unique<Graph>();
    GraphBuilder b(*graph);
    const Value x = b.input("x", {DataType::float32, {m, k}}), w = b.input("w", {DataType::float32, {k, n}});
    const Value bias = b.input("bias", {DataType::float32, {n}});
    b.output(gelu(b, b.map_broadcast(ScalarOp::add, {b.matmul(x, w), bias})), "y");
    blocks.add(fmt::format("{} x {} x {}", m, k, n), std::move(graph),
               {random_tensor({m, k}, 1), random_tensor({k, n}, 2), random_tensor({n}, 3)}, 1, k > 0, false);
  }
  // All three extents known at run time only.
  auto graph = std::make_unique<Graph>();
  GraphBuilder b(*graph);
  const Dim m = Dim::symbol("m"), k = Dim::symbol("k"), n = Dim::symbol("n");
  const Value x = b.input("x", {DataType::float32, {m, k}}), w = b.input("w", {DataType::float32, {k, n}});
  b.output(gelu(b, b.matmul(x, w)), "y");
  blocks.add("symbolic", std::move(graph), {random_tensor({45, 19}, 1), random_tensor({19, 50}, 2)}, 1, true);
  blocks.run();
}

// softmax(q k / sqrt(d) + mask) v in one kernel of one phase: no part of it leaves the group.
TEST(OpenclRegions, AttentionIsOneKernel) {
  Blocks blocks;
  for (const auto& [heads, queries, keys, width] :
       {std::array<int64_t, 4>{2, 5, 7, 4}, {2, 17, 33, 16}, {1, 3, 600, 8}, {2, 0, 5, 4}}) {
    auto graph = std::make_unique<Graph>();
    GraphBuilder b(*graph);
    const Value q = b.input("q", {DataType::float32, {heads, queries, width}});
    const Value k = b.input("k", {DataType::float32, {heads, width, keys}});
    const Value v = b.input("v", {DataType::float32, {heads, keys, width}});
    const Value mask = b.input("mask", {DataType::float32, {queries, keys}});
    const Value scores = b.map_broadcast(ScalarOp::mul, {b.matmul(q, k), b.scalar(DataType::float32, 0.25)});
    b.output(b.matmul(softmax(b, b.map_broadcast(ScalarOp::add, {scores, mask})), v), "y");
    Tensor m = random_tensor({queries, keys}, 4);
    for (size_t i = 0; i < m.mutable_as<float>().size(); i += 3)
      m.mutable_as<float>()[i] = -std::numeric_limits<float>::infinity();
    blocks.add(fmt::format("{} heads, {} queries, {} keys, {} wide", heads, queries, keys, width),
               std::move(graph),
               {random_tensor({heads, queries, width}, 1), random_tensor({heads, width, keys}, 2),
                random_tensor({heads, keys, width}, 3), m},
               1, true, false);
  }
  blocks.run();
}

TEST(OpenclRegions, NormalisationAndTwoOutputs) {
  Blocks blocks;
  for (const int64_t n : {1, 48, 1100}) {
    auto graph = std::make_unique<Graph>();
    GraphBuilder b(*graph);
    const Value x = b.input("x", {DataType::float32, {6, n}}), r = b.input("r", {DataType::float32, {6, n}});
    const Value t = b.map(ScalarOp::add, {x, r});
    const Value count = b.scalar(DataType::float32, static_cast<double>(n));
    const Value mean = b.map_broadcast(ScalarOp::div, {b.reduce(t, Combine::sum, {1}, true), count});
    const Value d = b.map_broadcast(ScalarOp::sub, {t, mean});
    const Value variance = b.map_broadcast(
        ScalarOp::div, {b.reduce(b.map(ScalarOp::mul, {d, d}), Combine::sum, {1}, true), count});
    const Value root = b.map(ScalarOp::sqrt,
                             {b.map_broadcast(ScalarOp::add, {variance, b.scalar(DataType::float32, 1e-5)})});
    b.output(t, "sum");
    b.output(b.map_broadcast(ScalarOp::div, {d, root}), "y");
    blocks.add(fmt::format("{} wide", n), std::move(graph),
               {random_tensor({6, n}, 1), random_tensor({6, n}, 2)}, 1, true, true);
  }
  blocks.run();
}

// A long row is the work of a team: a thread for each lane, blocks beside each other and one after the other.
TEST(OpenclRegions, RowsInTeams) {
  Blocks blocks;
  constexpr std::array<std::array<int64_t, 2>, 12> sizes = {{{3, 0},
                                                             {1, 1},
                                                             {7, 31},
                                                             {7, 32},
                                                             {5, 33},
                                                             {9, 511},
                                                             {2, 512},
                                                             {3, 513},
                                                             {1, 1025},
                                                             {2, 2048},
                                                             {5, 3000},
                                                             {1, 9001}}};
  for (const auto& [rows, n] : sizes) {
    auto graph = std::make_unique<Graph>();
    GraphBuilder b(*graph);
    // Reduced over two axes of odd sizes where that is possible, under a symbol now and then.
    const bool split = n % 3 == 0, symbolic = n % 2 == 1;
    const Dim extent = symbolic ? Dim::symbol("n") : Dim(n);
    const Shape shape = split ? Shape{rows, 3, symbolic ? extent : Dim(n / 3)} : Shape{rows, extent};
    const std::vector<int64_t> sizes_of =
        split ? std::vector<int64_t>{rows, 3, n / 3} : std::vector<int64_t>{rows, n};
    const std::vector<int> axes = split ? std::vector<int>{1, 2} : std::vector<int>{1};
    const Value x = b.input("x", {DataType::float32, shape});
    const Value most = b.reduce(x, Combine::max, axes, true);
    const Value shifted = b.map_broadcast(ScalarOp::sub, {x, most});
    b.output(b.map_broadcast(ScalarOp::mul, {shifted, b.reduce(shifted, Combine::sum, axes, true)}), "y");
    blocks.add(fmt::format("{} rows of {}", rows, n), std::move(graph), {random_tensor(sizes_of, 5)}, 1, true,
               n == 1025, n == 33 || n == 1025 || n == 3000);
  }
  // Nothing but the reduction, in other types.
  for (const DataType type : {DataType::float16, DataType::float64, DataType::int32}) {
    auto graph = std::make_unique<Graph>();
    GraphBuilder b(*graph);
    b.output(b.reduce(b.cast(b.input("x", {DataType::float32, {4, 1100}}), type), Combine::sum, {1}, false),
             "y");
    blocks.add(std::string(name_of(type)), std::move(graph), {random_tensor({4, 1100}, 6)}, 1, true);
  }
  blocks.run();
}

// A thread's tile has one place for an axis of one element, and nothing beyond it, however far a border reaches.
TEST(OpenclRegions, PaddedProducts) {
  Blocks blocks;
  constexpr std::array<std::array<int64_t, 2>, 5> sizes = {{{1, 1}, {1, 5}, {3, 1}, {3, 5}, {9, 33}}};
  for (const auto& [rows, columns] : sizes) {
    auto graph = std::make_unique<Graph>();
    GraphBuilder b(*graph);
    const Value x = b.input("x", {DataType::float32, {rows, 40}});
    const Value w = b.input("w", {DataType::float32, {40, columns}});
    const Value border = b.scalar(DataType::float32, 0.5);
    b.output(b.pad(b.matmul(x, w), border, {1, 3}, {2, 3}), "y");
    blocks.add(fmt::format("{} x {} with a border", rows, columns), std::move(graph),
               {random_tensor({rows, 40}, 1), random_tensor({40, columns}, 2)}, 1, true);
  }
  blocks.run();
}

// A kernel without one of its barriers, or with one elsewhere, is refused by its text alone.
TEST(OpenclRegions, EveryBarrierIsNeeded) {
  const auto needed = [](const std::string& name, const Graph& graph, const std::vector<Tensor>& inputs) {
    const schedule::Layouts layouts;
    const Graph viewed = compiler::view_operands(graph);
    const Prepared p = prepared(viewed, layouts, inputs);
    ASSERT_EQ(interpreted(p), "") << name;
    int barriers = 0;
    for (const kernel::Kernel* right : {&p.lowered.kernel, &p.passed})
      for (size_t i = 0; i < right->stmts.size(); ++i) {
        if (right->stmts[i].kind != kernel::StmtKind::barrier) continue;
        kernel::Kernel damaged = *right;
        damaged.stmts[i] = kernel::Stmt{};
        if (!is_reached(*right, static_cast<kernel::StmtId>(i))) continue;
        ++barriers;
        EXPECT_THROW(kernel::verify_synchronization(damaged), InternalError)
            << name << ", without barrier " << i << "\n"
            << kernel::print(*right);
        // One statement earlier or later, and only for some threads.
        for (const int by : {-1, 1}) expect_noticed(p, moved(*right, static_cast<kernel::StmtId>(i), by));
        damaged = *right;
        kernel::Builder builder = kernel::Builder::resume(damaged);
        const kernel::StmtId barrier = builder.barrier();
        damaged.stmts[i] = damaged.stmt(builder.branch(first_thread(damaged, builder), barrier));
        EXPECT_THROW(kernel::verify(damaged), InternalError) << name;
      }
    EXPECT_GE(barriers, 2) << name;
  };
  Graph product, norm, attention;
  GraphBuilder b(product), n(norm), a(attention);
  const Value left = b.input("x", {DataType::float32, {9, 40}});
  const Value right = b.input("w", {DataType::float32, {40, 12}});
  b.output(gelu(b, b.matmul(left, right)), "y");
  needed("product", product, {random_tensor({9, 40}, 1), random_tensor({40, 12}, 2)});

  const Value x = n.input("x", {DataType::float32, {6, 1100}});
  const Value d = n.map_broadcast(ScalarOp::sub, {x, n.reduce(x, Combine::sum, {1}, true)});
  const Value squares = n.reduce(n.map(ScalarOp::mul, {d, d}), Combine::sum, {1}, true);
  n.output(n.map_broadcast(ScalarOp::div, {d, squares}), "y");
  needed("norm", norm, {random_tensor({6, 1100}, 3)});

  const Value q = a.input("q", {DataType::float32, {2, 5, 8}});
  const Value k = a.input("k", {DataType::float32, {2, 8, 40}});
  const Value v = a.input("v", {DataType::float32, {2, 40, 8}});
  a.output(a.matmul(softmax(a, a.matmul(q, k)), v), "y");
  needed("attention", attention,
         {random_tensor({2, 5, 8}, 4), random_tensor({2, 8, 40}, 5), random_tensor({2, 40, 8}, 6)});
}

// Long runs: build/release/stress_devices.
TEST(OpenclRegions, RandomRegionsAreRight) {
  DeviceStress options;
  options.regions = 240;
  options.device = device_of(pocl);
  options.print_every = 2;
  DeviceTally all = run_stress(options);
  fmt::print("{}", to_text(all));
  for (size_t i = 0; i < all.wrong.size() && i < 3; ++i) ADD_FAILURE() << all.wrong[i];
  EXPECT_GT(all.outcomes["1 phases"] * 2, all.regions);
}

}  // namespace
}  // namespace fusewise::test

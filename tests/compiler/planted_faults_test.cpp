// Faults that lowering could have, planted one at a time into kernels that are right: the comparison with the reference
// interpreter, or the kernel interpreter's own checks, must report every one.
#include <gtest/gtest.h>

#include <functional>

#include "fusion/tiles/choose_schedule.h"
#include "graph/builder.h"
#include "kernel/passes/pipeline.h"
#include "region_runner.h"
#include "schedule/schedule_text.h"
#include "support/random.h"

namespace fusewise::test {
namespace {

using graph::Graph;
using graph::GraphBuilder;
using graph::Tensor;
using graph::Value;
using kernel::Builder;
using kernel::ExprKind;
using kernel::Kernel;
using kernel::Scope;
using kernel::Stmt;
using kernel::StmtId;
using kernel::StmtKind;

// A small graph with inputs to run it on.
struct Example {
  Graph graph;
  GraphBuilder builder{graph};
  std::vector<Tensor> inputs;
  Random random{7};

  Value input(Shape shape, std::vector<int64_t> sizes) {
    Tensor t(DataType::float32, std::move(sizes));
    for (float& x : t.mutable_as<float>()) x = static_cast<float>(random.unit() * 4 - 2);
    inputs.push_back(t);
    return builder.input("x" + std::to_string(inputs.size()), {DataType::float32, std::move(shape)});
  }
};

// The example lowered by a schedule's text (the chooser's, if empty), ready to be damaged.
class Planted {
 public:
  Planted(Example& example, const std::string& schedule, schedule::Layouts layouts = {})
      : example_(example),
        layouts_(std::move(layouts)),
        region_(whole_region(example.graph)),
        forms_(schedule::region_forms(example.graph, region_)),
        oracle_(example.graph, region_, layouts_, example.inputs) {
    schedule_ = schedule.empty()
                    ? fusion::choose_schedule(forms_, layouts_, machine::host_machine("x86-64-v3"), {})
                    : schedule::parse_schedule(schedule);
    lowered_ = lower(schedule_, layouts_);
    EXPECT_EQ(oracle_.interpret(lowered_, lowered_.kernel), "");
  }

  schedule::LoweredKernel lower(const schedule::Schedule& schedule, const schedule::Layouts& layouts) {
    const schedule::TreeResult built = schedule::build_tree(forms_, schedule, layouts);
    EXPECT_TRUE(built.verdict.allowed()) << built.verdict.code << ": " << built.verdict.detail;
    schedule::LowerOptions options;
    options.vector_lanes = 8;
    return schedule::lower(forms_, built.tree, options);
  }

  // Changes the kernel (`damage` says how often it found what it looks for) and expects a report, also after the passes
  // unless they are free to choose what an undefined value is.
  void expect_caught(const std::function<int(Kernel&, Builder&)>& damage, bool defined = true) {
    Kernel kernel = lowered_.kernel;
    Builder builder = Builder::resume(kernel);
    ASSERT_GT(damage(kernel, builder), 0) << kernel::print(kernel);
    EXPECT_NE(oracle_.interpret(lowered_, kernel), "") << kernel::print(kernel);
    if (!defined) return;
    kernel::PassOptions passes;
    passes.vector_bits = 256;
    EXPECT_NE(oracle_.interpret(lowered_, kernel::run_passes(kernel, passes)), "") << kernel::print(kernel);
  }
  void expect_caught(const schedule::LoweredKernel& other) {
    EXPECT_NE(oracle_.interpret(other, other.kernel), "") << kernel::print(other.kernel);
  }

  schedule::Schedule schedule() const { return schedule_; }
  const schedule::Layouts& layouts() const { return layouts_; }

 private:
  Example& example_;
  schedule::Layouts layouts_;
  graph::Region region_;
  schedule::RegionForms forms_;
  RegionOracle oracle_;
  schedule::Schedule schedule_;
  schedule::LoweredKernel lowered_;
};

bool stores_to(const Kernel& kernel, const Stmt& stmt, Scope scope) {
  return stmt.kind == StmtKind::store && kernel.buffers[stmt.target].scope == scope;
}

// Whether some statement at or below `id` fits.
bool holds(const Kernel& kernel, StmtId id, const std::function<bool(const Stmt&)>& fits) {
  const Stmt& stmt = kernel.stmt(id);
  if (fits(stmt)) return true;
  for (StmtId child : stmt.children)
    if (holds(kernel, child, fits)) return true;
  return false;
}

// The innermost loops that hold a fitting statement get another end.
int shorten_loops(Kernel& kernel, Builder& builder, const std::function<bool(const Stmt&)>& fits) {
  for (size_t i = 0; i < kernel.stmts.size(); ++i) {
    const Stmt loop = kernel.stmts[i];
    if (loop.kind != StmtKind::loop || loop.loop != kernel::LoopKind::serial) continue;
    const auto inner = [&](const Stmt& s) {
      return s.kind == StmtKind::loop && s.loop == kernel::LoopKind::serial;
    };
    if (!holds(kernel, loop.children[0], fits) || holds(kernel, loop.children[0], inner)) continue;
    kernel.stmts[i].b = builder.sub(loop.b, builder.integer(1));
    return 1;
  }
  return 0;
}

Value relu(GraphBuilder& b, Value x) {
  return b.map_broadcast(ScalarOp::max, {x, b.scalar(DataType::float32, 0.0)});
}

TEST(PlantedFaults, DroppedTailMask) {
  Example e;
  e.builder.output(relu(e.builder, e.input({Dim::symbol("n")}, {37})), "y");
  Planted planted(e, "");
  planted.expect_caught([](Kernel& kernel, Builder&) {
    int found = 0;
    for (kernel::Expr& x : kernel.exprs)
      if (x.kind == ExprKind::load && x.b != kernel::none) x.b = kernel::none;
    for (Stmt& s : kernel.stmts)
      if (s.kind == StmtKind::store && s.c != kernel::none) {
        s.c = kernel::none;
        ++found;
      }
    return found;
  });
}

TEST(PlantedFaults, BoundOffByOne) {
  Example e;
  e.builder.output(e.builder.matmul(e.input({5, 13}, {5, 13}), e.input({13, 9}, {13, 9})), "y");
  Planted planted(e, "");
  planted.expect_caught([](Kernel& kernel, Builder& builder) {
    return shorten_loops(kernel, builder,
                         [&](const Stmt& s) { return stores_to(kernel, s, Scope::registers); });
  });
}

// A window over a function that is stored first.
void windowed(Example& e) {
  graph::WindowReduceAttributes a;
  a.combine = Combine::max;
  a.window = {3, 3};
  a.strides = a.dilations = {1, 1};
  a.pad_low = a.pad_high = {1, 1};
  e.builder.output(e.builder.window_reduce(e.builder.map(ScalarOp::exp, {e.input({12, 10}, {12, 10})}), a),
                   "y");
}

TEST(PlantedFaults, MissingHaloRow) {
  Example e;
  windowed(e);
  Planted planted(e, R"(
stage %2 root phase=0 memory loops=[0:4 1:4] grid=1 vector=1 storage=[0 1]
stage %1 in=0 depth=1 scratch loops=[1:8 0:1] vector=1 storage=[0 1]
)");
  planted.expect_caught([](Kernel& kernel, Builder& builder) {
    return shorten_loops(kernel, builder,
                         [&](const Stmt& s) { return stores_to(kernel, s, Scope::scratch); });
  });
}

TEST(PlantedFaults, RingTooSmall) {
  Example e;
  windowed(e);
  Planted planted(e, R"(
stage %2 root phase=0 memory loops=[1:16 0:1] grid=0 vector=1 storage=[0 1]
stage %1 in=0 depth=2 scratch slide=0 loops=[] vector=1 storage=[0 1]
)");
  planted.expect_caught([](Kernel& kernel, Builder& builder) {
    const kernel::ExprId two = builder.integer(2);
    int found = 0;
    for (kernel::Expr& x : kernel.exprs)
      if (x.kind == ExprKind::native && x.native == kernel::Native::floor_mod &&
          builder.constant_value(x.b) == 3) {
        x.b = two;
        ++found;
      }
    return found;
  });
}

TEST(PlantedFaults, WrongPaddingValue) {
  Example e;
  const Value x = e.input({4, 5}, {4, 5});
  e.builder.output(e.builder.pad(x, e.builder.scalar(DataType::float32, 0.75), {1, 0}, {0, 2}), "y");
  Planted planted(e, "");
  planted.expect_caught([](Kernel& kernel, Builder&) {
    int found = 0;
    for (kernel::Expr& c : kernel.exprs)
      if (c.kind == ExprKind::constant && c.type.element == DataType::float32) {
        c.value = 0x3F000000;  // 0.5
        ++found;
      }
    return found;
  });
}

// The stores of a constant into registers: what accumulators begin with.
bool begins_accumulator(const Kernel& kernel, const Stmt& s) {
  return stores_to(kernel, s, Scope::registers) && kernel.expr(s.b).kind == ExprKind::constant;
}

TEST(PlantedFaults, UninitialisedAccumulator) {
  Example e;
  e.builder.output(e.builder.matmul(e.input({3, 7}, {3, 7}), e.input({7, 8}, {7, 8})), "y");
  Planted planted(e, "");
  planted.expect_caught(
      [](Kernel& kernel, Builder&) {
        int found = 0;
        for (Stmt& s : kernel.stmts)
          if (begins_accumulator(kernel, s)) {
            s = Stmt{};
            ++found;
          }
        return found;
      },
      false);
}

TEST(PlantedFaults, SwappedLayoutStrides) {
  Example e;
  const Value x = e.input({6, 6}, {6, 6});
  e.builder.output(e.builder.map(ScalarOp::sin, {x}), "y");
  Planted planted(e, "");
  schedule::Layouts swapped = planted.layouts();
  swapped[x] = schedule::Layout{{1, 0}, {}};
  planted.expect_caught(planted.lower(planted.schedule(), swapped));
}

TEST(PlantedFaults, WrongReductionOrder) {
  for (const bool lanes : {false, true}) {
    Example e;
    e.builder.output(e.builder.reduce(e.input({2, 1100}, {2, 1100}), Combine::sum, {1}), "y");
    Planted planted(e, "");
    schedule::Schedule other = planted.schedule();
    if (lanes)
      other.order.lanes = 8;
    else
      other.order.block = 256;
    planted.expect_caught(planted.lower(other, planted.layouts()));
  }
}

TEST(PlantedFaults, MissingStore) {
  Example e;
  e.builder.output(relu(e.builder, e.input({3, 21}, {3, 21})), "y");
  Planted planted(e, "");
  planted.expect_caught([](Kernel& kernel, Builder&) {
    for (Stmt& s : kernel.stmts)
      if (stores_to(kernel, s, Scope::argument)) {
        s = Stmt{};
        return 1;
      }
    return 0;
  });
}

// Every block stores one element too far: into the next block's box.
TEST(PlantedFaults, StoreOutsideOwnBox) {
  Example e;
  e.builder.output(relu(e.builder, e.input({6, 16}, {6, 16})), "y");
  Planted planted(e, R"(
stage %3 root phase=0 memory loops=[0:1] grid=1 vector=1 storage=[0 1]
)");
  planted.expect_caught([](Kernel& kernel, Builder& builder) {
    int found = 0;
    for (size_t i = 0; i < kernel.stmts.size(); ++i) {
      if (!stores_to(kernel, kernel.stmts[i], Scope::argument)) continue;
      const kernel::ExprId last = builder.integer(6 * 16 - 1);
      const kernel::ExprId beyond = builder.min(builder.add(kernel.stmts[i].a, builder.integer(1)), last);
      const StmtId again = builder.store(kernel.stmts[i].target, beyond, kernel.stmts[i].b);
      const Stmt first = kernel.stmts[i];
      const StmtId before = builder.store(first.target, first.a, first.b, first.c);
      kernel.stmts[i] = kernel.stmt(builder.block({before, again}));
      ++found;
      break;
    }
    return found;
  });
}

// The accumulators of one row go on in the next one.
TEST(PlantedFaults, StateSharedBetweenRows) {
  Example e;
  e.builder.output(e.builder.matmul(e.input({6, 7}, {6, 7}), e.input({7, 8}, {7, 8})), "y");
  Planted planted(e, R"(
stage %2 root phase=0 memory loops=[0:1] grid=0 vector=1 storage=[0 1]
)");
  planted.expect_caught([](Kernel& kernel, Builder& builder) {
    const auto begins = [&](const Stmt& s) { return begins_accumulator(kernel, s); };
    for (size_t i = 0; i < kernel.stmts.size(); ++i) {
      const Stmt loop = kernel.stmts[i];
      if (loop.kind != StmtKind::loop || loop.loop != kernel::LoopKind::serial ||
          kernel.stmt(loop.children[0]).kind != StmtKind::block)
        continue;
      std::vector<StmtId> outside, inside;
      std::vector<StmtId> flat, work = {loop.children[0]};
      while (!work.empty()) {
        const StmtId id = work.back();
        work.pop_back();
        const Stmt s = kernel.stmt(id);
        if (s.kind == StmtKind::block)
          work.insert(work.end(), s.children.rbegin(), s.children.rend());
        else
          flat.push_back(id);
      }
      for (StmtId id : flat) {
        const bool state = kernel.stmt(id).kind == StmtKind::allocate || holds(kernel, id, begins);
        (state ? outside : inside).push_back(id);
      }
      if (outside.empty()) continue;
      const StmtId rest =
          builder.loop(loop.loop, loop.target, loop.a, loop.b, loop.value, builder.block(inside));
      outside.push_back(rest);
      kernel.stmts[i] = kernel.stmt(builder.block(outside));
      return 1;
    }
    return 0;
  });
}

// What a later phase reads is not there yet.
TEST(PlantedFaults, PhasesInTheWrongOrder) {
  Example e;
  const Value x = e.input({9, 40}, {9, 40});
  e.builder.output(
      e.builder.map_broadcast(ScalarOp::sub, {x, e.builder.reduce(x, Combine::max, {0, 1}, true)}), "y");
  Planted planted(e, R"(
stage %4 root phase=1 memory loops=[0:2] grid=1 vector=1 storage=[0 1]
stage %1 root phase=0 memory loops=[] grid=0 vector=1 storage=[]
)");
  planted.expect_caught([](Kernel& kernel, Builder&) {
    std::swap(kernel.phases.at(0), kernel.phases.at(1));
    return 1;
  });
}

}  // namespace
}  // namespace fusewise::test

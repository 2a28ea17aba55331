// Reductions over blocks and in parts: chains composed at random, under the forms that the chooser proposes and under
// random ones, within the bounds of the interpreter in double precision; NaN and infinities as the reference has them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "fusion/tiles/reduction_forms.h"
#include "graph/builder.h"
#include "graph/text.h"
#include "random_schedule.h"
#include "region_generator.h"
#include "region_runner.h"
#include "schedule/schedule_text.h"

namespace fusewise::test {
namespace {

using graph::Graph;
using graph::GraphBuilder;
using graph::Tensor;
using graph::Value;

constexpr ReductionOrder free_order = {schedule::free_block, 16};

struct Chain {
  Graph graph;
  std::vector<Tensor> inputs;
};

// Values in front of, between and behind reductions over one axis.
class ChainBuilder {
 public:
  ChainBuilder(Chain& chain, Random& random) : chain_(chain), b_(chain.graph), random_(random) {}

  void build() {
    const int64_t rows = random_.one_of<int64_t>({1, 2, 5}), batch = random_.one_of<int64_t>({1, 1, 3});
    length_ = random_.one_of<int64_t>({1, 3, 31, 33, 64, 100, 257, 1500});
    last_ = random_.chance(65);
    axis_ = last_ ? 2 : 1;
    shape_ = last_ ? Shape{batch, rows, length_} : Shape{batch, length_, rows};
    Value x = input(shape_, true);
    if (random_.chance(40)) x = b_.map_broadcast(ScalarOp::mul, {x, number(0.125)});
    if (random_.chance(40)) x = b_.map(ScalarOp::add, {x, input(shape_, true)});
    switch (random_.below(5)) {
      case 0:
        return softmax(x);
      case 1:
        return variance(x);
      case 2:
        return normalised(x);
      case 3:
        return plain(x);
      default:
        return attention();
    }
  }

 private:
  Chain& chain_;
  GraphBuilder b_;
  Random& random_;
  Shape shape_;
  int64_t length_ = 1;
  bool last_ = true;
  int axis_ = 2;

  Value number(double v) { return b_.scalar(DataType::float32, v); }
  void out(Value v) { b_.output(v, fmt::format("o{}", chain_.graph.outputs.size())); }

  Value input(const Shape& shape, bool special) {
    const Value v = b_.input(fmt::format("x{}", chain_.inputs.size()), {DataType::float32, shape});
    std::vector<int64_t> extents;
    for (const Dim& d : shape) extents.push_back(d.value());
    Tensor t(DataType::float32, extents);
    const int kind = special ? static_cast<int>(random_.below(8)) : 7;
    for (float& e : t.mutable_as<float>()) {
      e = static_cast<float>(random_.between(-1000, 1000)) / 64.0f;
      if (kind == 0 && random_.chance(60)) e = -INFINITY;
      if (kind == 1) e = -INFINITY;
      if (kind == 2 && random_.chance(3)) e = NAN;
      if (kind == 3 && random_.chance(3)) e = INFINITY;
    }
    chain_.inputs.push_back(std::move(t));
    return v;
  }

  Value reduce(Value v, Combine combine) { return b_.reduce(v, combine, {axis_}, true); }

  void softmax(Value x) {
    const Value m = reduce(x, Combine::max);
    Value shifted = b_.map_broadcast(ScalarOp::sub, {x, m});
    if (random_.chance(30)) shifted = b_.map_broadcast(ScalarOp::mul, {shifted, number(0.5)});
    const Value e = b_.map(ScalarOp::exp, {shifted});
    const Value s = reduce(e, Combine::sum);
    const int64_t wanted = random_.between(1, 31);
    if (wanted & 1) out(m);
    if (wanted & 2) out(s);
    if (wanted & 4) out(b_.map(ScalarOp::add, {m, b_.map(ScalarOp::log, {s})}));
    const Value p = b_.map_broadcast(ScalarOp::div, {e, s});
    if (wanted & 8) out(p);
    if (wanted & 16) out(reduce(b_.map(ScalarOp::mul, {p, input(shape_, false)}), Combine::sum));
    if (random_.chance(10)) out(e);
  }

  Value mean(Value x) {
    const Value total = reduce(x, Combine::sum);
    return random_.chance(50)
               ? b_.map_broadcast(ScalarOp::div, {total, number(static_cast<double>(length_))})
               : b_.map_broadcast(ScalarOp::mul, {total, number(1.0 / static_cast<double>(length_))});
  }

  void variance(Value x) {
    const Value d = b_.map_broadcast(ScalarOp::sub, {x, mean(x)});
    const Value variance = mean(b_.map(ScalarOp::mul, {d, d}));
    out(variance);
    if (random_.chance(60))
      out(b_.map_broadcast(
          ScalarOp::div,
          {d, b_.map(ScalarOp::sqrt, {b_.map_broadcast(ScalarOp::add, {variance, number(1e-3)})})}));
  }

  // A sum of what is divided by the root of the sum of squares.
  void normalised(Value x) {
    const Value squares = reduce(b_.map(ScalarOp::mul, {x, x}), Combine::sum);
    const Value root = b_.map(ScalarOp::sqrt, {b_.map_broadcast(ScalarOp::add, {squares, number(0.5)})});
    const Value y =
        random_.chance(50)
            ? b_.map_broadcast(ScalarOp::div, {x, root})
            : b_.map_broadcast(ScalarOp::mul, {x, b_.map_broadcast(ScalarOp::div, {number(1), root})});
    out(reduce(b_.map(ScalarOp::mul, {y, input(shape_, false)}), Combine::sum));
  }

  void plain(Value x) {
    const auto combine = random_.one_of({Combine::sum, Combine::max, Combine::min});
    const bool whole = random_.chance(30);
    Value r = whole ? b_.reduce(x, combine, {0, 1, 2}) : reduce(x, combine);
    if (random_.chance(50)) out(r);
    out(b_.map_broadcast(ScalarOp::mul, {r, number(0.5)}));
  }

  void attention() {
    const int64_t heads = 2, queries = length_ > 1000 ? 1 : random_.one_of<int64_t>({1, 5, 9}),
                  width = random_.one_of<int64_t>({3, 16, 20});
    const Value q = input({heads, queries, width}, false), k = input({heads, length_, width}, false),
                v = input({heads, length_, width}, false);
    axis_ = 2;
    shape_ = {heads, queries, length_};
    Value scores =
        b_.map_broadcast(ScalarOp::mul, {b_.matmul(q, b_.transpose(k, {0, 2, 1})), number(0.03125)});
    if (random_.chance(50)) scores = b_.map(ScalarOp::add, {scores, input(shape_, true)});
    const Value m = reduce(scores, Combine::max);
    const Value e = b_.map(ScalarOp::exp, {b_.map_broadcast(ScalarOp::sub, {scores, m})});
    const Value p = b_.map_broadcast(ScalarOp::div, {e, reduce(e, Combine::sum)});
    Value o = b_.matmul(p, v);
    if (random_.chance(40)) o = b_.map_broadcast(ScalarOp::mul, {o, number(2)});
    out(o);
  }
};

struct Counts {
  int64_t all = 0, refused = 0, split = 0, carried = 0;
  std::map<std::string, int64_t> codes;
};

void check_schedule(const Graph& graph, const std::vector<Tensor>& inputs, const schedule::Layouts& layouts,
                    const schedule::Schedule& schedule, uint64_t seed, bool compile, Counts& counts) {
  const graph::Region region = whole_region(graph);
  const schedule::RegionForms forms = schedule::region_forms(graph, region);
  ASSERT_TRUE(schedule::parse_schedule(schedule::to_text(schedule)) == schedule)
      << schedule::to_text(schedule);
  const schedule::TreeResult built = schedule::build_tree(forms, schedule, layouts);
  ++counts.all;
  if (!built.verdict.allowed()) {
    ++counts.refused;
    ++counts.codes[built.verdict.code];
    return;
  }
  for (const schedule::Chain& chain : built.tree.chains) {
    counts.split += chain.split() ? 1 : 0;
    counts.carried += chain.stages.size() > 1 ? 1 : 0;
  }
  RegionRun how;
  how.any_order = true;
  how.compile = compile;
  const std::string wrong = check_region(graph, region, schedule, layouts, inputs, how);
  EXPECT_EQ(wrong, "") << "seed " << seed << "\n" << graph::print(graph) << schedule::to_text(schedule);
}

uint64_t setting(const char* name, uint64_t usual) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : usual;
}

TEST(RunningState, RandomChains) {
  Counts proposed, drawn;
  const uint64_t first = setting("FUSEWISE_REGION_SEED", 1), count = setting("FUSEWISE_CHAIN_CASES", 150);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Random random(seed);
    Chain chain;
    ChainBuilder(chain, random).build();
    const graph::Region region = whole_region(chain.graph);
    const schedule::RegionForms forms = schedule::region_forms(chain.graph, region);
    fusion::TileOptions options;
    options.threads = 4;
    options.order = free_order;
    const machine::Machine machine = machine::host_machine("x86-64-v3");
    const schedule::Schedule base = fusion::choose_schedule(forms, {}, machine, options);
    // The chooser proposes for long axes; blocks of its proposals are made short here.
    for (graph::NodeId node : forms.region.nodes) {
      if (!forms.form(node).accumulation) continue;
      for (schedule::Schedule form : fusion::reduction_forms(forms, {}, machine, options, base, node)) {
        check_schedule(chain.graph, chain.inputs, {}, form, seed, seed % 16 == 0, proposed);
        if (HasFatalFailure()) return;
      }
    }
    for (int i = 0; i < 3; ++i) {
      schedule::Schedule schedule = random.chance(60) ? base : random_schedule(forms, random);
      schedule.order = free_order;
      for (int64_t n = random.between(1, 2); n > 0; --n) draw_blocks(forms, random, schedule);
      check_schedule(chain.graph, chain.inputs, {}, schedule, seed, i == 0 && seed % 16 == 1, drawn);
      if (HasFatalFailure()) return;
    }
  }
  std::string codes;
  for (const auto& [code, n] : drawn.codes) codes += fmt::format(" {} {}", code, n);
  fmt::print("proposed {} ({} refused), drawn {} ({} refused:{}), split {}, carried {}\n", proposed.all,
             proposed.refused, drawn.all, drawn.refused, codes, proposed.split + drawn.split,
             proposed.carried + drawn.carried);
  EXPECT_GT(drawn.split, 20);
  EXPECT_GT(drawn.carried, 20);
}

TEST(RunningState, RandomRegions) {
  Counts drawn;
  const uint64_t first = setting("FUSEWISE_REGION_SEED", 1), count = setting("FUSEWISE_CHAIN_CASES", 150);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const RegionCase what = random_region(seed);
    const graph::Region region = whole_region(what.graph);
    const schedule::RegionForms forms = schedule::region_forms(what.graph, region);
    try {
      RegionOracle(what.graph, region, what.layouts, what.inputs);
    } catch (const std::exception&) {
      continue;
    }
    // A product that overflows in one order and meets a 0 first in another has no one value.
    if (std::any_of(forms.forms.begin(), forms.forms.end(), [](const auto& f) {
          return f.second.accumulation && f.second.accumulation->combine == Combine::product;
        }))
      continue;
    Random random(seed);
    schedule::Schedule schedule = random_schedule(forms, random);
    schedule.order = free_order;
    if (!draw_blocks(forms, random, schedule)) continue;
    check_schedule(what.graph, what.inputs, what.layouts, schedule, seed, false, drawn);
    if (HasFatalFailure()) return;
  }
  fmt::print("drawn {} ({} refused), split {}, carried {}\n", drawn.all, drawn.refused, drawn.split,
             drawn.carried);
  EXPECT_GT(drawn.split, 5);
}

TEST(RunningState, FixedOrderRefusesBlocks) {
  Graph graph;
  GraphBuilder b(graph);
  b.output(b.reduce(b.input("x", {DataType::float32, {4, 64}}), Combine::sum, {1}), "y");
  const schedule::RegionForms forms = schedule::region_forms(graph, whole_region(graph));
  const std::string stage = "stage %1 root phase=0 memory loops=[0:1 1:16] grid=1 vector=1 storage=[0]\n";
  EXPECT_EQ(schedule::build_tree(forms, schedule::parse_schedule("order block=512 lanes=16\n" + stage), {})
                .verdict.code,
            "order");
  EXPECT_TRUE(schedule::build_tree(
                  forms, schedule::parse_schedule("order block=1099511627776 lanes=16\n" + stage), {})
                  .verdict.allowed());
}

// Threads that share a block reduce in steps; a loop over blocks and parts are of schedules without them.
TEST(RunningState, GroupsRefuseRunningStates) {
  Graph graph;
  GraphBuilder b(graph);
  b.output(b.reduce(b.input("x", {DataType::float32, {4, 64}}), Combine::sum, {1}), "y");
  const schedule::RegionForms forms = schedule::region_forms(graph, whole_region(graph));
  const auto code = [&](const std::string& stages) {
    const std::string order = "order block=1099511627776 lanes=16 threads=64\n";
    return schedule::build_tree(forms, schedule::parse_schedule(order + stages), {}).verdict.code;
  };
  EXPECT_EQ(code("stage %1 root phase=0 memory loops=[0:1 1:16] grid=1 vector=-1 storage=[0]\n"),
            "malformed");
  const std::string finisher = "stage %1 root phase=1 memory loops=[0:1] grid=1 vector=-1 storage=[0]\n";
  EXPECT_EQ(
      code("stage %1 root phase=0 memory partial loops=[0:1] grid=1 vector=-1 storage=[0]\n" + finisher),
      "threads");
}

}  // namespace
}  // namespace fusewise::test

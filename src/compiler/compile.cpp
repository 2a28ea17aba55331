#include <chrono>

#include "base/error.h"
#include "compiler/build_program.h"
#include "compiler/compiler.h"
#include "compiler/kernels.h"
#include "compiler/pack_constants.h"
#include "fusion/layouts.h"
#include "fusion/planner.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "rewrite/driver.h"

namespace fusewise::compiler {

namespace {

// Milliseconds of each phase, by name.
class Stopwatch {
 public:
  explicit Stopwatch(std::map<std::string, double>& times) : times_(times) {}
  void lap(const std::string& phase) {
    const auto now = std::chrono::steady_clock::now();
    times_[phase] += std::chrono::duration<double, std::milli>(now - start_).count();
    start_ = now;
  }

 private:
  std::map<std::string, double>& times_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Strict keeps the documented order of reductions; otherwise one block, so that no partial sums are stacked.
ReductionOrder order_for(Numerics numerics) {
  if (numerics == Numerics::strict) return {};
  return {int64_t{1} << 40, 16};
}

}  // namespace

Compiled compile(graph::Graph graph, const CompileOptions& options) {
  Compiled result;
  Stopwatch watch(result.milliseconds);
  const auto note = [&](const std::string& phase) {
    if (options.progress) options.progress(phase, 0, 1);
  };
  const auto dump = [&](const std::string& stage, const std::string& text) {
    if (options.dump) options.dump(stage, "", text);
  };
  dump("graph", graph::print(graph));

  note("rewrite");
  rewrite::DriverOptions rewrites;
  if (options.numerics == Numerics::strict) rewrites.allowed = rewrite::Exactness::exact;
  rewrites.skip = options.disabled_passes;
  if (options.dump)
    rewrites.observe = [&](const rewrite::Step& step, const graph::Graph& after) {
      if (step.changed) dump("rewritten." + std::string(step.rewrite.name), graph::print(after));
    };
  graph = pack_constants(rewrite::run_rewrites(std::move(graph), rewrites));
  graph::verify(graph);
  dump("rewritten", graph::print(graph));
  watch.lap("rewrite");

  note("plan");
  fusion::PlanOptions plan_options;
  plan_options.mode = options.fusion;
  plan_options.machine = options.machine;
  plan_options.threads = options.threads;
  plan_options.order = order_for(options.numerics);
  plan_options.layouts = fusion::assign_layouts(graph, options.machine, {});
  // Packed constants are made once, by a kernel of their own.
  const std::vector<bool> constant = fusion::constant_only(graph);
  for (const auto& [value, layout] : plan_options.layouts)
    if (constant[value.node]) plan_options.constraints.stored_views.insert(value.node);
  if (options.plan_text) throw UnsupportedError("not supported yet: replaying a plan");
  result.plan = fusion::make_plan(graph, plan_options);
  watch.lap("plan");

  note("lower");
  KernelSet kernels(graph, options);
  std::vector<KernelCall> calls;
  for (const fusion::PlannedRegion& planned : result.plan.regions)
    calls.push_back(kernels.add(planned.region, planned.schedule, result.plan.layouts));
  watch.lap("lower");

  note("codegen");
  std::string library = kernels.compile();
  watch.lap("codegen");
  result.program = build_program(graph, result.plan, calls, kernels, std::move(library), options);
  result.graph = std::move(graph);
  watch.lap("program");
  return result;
}

}  // namespace fusewise::compiler

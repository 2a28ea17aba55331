#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "compiler/build_program.h"
#include "compiler/compiler.h"
#include "compiler/find_appends.h"
#include "compiler/kernels.h"
#include "compiler/operand_views.h"
#include "compiler/pack_constants.h"
#include "compiler/sink_constants.h"
#include "fusion/plan_json.h"
#include "fusion/planner.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "kernel/passes/pipeline.h"
#include "rewrite/driver.h"
#include "rewrite/list.h"

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

// Strict keeps the documented order of reductions; otherwise blocks are as long as accuracy allows, so that partial sums
// of most rows are not stacked.
ReductionOrder order_for(Numerics numerics) {
  if (numerics == Numerics::strict) return {};
  return {schedule::free_block, 16};
}

void check_disabled(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto is_named = [&](const auto& pass) { return pass.name == name; };
    if (std::ranges::none_of(rewrite::rewrites(), is_named) &&
        std::ranges::none_of(kernel::passes(), is_named))
      throw UserError("there is no rewrite and no kernel pass '" + name + "'");
  }
}

}  // namespace

Planned plan_graph(graph::Graph graph, const CompileOptions& options) {
  check_disabled(options.disabled_passes);
  Planned result;
  Stopwatch watch(result.milliseconds);
  const auto dump = [&](const std::string& stage, const graph::Graph& shown) {
    if (options.dump) options.dump(stage, "", graph::print(shown));
  };
  dump("graph", graph);

  if (options.progress) options.progress("rewrite", 0, 1);
  rewrite::DriverOptions rewrites;
  if (options.numerics == Numerics::strict) rewrites.allowed = rewrite::Exactness::exact;
  rewrites.skip = options.disabled_passes;
  if (options.dump)
    rewrites.observe = [&](const rewrite::Step& step, const graph::Graph& after) {
      if (step.changed) dump("rewritten." + std::string(step.rewrite.name), after);
    };
  graph = rewrite::run_rewrites(std::move(graph), rewrites);
  graph = options.target.empty() ? pack_constants(sink_constants(std::move(graph)))
                                 : view_operands(std::move(graph));
  graph::verify(graph);
  dump("rewritten", graph);
  watch.lap("rewrite");

  if (options.progress) options.progress("plan", 0, 1);
  fusion::PlanOptions& plan = result.plan_options;
  plan.mode = options.fusion;
  plan.machine = options.machine;
  plan.threads = options.threads;
  plan.order = order_for(options.numerics);
  plan.usual = options.usual;
  plan.assemble = options.target.empty();
  if (options.plan_text)
    plan.constraints = fusion::constraints_from_json(graph, *options.plan_text, options.machine);
  if (options.target.empty()) {
    fusion::settle_layouts(graph, plan);
    plan.appends = find_appends(graph, options.in_place);
    plan.layouts = fusion::with_capacities(std::move(plan.layouts), graph, plan.appends);
  }
  result.plan = fusion::make_plan(graph, plan);
  plan.layouts = result.plan.layouts;
  plan.assemblies = result.plan.assemblies;
  if (!options.target.empty()) keep_views_inside(graph, result.plan);
  if (options.dump) options.dump("plan", "", fusion::to_json_text(graph, result.plan));
  result.graph = std::move(graph);
  watch.lap("plan");
  return result;
}

Compiled compile(graph::Graph graph, const CompileOptions& options) {
  Planned planned = plan_graph(std::move(graph), options);
  Compiled result;
  result.milliseconds = std::move(planned.milliseconds);
  result.graph = std::move(planned.graph);
  result.plan = std::move(planned.plan);
  Stopwatch watch(result.milliseconds);

  if (options.progress) options.progress("lower", 0, 1);
  KernelSet kernels(options);
  const std::vector<KernelCall> calls = kernels.add(result.graph, result.plan);
  watch.lap("lower");

  if (options.progress) options.progress("codegen", 0, 1);
  std::string library = kernels.compile();
  watch.lap("codegen");
  BuiltProgram built = build_program(result.graph, result.plan, calls, kernels, std::move(library), options);
  result.program = std::move(built.program);
  result.buffers = std::move(built.buffers);
  result.run_steps = std::move(built.run_steps);
  for (const KernelCall& call : calls)
    result.kernels.push_back(call.kernel < 0 ? program::none : static_cast<uint32_t>(call.kernel));
  watch.lap("program");
  return result;
}

}  // namespace fusewise::compiler

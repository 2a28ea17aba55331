#include "stress/graph_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/error.h"
#include "base/thread_pool.h"
#include "codegen/codegen.h"
#include "compiler/build_program.h"
#include "compiler/kernels.h"
#include "graph/interpreter/interpreter.h"
#include "kernel/interpreter.h"
#include "kernel/passes/pipeline.h"
#include "runtime/executable.h"
#include "schedule/memory_index.h"
#include "schedule/tree.h"
#include "session/verify.h"
#include "stress/interpreted_program.h"
#include "stress/random_plan.h"

namespace fusewise::test {

using compiler::Numerics;
using fusion::FusionMode;
using graph::Tensor;

namespace {

constexpr const char* numerics_names[] = {"strict", "default", "fast"};
constexpr const char* fusion_names[] = {"on", "operators", "off"};
constexpr const char* execution_names[] = {"lowered", "passed", "compiled", "guarded"};

template <class E, size_t n>
E named(const char* const (&names)[n], std::string_view name) {
  for (size_t i = 0; i < n; ++i)
    if (name == names[i]) return static_cast<E>(i);
  throw UserError(fmt::format("'{}' is no such setting", name));
}

}  // namespace

std::string to_text(const GraphSettings& s) {
  return fmt::format("numerics={} fusion={} target={} threads={} run={} plan={}",
                     numerics_names[static_cast<size_t>(s.numerics)],
                     fusion_names[static_cast<size_t>(s.fusion)], s.target, s.threads,
                     execution_names[static_cast<size_t>(s.execution)], s.plan);
}

GraphSettings settings_from_text(std::string_view text) {
  GraphSettings settings;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    const size_t at = word.find('=');
    const std::string key = word.substr(0, at), value = at == std::string::npos ? "" : word.substr(at + 1);
    if (key == "numerics")
      settings.numerics = named<Numerics>(numerics_names, value);
    else if (key == "fusion")
      settings.fusion = named<FusionMode>(fusion_names, value);
    else if (key == "target")
      settings.target = value;
    else if (key == "threads")
      settings.threads = std::stoi(value);
    else if (key == "run")
      settings.execution = named<Execution>(execution_names, value);
    else if (key == "plan")
      settings.plan = std::stoull(value);
    else
      throw UserError(fmt::format("'{}' is no setting", word));
  }
  return settings;
}

// Rewrites of default mode round up to three times where the model rounds once: a division becomes a product with a
// rounded reciprocal, a power a product, a factor of a weight is rounded into it.
constexpr double most_of_bound = 3;

std::string broken_promise(const std::string& name, const Tensor& output) {
  const bool ties = name.starts_with("promise.ties");
  const auto size = static_cast<size_t>(bytes_of(output.element));
  for (int64_t i = 0; i < output.count(); ++i) {
    const double x = load_scalar(output.bytes().data() + static_cast<size_t>(i) * size, output.element).f;
    const bool holds = ties ? x >= 1 : x == 0 || std::isnan(x);
    if (!holds) return fmt::format("output '{}' element {} is {}", name, i, x);
  }
  return {};
}

GraphOracle::GraphOracle(const GraphCase& of_case)
    : case_(of_case), strict_(graph::interpret(of_case.graph, of_case.inputs)) {}

std::string GraphOracle::judge(std::span<const Tensor> outputs, Numerics numerics) const {
  if (outputs.size() != strict_.size()) return "another number of outputs";
  if (numerics != Numerics::strict && !bounded_)
    bounded_ = graph::interpret_bounded(case_.graph, case_.inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = case_.graph.outputs[i].name;
    if (numerics == Numerics::strict) {
      const session::OutputVerdict v = session::compare_exactly(name, strict_[i], outputs[i]);
      if (!v.passed)
        return fmt::format("output '{}' element {} is {}, wanted {}; {} of {} differ {}", name, v.worst_index,
                           v.actual, v.expected, v.differing, v.elements, v.note);
      continue;
    }
    // Where the interpreter does not keep it, it is none.
    if (name.starts_with("promise.") && broken_promise(name, strict_[i]).empty())
      if (std::string broken = broken_promise(name, outputs[i]); !broken.empty()) return broken;
    const graph::Deviation d = graph::worst_deviation((*bounded_)[i], outputs[i]);
    if (!(d.ratio <= most_of_bound))
      return fmt::format("output '{}' element {} is {}, wanted {} within {}, {} times that", name, d.index,
                         d.actual, d.value, d.bound, d.ratio);
  }
  return {};
}

namespace {

// One compilation.
class Attempt {
 public:
  Attempt(const GraphCase& what, const GraphSettings& settings, int runs = 2)
      : case_(what), settings_(settings), runs_(runs) {
    options_.numerics = settings.numerics;
    options_.fusion = settings.fusion;
    options_.machine = machine::host_machine(settings.target);
    options_.threads = settings.threads;
  }

  std::vector<Tensor> run(Counts* seen, const std::function<void(kernel::Kernel&)>& damage = {}) {
    compiler::Planned planned = compiler::plan_graph(case_.graph, options_);
    const double bound = planned.plan.lower_bound_microseconds, price = planned.plan.predicted_microseconds;
    if (!(bound <= price * (1 + 1e-9)))
      throw InternalError(
          fmt::format("a plan is priced {} us, below what no plan can undercut, {} us", price, bound));
    if (settings_.plan != 0) take_random_plan(planned, case_.symbols, settings_.plan);
    if (seen) count(planned, *seen);
    compiler::KernelSet kernels(options_);
    const std::vector<compiler::KernelCall> calls = kernels.add(planned.graph, planned.plan);
    if (damage)
      for (kernel::Kernel& k : kernels.kernels) damage(k);
    const bool compiles =
        settings_.execution == Execution::compiled || settings_.execution == Execution::guarded;
    std::string library;
    if (compiles) {
      library = kernels.compile();
    } else if (settings_.execution == Execution::passed) {
      kernel::PassOptions passes;
      passes.vector_bits = options_.machine.vector_bits;
      for (kernel::Kernel& k : kernels.kernels) k = kernel::run_passes(std::move(k), passes);
    }
    program::Program program =
        compiler::build_program(planned.graph, planned.plan, calls, kernels, std::move(library), options_)
            .program;
    return compiles ? execute(std::move(program)) : run_interpreted(program, kernels.kernels, case_.inputs);
  }

 private:
  const GraphCase& case_;
  const GraphSettings& settings_;
  int runs_;
  compiler::CompileOptions options_;

  static std::shared_ptr<ThreadPool> pool_of(int threads) {
    static std::map<int, std::shared_ptr<ThreadPool>> pools;
    std::shared_ptr<ThreadPool>& pool = pools[threads];
    if (!pool) pool = std::make_shared<ThreadPool>(threads);
    return pool;
  }

  // Several times, with the same bits; inputs stay as they are.
  std::vector<Tensor> execute(program::Program program) const {
    runtime::ExecutableOptions options;
    options.threads = settings_.threads;
    options.pool = pool_of(settings_.threads);
    options.poison = true;
    if (settings_.execution == Execution::guarded) options.guard_pages = runtime::GuardPages::after;
    const runtime::Executable executable(std::move(program), options);
    std::vector<std::vector<int64_t>> shapes;
    std::vector<Tensor> inputs;
    for (const Tensor& t : case_.inputs) {
      shapes.push_back(t.shape);
      inputs.push_back(Tensor::copy_of(t.element, t.shape, t.bytes()));
    }
    const auto binding = executable.bind(shapes);
    std::vector<Tensor> first = once(executable, *binding, inputs);
    for (int again = 1; again < runs_; ++again) {
      const std::vector<Tensor> other = once(executable, *binding, inputs);
      for (size_t i = 0; i < first.size(); ++i)
        if (!std::ranges::equal(first[i].bytes(), other[i].bytes()))
          throw InternalError(fmt::format("output {} has other bits in another run", i));
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!std::ranges::equal(inputs[i].bytes(), case_.inputs[i].bytes()))
        throw InternalError(fmt::format("a run writes to input {}", i));
    return first;
  }
  // Gives memory for outputs whose size only the run knows.
  struct LateOutputs final : runtime::OutputMemory {
    LateOutputs(const program::Program& of_program, std::vector<Tensor>& to)
        : program(of_program), outputs(to) {}
    void* place(uint32_t output, std::span<const int64_t> shape) override {
      outputs[output] = Tensor(program.outputs[output].type, {shape.begin(), shape.end()});
      return outputs[output].mutable_bytes().data();
    }
    const program::Program& program;
    std::vector<Tensor>& outputs;
  };

  static std::vector<Tensor> once(const runtime::Executable& executable, const runtime::Binding& binding,
                                  const std::vector<Tensor>& inputs) {
    std::vector<Tensor> outputs(binding.output_shapes.size());
    std::vector<const void*> from;
    std::vector<void*> to(outputs.size(), nullptr);
    for (const Tensor& t : inputs) from.push_back(t.bytes().data());
    LateOutputs late(executable.program(), outputs);
    for (uint32_t i = 0; i < outputs.size(); ++i)
      if (!executable.is_late(i)) to[i] = late.place(i, binding.output_shapes[i]);
    runtime::RunOptions options;
    options.output_memory = &late;
    const runtime::Status status = executable.run(binding, from, to, options);
    if (!status.ok()) throw InternalError("the run failed: " + status.message);
    return outputs;
  }

  static void count(const compiler::Planned& planned, Counts& seen) {
    for (const auto& [value, place] : planned.plan.assemblies.places)
      if (!schedule::is_strided(place.memory)) ++seen["plan values whose parts alone have a place"];
    for (const fusion::PartCopy& copy : planned.plan.assemblies.copies) ++seen["plan copies " + copy.reason];
    std::vector<int> computed(planned.graph.size(), 0);
    for (const fusion::PlannedRegion& r : planned.plan.regions) {
      const bool whole = planned.plan.assemblies.wholes.contains(r.region.nodes[0]);
      ++seen[whole ? "plan concatenations in place" : r.assembled ? "plan views in place" : "plan regions"];
      seen["plan nodes in regions"] += static_cast<int64_t>(r.region.nodes.size());
      if (r.region.outputs.size() > 1) ++seen["plan regions of several outputs"];
      if (r.once) ++seen["plan once regions"];
      for (graph::NodeId n : r.region.nodes)
        if (++computed[n] == 2) ++seen["plan nodes computed again"];
      for (const schedule::StageChoice& s : r.schedule.stages) {
        static constexpr const char* places[] = {"registers", "scratch", "memory"};
        static constexpr const char* rules[] = {"keep", "recompute", "slide", "carry"};
        ++seen[fmt::format("placement {}", places[static_cast<size_t>(s.placement)])];
        if (s.parent >= 0) ++seen[fmt::format("reuse {}", rules[static_cast<size_t>(s.reuse)])];
        if (s.phase > 0) ++seen["schedule later phase"];
      }
    }
  }
};

// Numbers differ from graph to graph: reasons are counted without them.
std::string without_numbers(const std::string& words) {
  std::string result;
  for (char c : words.substr(0, 160)) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0)
      result += c;
    else if (result.empty() || result.back() != '#')
      result += '#';
  }
  return result;
}

}  // namespace

std::vector<Tensor> outputs_of(const GraphCase& what, const GraphSettings& settings, int runs) {
  return Attempt(what, settings, runs).run(nullptr);
}

std::vector<Tensor> outputs_of(const GraphCase& what, const GraphSettings& settings,
                               const std::function<void(kernel::Kernel&)>& damage) {
  return Attempt(what, settings).run(nullptr, damage);
}

GraphOutcome run_graph(const GraphCase& what, const GraphOracle& oracle, const GraphSettings& settings,
                       Counts* seen) {
  using Kind = GraphOutcome::Kind;
  try {
    const std::string words = oracle.judge(Attempt(what, settings).run(seen), settings.numerics);
    return {words.empty() ? Kind::agrees : Kind::wrong, words};
  } catch (const UnsupportedError& error) {
    return {Kind::refused, without_numbers(error.what())};
  } catch (const UserError& error) {
    return {Kind::wrong, fmt::format("refused as the user's fault: {}", error.what())};
  } catch (const kernel::KernelFault& fault) {
    return {Kind::wrong, fmt::format("fault: {} at {}", fault.what(), fault.statement)};
  } catch (const std::exception& error) {
    return {Kind::wrong, fmt::format("error: {}", error.what())};
  }
}

GraphOutcome run_graph(const GraphCase& what, const GraphSettings& settings) {
  try {
    return run_graph(what, GraphOracle(what), settings);
  } catch (const UserError& error) {
    return {GraphOutcome::Kind::refused, fmt::format("by the interpreter: {}", error.what())};
  }
}

}  // namespace fusewise::test

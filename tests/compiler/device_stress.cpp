#include "compiler/device_stress.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>

#include "base/error.h"
#include "compiler/device_runner.h"
#include "compiler/operand_views.h"
#include "compiler/region_generator.h"
#include "fusion/tiles/choose_group_schedule.h"
#include "graph/text.h"
#include "kernel/passes/pipeline.h"
#include "schedule/schedule_text.h"

namespace fusewise::test {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class Stress {
 public:
  explicit Stress(const DeviceStress& options) : options_(options) {}
  DeviceTally tally;

  void run(uint64_t seed) {
    ++tally.regions;
    try {
      check(seed);
    } catch (const UnsupportedError& error) {
      ++tally.outcomes[error.what()];
    } catch (const std::exception& error) {
      tally.wrong.push_back(fmt::format("seed {}: {}", seed, error.what()));
    }
    if (batch_ && batch_->size() >= static_cast<size_t>(options_.batch)) finish();
  }

  void finish() {
    if (!batch_) return;
    const auto begin = Clock::now();
    for (DeviceBatch::Result& result : batch_->run()) {
      if (!result.wrong.empty()) tally.wrong.push_back(result.wrong);
      if (options_.is_verbose && result.seconds > 1)
        fmt::print(stderr, "{:.1f} s for {}\n", result.seconds, result.name);
      if (result.seconds <= tally.slowest) continue;
      tally.slowest = result.seconds;
      tally.slowest_name = result.name;
    }
    tally.driving += seconds_since(begin);
    batch_.reset();
    cases_.clear();
  }

 private:
  const DeviceStress& options_;
  std::vector<std::unique_ptr<RegionCase>> cases_;  // of the batch
  std::optional<DeviceBatch> batch_;
  int64_t right_ = 0;

  void check(uint64_t seed) {
    auto what = std::make_unique<RegionCase>(random_region(seed));
    // Small groups and little shared memory, so that all forms of schedules are met.
    Random random(seed);
    machine::Machine machine = machine::plain_gpu();
    machine.most_threads = random.one_of({2, 5, 32, 64, 64, 64});
    machine.shared_bytes = random.one_of<int64_t>({0, 1000, 32768, 32768});
    if (what->layouts.empty() && random.chance(70)) what->graph = compiler::view_operands(what->graph);
    const bool part = what->graph.size() > 8 && random.chance(70);
    const graph::Region region = part ? random_part(what->graph, random) : whole_region(what->graph);
    const std::string words = fmt::format("seed {}\n{}", seed, graph::print(what->graph));
    std::shared_ptr<const RegionOracle> oracle;
    try {
      oracle = std::make_shared<RegionOracle>(what->graph, region, what->layouts, what->inputs);
    } catch (const UserError&) {
      ++tally.outcomes["inputs that the interpreter refuses"];
      return;
    }
    const auto begin = Clock::now();
    std::optional<PreparedKernel> prepared = interpret(*what, region, *oracle, machine, words);
    tally.interpreting += seconds_since(begin);
    if (!prepared || options_.device == nullptr || right_++ % options_.print_every != 0) return;
    if (!batch_) batch_.emplace(*options_.device);
    batch_->add(oracle, std::move(*prepared), fmt::format("seed {}", seed), words);
    ++tally.launched;
    cases_.push_back(std::move(what));
  }

  // Both forms of the kernel in the kernel interpreter; nothing where there is no kernel, or a wrong one.
  std::optional<PreparedKernel> interpret(const RegionCase& what, const graph::Region& region,
                                          const RegionOracle& oracle, const machine::Machine& machine,
                                          const std::string& words) {
    const schedule::RegionForms forms = schedule::region_forms(what.graph, region);
    const fusion::GroupSchedule chosen = fusion::choose_group_schedule(forms, what.layouts, machine, {});
    if (!chosen.verdict.allowed()) {
      ++tally.outcomes["refused: " + chosen.verdict.code];
      return {};
    }
    PreparedKernel prepared = prepare_kernel(forms, chosen.tree);
    ++tally.outcomes[fmt::format("{} phases", prepared.passed.phases.size())];
    ++tally.interpreted;
    if (schedule::shared_bytes(prepared.lowered).value_or(1) > 0) ++tally.sharing;
    for (const kernel::Stmt& stmt : prepared.passed.stmts)
      tally.barriers += stmt.kind == kernel::StmtKind::barrier ? 1 : 0;
    for (const kernel::Kernel* kernel : {&prepared.lowered.kernel, &prepared.passed}) {
      const std::string wrong = oracle.interpret(prepared.lowered, *kernel);
      if (wrong.empty()) continue;
      tally.wrong.push_back(fmt::format("{}: {}{}{}", words, wrong, schedule::to_text(chosen.schedule),
                                        kernel::print(*kernel)));
      return {};
    }
    return prepared;
  }
};

}  // namespace

DeviceTally run_stress(const DeviceStress& options) {
  const auto begin = Clock::now();
  Stress stress(options);
  for (int64_t i = 0; i < options.regions; ++i) {
    if (options.seconds > 0 && seconds_since(begin) > options.seconds) break;
    stress.run(options.seed + static_cast<uint64_t>(i));
  }
  stress.finish();
  return std::move(stress.tally);
}

std::string to_text(const DeviceTally& tally) {
  std::string text = fmt::format(
      "{} regions, {} kernels interpreted in {:.1f} s ({} of them share memory; {} barriers), {} run on the "
      "device "
      "in {:.1f} s (slowest {:.1f} s, {})\n",
      tally.regions, tally.interpreted, tally.interpreting, tally.sharing, tally.barriers, tally.launched,
      tally.driving, tally.slowest, tally.slowest_name);
  for (const auto& [name, count] : tally.outcomes) text += fmt::format("  {}: {}\n", name, count);
  return text;
}

}  // namespace fusewise::test

// Random regions under the chooser's and under random schedules, against the reference interpreter, to the bit.
// FUSEWISE_REGION_CASES states how many regions (a long run: 100000), FUSEWISE_REGION_SEED which is the first.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "fusion/tiles/choose_schedule.h"
#include "graph/text.h"
#include "kernel/passes/pipeline.h"
#include "random_schedule.h"
#include "region_generator.h"
#include "region_runner.h"
#include "schedule/schedule_text.h"

namespace fusewise::test {
namespace {

using schedule::Placement;
using schedule::RegionForms;
using schedule::Reuse;

int64_t setting(const char* name, int64_t usual) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : usual;
}

using Counts = std::map<std::string, int64_t>;

// What one worker saw.
struct Tally {
  Counts maps, placements, reuses, chooser, random;
  std::vector<std::string> wrong;
  int64_t interpreted = 0, compiled = 0, unfit = 0;
  double slowest = 0;
  uint64_t slowest_seed = 0;

  void add(const Tally& other) {
    const auto merge = [](Counts& into, const Counts& from) {
      for (const auto& [key, n] : from) into[key] += n;
    };
    merge(maps, other.maps);
    merge(placements, other.placements);
    merge(reuses, other.reuses);
    merge(chooser, other.chooser);
    merge(random, other.random);
    wrong.insert(wrong.end(), other.wrong.begin(), other.wrong.end());
    interpreted += other.interpreted;
    compiled += other.compiled;
    unfit += other.unfit;
    if (other.slowest > slowest) {
      slowest = other.slowest;
      slowest_seed = other.slowest_seed;
    }
  }
};

void count_index(const graph::IndexExpr& e, std::map<std::string, bool>& found) {
  if (e.gathered) found["gathered"] = true;
  if (!e.quasi.empty()) found["quasi-affine"] = true;
  for (const graph::AxisTerm& t : e.linear.terms) {
    if (!t.coefficient.is_constant())
      found["run-time coefficient"] = true;
    else if (t.coefficient.is(1))
      found["affine"] = true;
    else
      found["strided"] = true;
  }
}

void count_maps(const RegionForms& forms, Counts& maps) {
  std::map<std::string, bool> found;
  for (const auto& [node, form] : forms.forms) {
    if (form.kind == graph::Kind::window || (form.kind == graph::Kind::contract && form.axes.size() > 3))
      found["window"] = true;
    for (const graph::Read& read : form.reads) {
      for (const graph::IndexExpr& e : read.index) count_index(e, found);
      if (!read.guards.empty() && !form.accumulation) found["piecewise"] = true;
    }
  }
  for (const auto& [name, yes] : found) ++maps[name];
}

void count_stages(const schedule::Tree& tree, Tally& tally) {
  std::map<std::string, bool> placements, reuses;
  for (const schedule::Stage& s : tree.stages) {
    static constexpr const char* names[] = {"registers", "scratch", "memory"};
    static constexpr const char* rules[] = {"keep", "recompute", "slide"};
    placements[names[static_cast<size_t>(s.placement)]] = true;
    if (s.parent >= 0) reuses[rules[static_cast<size_t>(s.reuse)]] = true;
  }
  for (const auto& [name, yes] : placements) ++tally.placements[name];
  for (const auto& [name, yes] : reuses) ++tally.reuses[name];
}

// What to say when machine code touches what it must not: the process ends there.
thread_local std::string running;

void report_crash(int) {
  const ssize_t written = write(STDERR_FILENO, running.data(), running.size());
  _exit(written < 0 ? 3 : 2);
}

// A region that waits for its machine code, together with others.
struct Pending {
  std::shared_ptr<const RegionCase> what;
  std::shared_ptr<const RegionOracle> oracle;
  schedule::Schedule schedule;
  schedule::LoweredKernel lowered;
  kernel::Kernel passed;
};

class Worker {
 public:
  Tally tally;

  void run(uint64_t seed, bool compile) {
    const auto begin = std::chrono::steady_clock::now();
    running = fmt::format("seed {}: crash\n", seed);
    auto what = std::make_shared<RegionCase>(random_region(seed));
    std::shared_ptr<const RegionOracle> oracle;
    const graph::Region region = whole_region(what->graph);
    try {
      oracle = std::make_shared<RegionOracle>(what->graph, region, what->layouts, what->inputs);
    } catch (const UserError&) {
      ++tally.unfit;
      return;
    }
    const RegionForms forms = schedule::region_forms(what->graph, region);
    count_maps(forms, tally.maps);
    Random random(seed);
    const bool wide = random.chance(50);
    const machine::Machine machine = machine::host_machine(wide ? "x86-64-v4" : "x86-64-v3");
    fusion::TileOptions options;
    options.threads = random.chance(50) ? 1 : 4;
    if (random.chance(50)) options.usual = what->symbols;
    try {
      check(what, oracle, forms, fusion::choose_schedule(forms, what->layouts, machine, options), wide,
            compile, tally.chooser);
    } catch (const std::exception& error) {
      report(*what, {}, fmt::format("chooser: {}", error.what()));
    }
    for (int i = 0; i < 2; ++i)
      check(what, oracle, forms, random_schedule(forms, random), random.chance(50), compile && i == 0,
            tally.random);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (seconds > tally.slowest) {
      tally.slowest = seconds;
      tally.slowest_seed = seed;
    }
  }

  void finish() {
    for (const bool wide : {false, true}) compile_batch(wide);
  }

 private:
  std::vector<Pending> pending_[2];

  void report(const RegionCase& what, const schedule::Schedule& schedule, const std::string& words,
              const kernel::Kernel* kernel = nullptr) {
    tally.wrong.push_back(description(what, schedule, words, kernel));
  }

  static std::string description(const RegionCase& what, const schedule::Schedule& schedule,
                                 const std::string& words, const kernel::Kernel* kernel) {
    std::string layouts;
    for (const auto& [value, layout] : what.layouts)
      layouts += fmt::format("layout %{} {}\n", value.node, layout.to_string());
    std::string symbols;
    for (const auto& [name, value] : what.symbols) symbols += fmt::format("{} = {}\n", name, value);
    return fmt::format("seed {}: {}\n{}{}{}{}{}", what.seed, words, graph::print(what.graph), symbols,
                       layouts, schedule::to_text(schedule), kernel ? kernel::print(*kernel) : "");
  }

  void check(const std::shared_ptr<const RegionCase>& what, const std::shared_ptr<const RegionOracle>& oracle,
             const RegionForms& forms, const schedule::Schedule& schedule, bool wide, bool compile,
             Counts& counts) {
    Pending job;
    try {
      if (!(schedule::parse_schedule(schedule::to_text(schedule)) == schedule))
        report(*what, schedule, "the schedule's text reads back as another");
      const schedule::TreeResult built = schedule::build_tree(forms, schedule, what->layouts);
      ++counts["all"];
      if (!built.verdict.allowed()) {
        ++counts["refused: " + built.verdict.code];
        if (std::getenv("FUSEWISE_REGION_REFUSED") && &counts == &tally.chooser)
          fmt::print("seed {} {} {}\n{}{}\n", what->seed, built.verdict.code, built.verdict.detail,
                     graph::print(what->graph), schedule::to_text(schedule));
        return;
      }
      schedule::LowerOptions options;
      options.vector_lanes = wide ? 16 : 8;
      job.lowered = schedule::lower(forms, built.tree, options);
      if (job.lowered.kernel.phases.size() == 1) ++counts["single phase"];
      count_stages(built.tree, tally);
      ++tally.interpreted;
      if (const std::string words = oracle->interpret(job.lowered, job.lowered.kernel); !words.empty())
        return report(*what, schedule, "lowered: " + words, &job.lowered.kernel);
      kernel::PassOptions passes;
      passes.vector_bits = wide ? 512 : 256;
      job.passed = kernel::run_passes(job.lowered.kernel, passes);
      if (const std::string words = oracle->interpret(job.lowered, job.passed); !words.empty())
        return report(*what, schedule, "passed: " + words, &job.passed);
    } catch (const std::exception& error) {
      return report(*what, schedule, fmt::format("error: {}", error.what()));
    }
    if (!compile) return;
    auto& batch = pending_[wide ? 1 : 0];
    job.what = what;
    job.oracle = oracle;
    job.schedule = schedule;
    job.passed.name = fmt::format("k{}", batch.size());
    batch.push_back(std::move(job));
    if (batch.size() == 32) compile_batch(wide);
  }

  void compile_batch(bool wide) {
    auto& batch = pending_[wide ? 1 : 0];
    if (batch.empty()) return;
    std::vector<kernel::Kernel> kernels;
    for (const Pending& job : batch) kernels.push_back(job.passed);
    try {
      const CompiledKernels compiled(kernels, wide ? "x86-64-v4" : "x86-64-v3", 1);
      for (const Pending& job : batch) {
        if (wide && !codegen_runs_wide()) continue;
        ++tally.compiled;
        running = description(*job.what, job.schedule, "crash", &job.passed);
        if (const std::string words = compiled.run(*job.oracle, job.lowered, job.passed); !words.empty())
          report(*job.what, job.schedule, "compiled: " + words, &job.passed);
      }
    } catch (const std::exception& error) {
      for (const Pending& job : batch)
        report(*job.what, job.schedule, fmt::format("compiling: {}", error.what()));
    }
    batch.clear();
  }
  static bool codegen_runs_wide() { return machine::host_machine().vector_bits == 512; }
};

std::string table(const char* title, const Counts& counts) {
  std::string text = fmt::format("{}:", title);
  for (const auto& [name, n] : counts) text += fmt::format("  {} {}", name, n);
  return text + '\n';
}

TEST(RandomRegions, AreRight) {
  const int64_t cases = setting("FUSEWISE_REGION_CASES", 3000), first = setting("FUSEWISE_REGION_SEED", 1);
  const int64_t compile_every = setting("FUSEWISE_REGION_COMPILE_EVERY", 20);
  std::signal(SIGSEGV, report_crash);
  std::atomic<int64_t> next = 0;
  std::mutex mutex;
  Tally all;
  const auto work = [&] {
    Worker worker;
    for (int64_t i = next++; i < cases; i = next++)
      worker.run(static_cast<uint64_t>(first + i), compile_every > 0 && i % compile_every == 0);
    worker.finish();
    const std::lock_guard lock(mutex);
    all.add(worker.tally);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::max(1U, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  std::signal(SIGSEGV, SIG_DFL);

  fmt::print(
      "{} regions ({} refused by the interpreter), {} schedules interpreted, {} kernels compiled; slowest "
      "{:.1f} s, seed {}\n",
      cases, all.unfit, all.interpreted, all.compiled, all.slowest, all.slowest_seed);
  fmt::print("{}{}{}{}{}", table("index maps", all.maps), table("placements", all.placements),
             table("reuse", all.reuses), table("chooser", all.chooser),
             table("random schedules", all.random));
  std::sort(all.wrong.begin(), all.wrong.end(),
            [](const auto& a, const auto& b) { return a.size() < b.size(); });
  std::map<std::string, int> kinds;
  for (size_t i = 0; i < all.wrong.size(); ++i) {
    std::string kind = all.wrong[i].substr(all.wrong[i].find(": ") + 2, 40);
    ++kinds[kind];
    if (i < static_cast<size_t>(setting("FUSEWISE_REGION_REPORTS", 3))) ADD_FAILURE() << all.wrong[i];
  }
  for (const auto& [kind, n] : kinds) fmt::print("wrong {} times: {}\n", n, kind);
  ASSERT_EQ(all.wrong.size(), 0U);
  if (cases < 2000) return;

  int64_t refused = 0;
  for (const auto& [name, n] : all.chooser)
    if (name.starts_with("refused")) refused += n;
  EXPECT_LT(refused * 10, all.chooser["all"]);
  EXPECT_GT(all.chooser["single phase"] * 10, all.chooser["all"] * 6);
  EXPECT_LT(all.unfit * 20, cases);
  for (const char* name :
       {"affine", "strided", "run-time coefficient", "quasi-affine", "piecewise", "gathered", "window"})
    EXPECT_GT(all.maps[name], 100) << name;
  for (const char* name : {"registers", "scratch", "memory"}) EXPECT_GT(all.placements[name], 100) << name;
  for (const char* name : {"keep", "recompute", "slide"}) EXPECT_GT(all.reuses[name], 100) << name;
}

}  // namespace
}  // namespace fusewise::test

#include "region_stress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <mutex>
#include <optional>
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

void Tally::add(const Tally& other) {
  const auto merge = [](Counts& into, const Counts& from) {
    for (const auto& [key, n] : from) into[key] += n;
  };
  merge(maps, other.maps);
  merge(placements, other.placements);
  merge(reuses, other.reuses);
  merge(chooser, other.chooser);
  merge(random, other.random);
  wrong.insert(wrong.end(), other.wrong.begin(), other.wrong.end());
  regions += other.regions;
  parts += other.parts;
  interpreted += other.interpreted;
  compiled += other.compiled;
  unfit += other.unfit;
  if (other.slowest > slowest) {
    slowest = other.slowest;
    slowest_seed = other.slowest_seed;
  }
}

namespace {

using schedule::RegionForms;

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
  explicit Worker(const RegionStress& options) : options_(options) {}
  Tally tally;

  void run(uint64_t seed, bool compile) {
    const auto begin = std::chrono::steady_clock::now();
    running = fmt::format("seed {}: crash\n", seed);
    auto what = std::make_shared<RegionCase>(random_region(seed));
    std::shared_ptr<const RegionOracle> oracle;
    Random random(seed);
    ++tally.regions;
    const bool part = what->graph.size() > 8 && random.chance(70);
    tally.parts += part ? 1 : 0;
    const graph::Region region = part ? random_part(what->graph, random) : whole_region(what->graph);
    try {
      oracle = std::make_shared<RegionOracle>(what->graph, region, what->layouts, what->inputs);
    } catch (const UserError&) {
      ++tally.unfit;
      return;
    }
    const RegionForms forms = schedule::region_forms(what->graph, region);
    count_maps(forms, tally.maps);
    const bool wide = random.chance(50);
    const machine::Machine machine = machine::host_machine(wide ? "x86-64-v4" : "x86-64-v3");
    fusion::TileOptions options;
    options.threads = random.chance(50) ? 1 : 4;
    if (random.chance(50)) options.usual = what->symbols;
    try {
      check(what, oracle, forms, fusion::choose_schedule(forms, what->layouts, machine, options), wide,
            compile, tally.chooser);
    } catch (const std::exception& error) {
      report(*what, region, {}, fmt::format("chooser: {}", error.what()));
    }
    for (int64_t i = 0; i < options_.random_schedules; ++i)
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
  const RegionStress& options_;
  std::vector<Pending> pending_[2];

  void report(const RegionCase& what, const graph::Region& region, const schedule::Schedule& schedule,
              const std::string& words, const kernel::Kernel* kernel = nullptr) {
    tally.wrong.push_back(description(what, region, schedule, words, kernel));
  }

  static std::string description(const RegionCase& what, const graph::Region& region,
                                 const schedule::Schedule& schedule, const std::string& words,
                                 const kernel::Kernel* kernel) {
    std::string layouts = "region";
    for (graph::NodeId n : region.nodes) layouts += fmt::format(" %{}", n);
    layouts += " delivers";
    for (graph::Value v : region.outputs) layouts += fmt::format(" %{}", v.node);
    layouts += '\n';
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
        report(*what, forms.region, schedule, "the schedule's text reads back as another");
      const schedule::TreeResult built = schedule::build_tree(forms, schedule, what->layouts);
      ++counts["all"];
      if (!built.verdict.allowed()) {
        ++counts["refused: " + built.verdict.code];
        return;
      }
      schedule::LowerOptions options;
      options.vector_lanes = wide ? 16 : 8;
      job.lowered = schedule::lower(forms, built.tree, options);
      if (job.lowered.kernel.phases.size() == 1) ++counts["single phase"];
      count_stages(built.tree, tally);
      ++tally.interpreted;
      if (const std::string words = oracle->interpret(job.lowered, job.lowered.kernel); !words.empty())
        return report(*what, forms.region, schedule, "lowered: " + words, &job.lowered.kernel);
      kernel::PassOptions passes;
      passes.vector_bits = wide ? 512 : 256;
      job.passed = kernel::run_passes(job.lowered.kernel, passes);
      if (const std::string words = oracle->interpret(job.lowered, job.passed); !words.empty())
        return report(*what, forms.region, schedule, "passed: " + words, &job.passed);
    } catch (const std::exception& error) {
      return report(*what, forms.region, schedule, fmt::format("error: {}", error.what()));
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
        running = description(*job.what, job.oracle->region, job.schedule, "crash", &job.passed);
        if (const std::string words = compiled.run(*job.oracle, job.lowered, job.passed); !words.empty())
          report(*job.what, job.oracle->region, job.schedule, "compiled: " + words, &job.passed);
      }
    } catch (const std::exception& error) {
      for (const Pending& job : batch)
        report(*job.what, job.oracle->region, job.schedule, fmt::format("compiling: {}", error.what()));
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

}  // namespace

Tally run_stress(const RegionStress& options) {
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const auto in_time = [&] { return options.seconds <= 0 || elapsed() < options.seconds; };
  for (const int signal : {SIGSEGV, SIGFPE, SIGILL, SIGBUS}) std::signal(signal, report_crash);
  std::atomic<int64_t> next = 0;
  std::mutex mutex;
  Tally all;
  std::atomic<double> next_word = 30;
  const auto say_progress = [&](int64_t regions) {
    double at = next_word;
    if (options.progress && elapsed() > at && next_word.compare_exchange_strong(at, elapsed() + 30))
      fmt::print(stderr, "{} regions after {:.0f} s\n", regions, elapsed());
  };
  const auto work = [&] {
    Worker worker(options);
    for (int64_t i = next++; i < options.regions && in_time(); i = next++) {
      worker.run(options.seed + static_cast<uint64_t>(i),
                 options.compile_every > 0 && i % options.compile_every == 0);
      say_progress(i + 1);
    }
    worker.finish();
    const std::lock_guard lock(mutex);
    all.add(worker.tally);
  };
  const unsigned count = options.threads > 0 ? static_cast<unsigned>(options.threads)
                                             : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < count; ++i) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  for (const int signal : {SIGSEGV, SIGFPE, SIGILL, SIGBUS}) std::signal(signal, SIG_DFL);
  std::sort(all.wrong.begin(), all.wrong.end(),
            [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return all;
}

std::string to_text(const Tally& all) {
  std::string text = fmt::format(
      "{} regions ({} of them parts of graphs, {} refused by the interpreter), {} schedules interpreted, {} "
      "kernels compiled; slowest {:.1f} s, seed {}\n",
      all.regions, all.parts, all.unfit, all.interpreted, all.compiled, all.slowest, all.slowest_seed);
  text += table("index maps", all.maps) + table("placements", all.placements) + table("reuse", all.reuses) +
          table("chooser", all.chooser) + table("random schedules", all.random);
  Counts kinds;
  for (const std::string& words : all.wrong) ++kinds[words.substr(words.find(": ") + 2, 40)];
  for (const auto& [kind, n] : kinds) text += fmt::format("wrong {} times: {}\n", n, kind);
  return text;
}

}  // namespace fusewise::test

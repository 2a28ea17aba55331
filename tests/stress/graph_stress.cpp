#include "stress/graph_stress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "base/error.h"
#include "codegen/codegen.h"
#include "graph/text.h"
#include "support/random.h"

namespace fusewise::test {

using compiler::Numerics;
using fusion::FusionMode;

namespace {

// What to say when machine code touches what it must not: the process ends there.
char running[512];

void say_running(int) {
  const ssize_t written = write(STDERR_FILENO, running, sizeof running);
  _exit(written < 0 ? 3 : 2);
}

volatile std::sig_atomic_t interrupted = 0;

void stop_soon(int) { interrupted = 1; }

void note_running(uint64_t seed, const GraphSettings& settings) {
  const std::string words = fmt::format("crash: seed {} {}\n", seed, to_text(settings));
  std::fill(std::begin(running), std::end(running), ' ');
  words.copy(running, sizeof running - 1);
}

std::string target_of(Random& random) { return random.chance(50) ? "x86-64-v4" : "x86-64-v3"; }

// Two ways for each graph: the planner's plan in strict mode, and another.
std::vector<GraphSettings> ways_of(bool compile, Random& random) {
  GraphSettings strict;
  strict.target = target_of(random);
  strict.fusion =
      random.one_of({FusionMode::on, FusionMode::on, FusionMode::on, FusionMode::operators, FusionMode::off});
  strict.threads = random.one_of({1, 2, 5});
  strict.execution = compile ? random.one_of({Execution::compiled, Execution::guarded})
                             : random.one_of({Execution::lowered, Execution::passed});
  GraphSettings other = strict;
  other.target = target_of(random);
  other.threads = random.one_of({1, 2, 5});
  other.fusion = FusionMode::on;
  if (random.chance(40)) other.numerics = Numerics::default_;
  if (other.numerics == Numerics::strict || random.chance(50)) other.plan = random.next() % 1000000 + 1;
  return {strict, other};
}

void count_nodes(const graph::Graph& graph, const SymbolValues& symbols, std::map<std::string, bool>& found) {
  for (graph::NodeId n = 0; n < graph.size(); ++n) {
    const graph::Node& node = graph.node(n);
    const graph::TensorType& type = node.results[0];
    std::string name(graph::name_of(node.op));
    if (node.op == graph::Op::map) name = name_of(graph::attributes<graph::MapAttributes>(node).op);
    found[fmt::format("op {}", name)] = true;
    const DataType element = node.operands.empty() ? type.element : graph.type(node.operands.back()).element;
    found[fmt::format("type {}", name_of(element))] = true;
    if (name == "cast") found[fmt::format("cast {} to {}", name_of(element), name_of(type.element))] = true;
    if (const auto* a = std::get_if<graph::HostAttributes>(&node.attributes))
      found[fmt::format("host {}", hostops::name_of(a->function))] = true;
    if (const auto* a = std::get_if<graph::ScatterAttributes>(&node.attributes))
      found[fmt::format("scatter {}", graph::name_of(a->update))] = true;
    if (const auto* a = std::get_if<graph::PrefixAttributes>(&node.attributes))
      found[fmt::format("prefix {}{}{}", graph::name_of(a->combine), a->exclusive ? " exclusive" : "",
                        a->reverse ? " reverse" : "")] = true;
    if (const auto* a = std::get_if<graph::ConvolutionAttributes>(&node.attributes)) {
      found[fmt::format("convolution {}-d", a->strides.size())] = true;
      if (a->groups > 1) found["convolution grouped"] = true;
    }
    for (const Dim& d : type.shape) {
      const int64_t size = d.evaluate(symbols);
      if (!d.is_constant())
        found[size == 1 ? "dim symbol that is 1" : size == 0 ? "dim symbol that is 0" : "dim symbol"] = true;
      if (size == 0) found["dim 0"] = true;
    }
  }
}

void count_graph(const GraphCase& what, Counts& seen) {
  std::map<std::string, bool> found;
  for (const graph::Graph* one : graph::with_bodies(what.graph)) count_nodes(*one, what.symbols, found);
  if (what.graph.outputs.size() > 1) found["several outputs"] = true;
  for (const auto& [name, yes] : found) ++seen[name];
}

class Stress {
 public:
  explicit Stress(const StressOptions& options) : options_(options) {}

  StressSummary run() {
    const auto begin = Clock::now();
    double next_word = 30;
    for (int64_t i = 0; i < options_.count && interrupted == 0; ++i) {
      if (options_.seconds > 0 && seconds_since(begin) > options_.seconds) break;
      if (std::ssize(summary_.failures) >= options_.most_failures) break;
      one(options_.seed + static_cast<uint64_t>(i));
      if (options_.progress && seconds_since(begin) > next_word) {
        fmt::print(stderr, "{} graphs, {} runs, {} wrong after {:.0f} s\n", summary_.graphs, summary_.runs,
                   summary_.failures.size(), seconds_since(begin));
        next_word = seconds_since(begin) + 30;
      }
    }
    return std::move(summary_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  const StressOptions& options_;
  StressSummary summary_;

  static double seconds_since(Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  }

  void one(uint64_t seed) {
    const auto begin = Clock::now();
    note_running(seed, {});
    const GraphCase what = random_graph(seed, options_.graphs.value_or(stress_graphs(seed)));
    ++summary_.graphs;
    count_graph(what, summary_.coverage);
    std::optional<GraphOracle> oracle;
    try {
      oracle.emplace(what);
    } catch (const UserError&) {
      ++summary_.unfit;
      return;
    }
    Random random(~seed);
    for (const GraphSettings& settings : ways_of(options_.compile, random)) {
      const bool compiled =
          settings.execution == Execution::compiled || settings.execution == Execution::guarded;
      if (compiled && !codegen::host_runs(settings.target)) continue;
      note_running(seed, settings);
      ++summary_.runs;
      for (const auto& word :
           {fmt::format("numerics {}", settings.numerics == Numerics::strict ? "strict" : "default"),
            fmt::format("plan {}", settings.plan ? "random" : "the planner's"),
            fmt::format("threads {}", settings.threads), settings.target})
        ++summary_.settings[word];
      GraphOutcome outcome = run_graph(what, *oracle, settings, &summary_.plans);
      if (outcome.kind == GraphOutcome::Kind::refused) {
        ++summary_.refused;
        ++summary_.refusals[outcome.words];
      }
      if (outcome.kind == GraphOutcome::Kind::wrong)
        summary_.failures.push_back({seed, settings, std::move(outcome.words)});
    }
    const double took = seconds_since(begin);
    if (took > summary_.slowest) {
      summary_.slowest = took;
      summary_.slowest_seed = seed;
    }
  }
};

std::string table(const char* title, const Counts& counts) {
  std::string text = fmt::format("{}:", title);
  for (const auto& [name, n] : counts) text += fmt::format("  {} {}", name, n);
  return text + '\n';
}

}  // namespace

GraphOptions stress_graphs(uint64_t seed) {
  Random random(seed ^ 0x5DEECE66DULL);
  GraphOptions options;
  options.most_operations = random.one_of<int64_t>({3, 8, 8, 14, 24});
  options.most_elements = random.one_of<int64_t>({60, 300, 300, 1200});
  options.most_work = 10 * options.most_elements;
  options.chain_percent = random.one_of({30, 60, 60, 90});
  options.promises = random.chance(30);
  options.odd_borders = random.chance(50);
  return options;
}

StressSummary run_stress(const StressOptions& options) { return Stress(options).run(); }

std::string to_text(const StressSummary& s) {
  std::string text = fmt::format(
      "{} graphs ({} refused by the interpreter), {} runs, {} refused, {} wrong; slowest {:.2f} s, seed {}\n",
      s.graphs, s.unfit, s.runs, s.refused, s.failures.size(), s.slowest, s.slowest_seed);
  text += table("graphs", s.coverage) + table("settings", s.settings) + table("plans", s.plans);
  if (!s.refusals.empty()) text += table("refusals", s.refusals);
  for (const StressFailure& f : s.failures)
    text += fmt::format("WRONG seed {} {}: {}\n", f.seed, to_text(f.settings), f.words);
  return text;
}

void handle_signals() {
  for (const int signal : {SIGSEGV, SIGFPE, SIGILL, SIGBUS, SIGABRT}) std::signal(signal, say_running);
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, stop_soon);
}

}  // namespace fusewise::test

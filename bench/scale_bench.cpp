// How long models of many nodes take to import, rewrite, plan, print and compile, how much memory that takes, and how
// both grow: a table of a row per shape of graph and number of nodes. It fails where what comes between two sizes is
// more than linear growth, times `--growth` (1.2), in any phase.
//
// Nodes are those of the model file. Seconds are of the processor: what else runs on the machine counts little. Each row
// is a process of its own, so that its memory is its own.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "compiler/compiler.h"
#include "export/onnx_builder.h"
#include "fusion/explain.h"
#include "fusion/plan_json.h"
#include "graph/statistics.h"
#include "graph/text.h"
#include "import/import.h"
#include "machine/machine.h"

namespace {

using namespace fusewise;

const OnnxShape matrix = {int64_t{16}, int64_t{8}};

std::string weights(OnnxBuilder& model, const std::string& name, std::vector<int64_t> dims, int seed) {
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(0.01F * static_cast<float>((i * 7 + seed) % 31) + 0.001F);
  return model.floats(name, std::move(dims), std::move(values));
}

// A product, its softmax and a sum; the same in every layer, weights included.
OnnxBuilder equal_layers(int nodes) {
  OnnxBuilder model;
  std::string x = model.input("x", DataType::float32, matrix);
  model.floats("w", {8, 8}, std::vector<float>(64, 0.5F));
  for (int done = 0; done < nodes; done += 5) {
    const std::string y = model.node("MatMul", {x, "w"});
    const std::string s = model.node("Softmax", {y});
    const std::string a = model.node("Mul", {s, x}), b = model.node("Tanh", {a});
    x = model.node("Add", {b, y});
  }
  model.output_without_shape(x, DataType::float32);
  return model;
}

// Of a residual network's layer: normalisation, product, bias, GELU, product and the sum, every layer with weights of its
// own. The sums are one long chain from the first layer to the last.
OnnxBuilder residual_layers(int nodes) {
  OnnxBuilder model(20);
  std::string x = model.input("x", DataType::float32, matrix);
  for (int layer = 0; layer * 6 < nodes; ++layer) {
    const auto own = [&](const char* name, std::vector<int64_t> dims) {
      return weights(model, fmt::format("{}{}", name, layer), std::move(dims), layer);
    };
    const std::string n = model.node("LayerNormalization", {x, own("g", {8}), own("h", {8})}, {{"axis", -1}});
    const std::string y = model.node("MatMul", {n, own("a", {8, 16})});
    const std::string z = model.node("Gelu", {model.node("Add", {y, own("b", {16})})});
    x = model.node("Add", {x, model.node("MatMul", {z, own("c", {16, 8})})});
  }
  model.output_without_shape(x, DataType::float32);
  return model;
}

// Branches over ever longer parts of the input: no two nodes have the same shape.
OnnxBuilder different_branches(int nodes) {
  OnnxBuilder model;
  const std::string x = model.input("x", DataType::float32, {int64_t{nodes}});
  model.ints("zero", {1}, {0});
  std::string sum;
  for (int done = 0; done < nodes; done += 6) {
    const std::string end = model.ints(fmt::format("end{}", done), {1}, {done + 1});
    const std::string part = model.node("Slice", {x, "zero", end});
    const std::string a = model.node("Exp", {part}), b = model.node("Mul", {a, part}),
                      c = model.node("Neg", {b});
    const std::string total = model.node("ReduceSum", {c}, {{"keepdims", 1}});
    sum = sum.empty() ? total : model.node("Add", {sum, total});
  }
  model.output_without_shape(sum, DataType::float32);
  return model;
}

// Elementwise operations of many kinds, one behind the other.
OnnxBuilder one_chain(int nodes) {
  constexpr std::array operators = {"Sigmoid", "Softplus", "Tanh", "Abs", "Exp", "Erf", "Neg"};
  OnnxBuilder model;
  std::string x = model.input("x", DataType::float32, {int64_t{4}, int64_t{4}});
  for (size_t i = 0; i < static_cast<size_t>(nodes); ++i)
    x = model.node(operators[i * i % operators.size()], {x});
  model.output_without_shape(x, DataType::float32);
  return model;
}

// Many readers of one value, none like another, and readers of a thousand values each.
OnnxBuilder many_readers(int nodes) {
  OnnxBuilder model;
  const std::string x = model.input("x", DataType::float32, {int64_t{16}, int64_t{64}});
  const std::string shared = model.node("Exp", {x});
  std::vector<std::string> parts;
  for (int i = 0; i < nodes / 3; ++i) {
    const std::string own = model.floats(fmt::format("c{}", i), {1}, {static_cast<float>(i + 1) / 3});
    parts.push_back(model.node("ReduceMax", {model.node("Tanh", {model.node("Mul", {shared, own})})}));
  }
  for (size_t begin = 0; begin < parts.size(); begin += 1000) {
    const size_t end = std::min(parts.size(), begin + 1000);
    const std::vector<std::string> some(parts.begin() + static_cast<int64_t>(begin),
                                        parts.begin() + static_cast<int64_t>(end));
    model.output_without_shape(model.node("Concat", some, {{"axis", 0}}), DataType::float32);
  }
  return model;
}

// As many inputs as nodes, added up in pairs.
OnnxBuilder many_inputs(int nodes) {
  OnnxBuilder model;
  std::vector<std::string> values;
  for (int i = 0; i <= nodes; ++i)
    values.push_back(model.input(fmt::format("x{}", i), DataType::float32, {int64_t{64}}));
  while (values.size() > 1) {
    std::vector<std::string> sums;
    for (size_t i = 0; i + 1 < values.size(); i += 2)
      sums.push_back(model.node("Add", {values[i], values[i + 1]}));
    if (values.size() % 2) sums.push_back(values.back());
    values = std::move(sums);
  }
  model.output_without_shape(values[0], DataType::float32);
  return model;
}

// Down and up again: every value on the way down is read on the way up, so half of all values live at once.
OnnxBuilder long_skips(int nodes) {
  OnnxBuilder model;
  std::string x = model.input("x", DataType::float32, matrix);
  std::vector<std::string> down;
  for (int i = 0; i < nodes / 5; ++i) {
    down.push_back(x);
    x = model.node("Softmax", {model.node("Tanh", {x})});
  }
  for (; !down.empty(); down.pop_back()) {
    const std::string both = model.node("Add", {x, down.back()});
    x = model.node("Mul", {model.node("ReduceMax", {both}, {{"axes", std::vector<int64_t>{1}}}), both});
  }
  model.output_without_shape(x, DataType::float32);
  return model;
}

// Convolutions with batch normalisation and a residual sum every other layer.
OnnxBuilder convolutions(int nodes) {
  OnnxBuilder model;
  std::string x = model.input("x", DataType::float32, {int64_t{1}, int64_t{4}, int64_t{6}, int64_t{6}});
  std::string before = x;
  for (int layer = 0; layer * 7 < nodes * 2; ++layer) {
    const auto own = [&](const char* name, std::vector<int64_t> dims) {
      return weights(model, fmt::format("{}{}", name, layer), std::move(dims), layer);
    };
    const std::string y = model.node("Conv", {x, own("w", {4, 4, 3, 3}), own("b", {4})},
                                     {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
    const std::string n =
        model.node("BatchNormalization", {y, own("s", {4}), own("o", {4}), own("m", {4}), own("v", {4})});
    x = model.node("Relu", {n});
    if (layer % 2 == 0) continue;
    x = model.node("Add", {x, before});
    before = x;
  }
  model.output_without_shape(x, DataType::float32);
  return model;
}

struct Kind {
  std::string_view name;
  OnnxBuilder (*build)(int nodes);
};
constexpr Kind kinds[] = {
    {"chain", one_chain},          {"convolutions", convolutions}, {"different", different_branches},
    {"equal", equal_layers},       {"inputs", many_inputs},        {"readers", many_readers},
    {"residual", residual_layers}, {"skips", long_skips},
};

enum Column : uint8_t {
  import_,
  rewrite,
  plan,
  print,
  json,
  inspect,
  explain,
  lower,
  codegen,
  program,
  columns
};
constexpr std::array<std::string_view, columns> titles = {
    "import", "rewrite", "plan", "print", "plan.json", "inspect", "explain", "lower", "codegen", "program"};

struct Row {
  bool done = false;
  int nodes = 0;
  size_t primitives = 0, groups = 0, kernels = 0;
  double megabytes = 0;  // at the peak, more than the model file and what stood before
  std::array<double, columns> seconds{};

  // What a user waits for before anything is compiled.
  double front() const {
    return seconds[import_] + seconds[rewrite] + seconds[plan] + seconds[print] + seconds[json];
  }
};

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

template <class Work>
double seconds(const Work& work) {
  const double start = processor_seconds();
  work();
  return processor_seconds() - start;
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

Row measure(const Kind& kind, int nodes, bool compile) {
  Row row;
  row.nodes = nodes;
  const auto file = std::make_shared<const std::string>(kind.build(nodes).serialize());
  const double before = peak_megabytes();
  graph::Graph graph;
  row.seconds[import_] =
      seconds([&] { graph = import_onnx(std::as_bytes(std::span(*file)), file, "scale.onnx", {}); });
  row.seconds[inspect] = seconds([&] { graph::flops_of(graph); });
  compiler::CompileOptions options;
  options.machine = machine::host_machine();
  if (compile) {
    compiler::Compiled compiled = compiler::compile(graph, options);
    for (Column c : {lower, codegen, program})
      row.seconds[c] = compiled.milliseconds.at(std::string(titles[c])) / 1e3;
    row.kernels = compiled.program.kernels.size();
  }
  row.seconds[print] = seconds([&] { graph::print(graph); });
  compiler::Planned planned;
  const double both = seconds([&] { planned = compiler::plan_graph(std::move(graph), options); });
  const double share = planned.milliseconds.at("plan") /
                       (planned.milliseconds.at("plan") + planned.milliseconds.at("rewrite"));
  row.seconds[plan] = both * share;
  row.seconds[rewrite] = both - row.seconds[plan];
  row.seconds[json] = seconds([&] { fusion::to_json_text(planned.graph, planned.plan); });
  row.seconds[explain] = seconds([&] { fusion::explain_model(planned.graph, planned.plan); });
  row.megabytes = peak_megabytes() - before;
  row.primitives = planned.graph.size();
  row.groups = planned.plan.regions.size();
  row.done = true;
  return row;
}

// In a process of its own.
Row measured_apart(const Kind& kind, int nodes, bool compile) {
  int ends[2];
  check(pipe(ends) == 0, "no pipe");
  const pid_t child = fork();
  check(child >= 0, "no process");
  if (child == 0) {
    Row row;
    try {
      row = measure(kind, nodes, compile);
    } catch (const std::exception& error) {
      fmt::print(stderr, "{} {}: {}\n", kind.name, nodes, error.what());
    }
    const bool written = write(ends[1], &row, sizeof(row)) == sizeof(row);
    _exit(written ? 0 : 1);
  }
  Row row;
  close(ends[1]);
  const bool whole = read(ends[0], &row, sizeof(row)) == sizeof(row);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return whole ? row : Row{};
}

void print_row(const Kind& kind, const Row& row, bool compile) {
  fmt::print("{:13}{:8}{:11}{:8}", kind.name, row.nodes, row.primitives, row.groups);
  for (int c = 0; c < (compile ? columns : lower); ++c)
    fmt::print("{:11.3f}", row.seconds[static_cast<size_t>(c)]);
  if (compile) fmt::print("{:9}", row.kernels);
  fmt::print("{:9.2f}{:8.1f}{:9.0f}\n", row.front(), row.front() * 1e6 / row.nodes, row.megabytes);
  std::fflush(stdout);
}

// Times below this are noise.
constexpr double least_seconds = 0.05;
constexpr double least_megabytes = 20;

// Says what grows faster than `growth` times the nodes.
bool grows_linearly(const Kind& kind, const Row& small, const Row& large, double growth) {
  const double most = static_cast<double>(large.nodes) / small.nodes * growth;
  bool linear = true;
  const auto compare = [&](std::string_view what, double before, double then, double least) {
    if (then <= most * std::max(before, least)) return;
    fmt::print("{} {}: {} grows from {:.3f} to {:.3f}, x{:.1f} for x{:.1f} the nodes\n", kind.name,
               large.nodes, what, before, then, then / before,
               static_cast<double>(large.nodes) / small.nodes);
    linear = false;
  };
  for (size_t c = 0; c < columns; ++c) compare(titles[c], small.seconds[c], large.seconds[c], least_seconds);
  compare("import to plan.json", small.front(), large.front(), least_seconds);
  compare("memory", small.megabytes, large.megabytes, least_megabytes);
  return linear;
}

}  // namespace

int main(int count, char** words) {
  std::vector<int> sizes = {10'000, 20'000, 50'000, 100'000};
  std::vector<std::string> only;
  double growth = 1.2;
  bool compile = false;
  std::vector<std::string> names;
  for (const Kind& kind : kinds) names.emplace_back(kind.name);
  CLI::App app("measures how importing, planning, printing and compiling grow with the number of nodes");
  app.add_option("NODES", sizes, "of each model, ascending (10000 20000 50000 100000)")
      ->check(CLI::Range(1, 100'000'000));
  app.add_option("--only", only, "these shapes of graph only")
      ->check(CLI::IsMember(names))
      ->allow_extra_args(false);
  app.add_option("--growth", growth, "how much more than linear is allowed (1.2)")
      ->check(CLI::PositiveNumber);
  app.add_flag("--compile", compile, "make machine code, too");
  app.footer(
      "Example:\n  scale_bench --only chain --only equal 100000 400000\n\n"
      "Exits with 1 when something failed or grows more than that.");
  CLI11_PARSE(app, count, words);
  fmt::print("{:13}{:>8}{:>11}{:>8}", "shape", "nodes", "primitives", "groups");
  for (int c = 0; c < (compile ? columns : lower); ++c) fmt::print("{:>11}", titles[static_cast<size_t>(c)]);
  fmt::print("{}{:>9}{:>8}{:>9}\n", compile ? "  kernels" : "", "front s", "us/node", "peak MB");
  bool good = true;
  for (const Kind& kind : kinds) {
    if (!only.empty() && std::ranges::find(only, kind.name) == only.end()) continue;
    std::vector<Row> rows;
    for (const int nodes : sizes) {
      rows.push_back(measured_apart(kind, nodes, compile));
      good = good && rows.back().done;
      if (rows.back().done) print_row(kind, rows.back(), compile);
    }
    if (rows.front().done && rows.back().done)
      good = grows_linearly(kind, rows.front(), rows.back(), growth) && good;
  }
  fmt::print("{}\n", good ? "linear" : "NOT LINEAR");
  return good ? 0 : 1;
}

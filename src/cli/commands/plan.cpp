#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "base/text_table.h"
#include "cli/commands/commands.h"
#include "cli/session_options.h"
#include "fusion/plan_json.h"
#include "session/compile.h"

namespace fusewise::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  CompileFlags compile;
  std::string output;
};

double gap_of(const fusion::FusionPlan& plan) {
  if (plan.lower_bound_microseconds <= 0) return 0;
  return plan.predicted_microseconds / plan.lower_bound_microseconds - 1;
}

std::string words_of(const compiler::Planned& planned) {
  const fusion::FusionPlan& plan = planned.plan;
  const fusion::KernelCounts counts = fusion::count_kernels(plan);
  TextTable table({{""}, {""}});
  table.add_row({"primitives", fmt::format("{}", planned.graph.size())});
  table.add_row({"groups", fmt::format("{} ({} of constants only)", counts.groups, counts.once)});
  table.add_row({"cut edges", fmt::format("{}", plan.cuts.size())});
  table.add_row({"predicted", fmt::format("{:.4g} ms", plan.predicted_microseconds / 1e3)});
  table.add_row({"lower bound", fmt::format("{:.4g} ms ({:.0f}% below)", plan.lower_bound_microseconds / 1e3,
                                            100 * (1 - 1 / (1 + gap_of(plan))))});
  table.add_row({"search", fmt::format("{}, {} candidates{}", plan.search, plan.candidates,
                                       plan.search_complete ? "" : ", ended by its budget")});
  return table.to_string();
}

Json to_json(const Options& options, const compiler::Planned& planned) {
  const fusion::FusionPlan& plan = planned.plan;
  const fusion::KernelCounts counts = fusion::count_kernels(plan);
  const auto plan_ms = planned.milliseconds.find("plan");
  return {{"model", options.compile.model},
          {"nodes", planned.graph.size()},
          {"groups", counts.groups},
          {"once_groups", counts.once},
          {"kernels", counts.kernels},
          {"phases", counts.phases},
          {"cuts", plan.cuts.size()},
          {"predicted_ms", json_number(plan.predicted_microseconds / 1e3)},
          {"lower_bound_ms", json_number(plan.lower_bound_microseconds / 1e3)},
          {"gap", json_number(gap_of(plan))},
          {"candidates", plan.candidates},
          {"search", plan.search},
          {"search_complete", plan.search_complete},
          {"plan_ms", plan_ms == planned.milliseconds.end() ? 0 : plan_ms->second}};
}

int plan(const Options& options, Console& console) {
  session::SessionOptions session = options.compile.options(console);
  compiler::Planned planned;
  with_model(options.compile, console, [&](const Chosen& chosen) {
    session.usual = chosen.usual;
    planned = compiler::plan_graph(chosen.model.graph(), session::compile_options_for(session));
  });
  if (!options.output.empty())
    write_file_atomically(options.output,
                          std::string_view(fusion::to_json_text(planned.graph, planned.plan)));
  console.print(words_of(planned));
  console.finish("plan", to_json(options, planned));
  return exit_done;
}

Action declare(Parser& parser) {
  auto options = std::make_shared<Options>();
  options->compile.declare(parser);
  parser.option("-o,--output", options->output, "FILE",
                "write the plan there; --plan FILE replays it in any command");
  return [options](Console& console) { return plan(*options, console); };
}

}  // namespace

Command plan_command() {
  return {"plan", "chooses which operators run together, and writes that plan",
          "fusewise plan model.onnx -o plan.json", declare};
}

}  // namespace fusewise::cli

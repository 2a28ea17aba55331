#include "compiler/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "fusion/model_nodes.h"
#include "fusion/tiles/choose_group_schedule.h"
#include "kernel/passes/pipeline.h"
#include "kernel/synchronization.h"
#include "kernel/verifier.h"
#include "schedule/overwrite.h"
#include "schedule/sweep.h"

namespace fusewise::compiler {

namespace {

// What a symbol of an object file may contain.
std::string sanitized(const std::string& text, size_t longest) {
  std::string result;
  for (char c : text) {
    const bool good = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (good)
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!result.empty() && result.back() != '_')
      result += '_';
  }
  while (!result.empty() && result.back() == '_') result.pop_back();
  return result.substr(0, longest);
}

}  // namespace

std::string region_name(const graph::Graph& graph, const graph::Region& region) {
  std::string operators, first;
  for (uint32_t s : fusion::model_nodes_of(graph, region)) {
    const graph::ModelNode& node = graph.model_nodes[s];
    if (operators.size() < 40) operators += (operators.empty() ? "" : "_") + sanitized(node.op_type, 20);
    if (first.empty()) first = sanitized(node.name.empty() ? node.first_output : node.name, 48);
  }
  if (operators.empty()) operators = "kernel";
  return first.empty() ? operators : operators + "__" + first;
}

codegen::CpuTarget target_of(const machine::Machine& machine) { return codegen::target_named(machine.cpu); }

// The plan's schedule is for a CPU; a GPU gets one of its own.
schedule::Tree KernelSet::tree_of(const schedule::RegionForms& forms, const std::string& name,
                                  const schedule::Schedule& schedule,
                                  const schedule::Layouts& layouts) const {
  if (!options_.target.empty()) {
    const fusion::GroupSchedule chosen =
        fusion::choose_group_schedule(forms, layouts, machine::plain_gpu(), schedule.order);
    if (!chosen.verdict)
      throw UnsupportedError(fmt::format("not supported yet: '{}' has no schedule for a GPU: {} ({})", name,
                                         chosen.verdict.detail, chosen.verdict.code));
    return chosen.tree;
  }
  const schedule::TreeResult built = schedule::build_tree(forms, schedule, layouts);
  if (built.verdict) return built.tree;
  throw UserError(fmt::format("the plan's schedule of '{}' cannot be carried out: {} ({})", name,
                              built.verdict.detail, built.verdict.code),
                  {.file = {},
                   .node = name,
                   .op = {},
                   .hint = "change the group's schedule, or leave it out to have one chosen"});
}

std::vector<KernelCall> KernelSet::add(const graph::Graph& graph, const fusion::FusionPlan& plan) {
  std::vector<KernelCall> calls;
  for (const fusion::PlannedRegion& planned : plan.regions) {
    try {
      calls.push_back(add(graph, planned, plan.layouts));
    } catch (const UnsupportedError& error) {
      if (options_.target.empty()) throw;
      refuse(region_name(graph, planned.region), error.what());
      calls.emplace_back();
    }
  }
  return calls;
}

KernelCall KernelSet::add(const graph::Graph& graph, const graph::Region& region,
                          const schedule::Schedule& schedule, const schedule::Layouts& layouts) {
  const schedule::RegionForms forms = schedule::region_forms(graph, region);
  const schedule::Tree tree = tree_of(forms, region_name(graph, region), schedule, layouts);
  schedule::LowerOptions lower_options;
  lower_options.vector_lanes = options_.machine.vector_bits / 32;
  KernelCall call = share(schedule::lower(forms, tree, lower_options), graph, region);
  if (options_.target.empty()) call.overwritable = schedule::overwritable(forms, tree);
  return call;
}

KernelCall KernelSet::add(const graph::Graph& graph, const fusion::PlannedRegion& planned,
                          const schedule::Layouts& layouts) {
  const graph::NodeId first = planned.region.nodes[0];
  if (planned.assembled) return {};
  if (!graph::stands_alone(graph, first)) return add(graph, planned.region, planned.schedule, layouts);
  if (!options_.target.empty())
    throw UnsupportedError(
        "not supported yet: loops, branches, selections, sorts, running sums and scatters on a device; use "
        "--target cpu");
  check_in_one_piece(graph, planned.region, layouts);
  KernelCall call;
  for (size_t b = 0; b < planned.bodies.size(); ++b)
    call.bodies.push_back(add(*graph.node(first).bodies[b], planned.bodies[b]));
  if (!planned.bodies.empty() || graph::is_opaque(graph, first)) return call;
  return share(schedule::lower_sweep(graph, first), graph, planned.region);
}

// What stands alone reads and writes whole tensors that lie in one piece, outermost dimension first.
void KernelSet::check_in_one_piece(const graph::Graph& graph, const graph::Region& region,
                                   const schedule::Layouts& layouts) const {
  const auto require = [&](graph::Value v) {
    const auto layout = layouts.find(v);
    if (layout == layouts.end() || layout->second.is_row_major()) return;
    throw UnsupportedError(
        fmt::format("not supported yet: '{}' reads or writes a tensor that does not lie in one "
                    "piece; leave --in-place out",
                    region_name(graph, region)));
  };
  for (graph::Value v : graph::region_inputs(graph, region)) require(v);
  for (graph::Value v : region.outputs) require(v);
}

KernelCall KernelSet::share(schedule::LoweredKernel lowered, const graph::Graph& graph,
                            const graph::Region& region) {
  KernelCall call;
  call.arguments = std::move(lowered.arguments);
  call.partials = std::move(lowered.partials);
  call.parameters = std::move(lowered.parameters);
  // The name is no part of what is compared.
  const std::string text = kernel::print(lowered.kernel);
  const auto [it, added] = by_text_.emplace(text, static_cast<int>(kernels.size()));
  call.kernel = it->second;
  if (added) {
    const std::string base = "k_" + region_name(graph, region);
    std::string name = base;
    for (int i = 2; !names_.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
    lowered.kernel.name = name;
    kernels.push_back(std::move(lowered.kernel));
  }
  return call;
}

// Of the names of passes, those that mean one of kernels; the others mean rewrites of graphs.
static std::set<std::string, std::less<>> disabled_kernel_passes(const std::vector<std::string>& names) {
  std::set<std::string, std::less<>> disabled;
  for (const std::string& name : names)
    if (std::ranges::any_of(kernel::passes(), [&](const kernel::Pass& pass) { return pass.name == name; }))
      disabled.insert(name);
  return disabled;
}

std::string KernelSet::compile() { return options_.target.empty() ? compile_machine_code() : print_source(); }

void KernelSet::refuse(const std::string& name, const std::string& why) {
  if (options_.dump) options_.dump("source", name, why);
  missing_ += (missing_.empty() ? "" : "\n") + why;
}

std::string KernelSet::print_source() {
  const codegen::Dialect& dialect = codegen::dialect_named(options_.target);
  kernel::PassOptions passes = codegen::source_passes();
  passes.disabled.merge(disabled_kernel_passes(options_.disabled_passes));
  std::vector<codegen::SourceKernel> printed;
  for (kernel::Kernel& k : kernels) {
    const std::string name = k.name;
    if (options_.dump) options_.dump("schedule", name, kernel::print(k));
    k = kernel::run_passes(std::move(k), passes);
    if (options_.dump) options_.dump("kernel", name, kernel::print(k));
    kernel::verify(k, kernel::Stage::final);
    kernel::verify_synchronization(k);
    try {
      printed.push_back(codegen::print_source(k, dialect, machine::plain_gpu()));
      launches.push_back(printed.back().launches);
      uses_double = uses_double || printed.back().uses_double;
      if (options_.dump) options_.dump("source", name, printed.back().text);
    } catch (const UnsupportedError& error) {
      refuse(name, error.what());
    }
    if (options_.progress)
      options_.progress("lower", static_cast<int>(launches.size()), static_cast<int>(kernels.size()));
  }
  if (!missing_.empty()) throw UnsupportedError(missing_);
  return codegen::source_module(printed, dialect);
}

std::string KernelSet::compile_machine_code() {
  const codegen::CpuTarget target = target_of(options_.machine);
  kernel::PassOptions passes;
  passes.vector_bits = options_.machine.vector_bits;
  passes.disabled = disabled_kernel_passes(options_.disabled_passes);
  int done = 0;
  for (kernel::Kernel& k : kernels) {
    const std::string name = k.name;
    if (options_.dump) {
      options_.dump("schedule", name, kernel::print(k));
      passes.dump = [&](std::string_view pass, const kernel::Kernel& after) {
        options_.dump("kernel." + std::string(pass), name, kernel::print(after));
      };
    }
    k = kernel::run_passes(std::move(k), passes);
    if (options_.dump) {
      options_.dump("kernel", name, kernel::print(k));
      options_.dump("llvm", name, codegen::emit_text(k, target, codegen::TextForm::llvm_ir));
      options_.dump("assembly", name, codegen::emit_text(k, target, codegen::TextForm::assembly));
    }
    if (options_.progress) options_.progress("lower", ++done, static_cast<int>(kernels.size()));
  }
  if (kernels.empty()) return {};
  const std::vector<codegen::ObjectFile> objects =
      codegen::compile_objects(kernels, target, options_.compile_threads);
  if (options_.progress) options_.progress("link", 0, 1);
  return codegen::link_shared(objects);
}

}  // namespace fusewise::compiler

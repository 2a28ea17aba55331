#include "cli/session_options.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "base/mapped_file.h"
#include "cli/results.h"
#include "session/specialize.h"
#include "session/tensor_names.h"

namespace fusewise::cli {
namespace {

std::string read_text(const std::string& path) { return std::string(MappedFile(path).text()); }

compiler::Numerics numerics_of(const std::string& word) {
  if (word == "strict") return compiler::Numerics::strict;
  return word == "fast" ? compiler::Numerics::fast : compiler::Numerics::default_;
}

fusion::FusionMode fusion_of(const std::string& word) {
  if (word == "off") return fusion::FusionMode::off;
  return word == "operators" ? fusion::FusionMode::operators : fusion::FusionMode::on;
}

void check_supported(const CompileFlags& flags) {
  if (flags.precision != "model")
    throw UnsupportedError(
        fmt::format("not supported yet: --precision {} (the model's own types are used)", flags.precision));
  if (flags.search != "auto" && flags.search != "greedy")
    throw UnsupportedError(fmt::format("not supported yet: --search {} (greedy is)", flags.search));
}

// What a specialised model no longer is.
std::string words_of(const session::SpecializedModel& model) {
  std::string text;
  for (const auto& [name, value] : model.options.import.symbol_values)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  for (const std::string& name : model.bound)
    text += fmt::format("{}the values of {}", text.empty() ? "" : ", ", name);
  return text;
}

// Inputs for a specialised model: only importing it for these sizes tells which integers are indices, and of what.
session::PreparedInputs prepare_specialized(const CompileFlags& flags, const session::ModelOptions& options,
                                            std::vector<session::InputInfo> inputs, Console& console) {
  const session::InputRequest request = flags.inputs.request();
  session::PreparedInputs prepared =
      session::prepare_inputs(inputs, request, [&](const std::string& text) { console.warn(text); });
  try {
    const auto sized = session::specialize(options, inputs, prepared, session::Specialization::sizes);
    const session::Model model = session::Model::load(flags.model, sized.options);
    for (const session::InputInfo& imported : session::inputs_of(model.graph()))
      for (session::InputInfo& input : inputs)
        if (input.name == imported.name) input.index_extent = imported.index_extent;
    prepared = session::prepare_inputs(inputs, request, [](const std::string&) {});
  } catch (const UnsupportedError&) {
    // Then its indices are drawn as other integers are.
  } catch (const UserError&) {
    // Perhaps only a branch that these inputs never take: with_model goes on.
  }
  return prepared;
}

// The model may well be sound, and only sizes or values unfit that nobody chose.
[[noreturn]] void rethrow_with_choices(const UserError& error, const CompileFlags& flags,
                                       const std::vector<session::InputInfo>& inputs,
                                       const std::vector<std::string>& valued) {
  ErrorContext context = error.context;
  if (context.hint.empty()) context.hint = session::open_choices(inputs, flags.inputs.request(), valued);
  throw UserError(error.what(), std::move(context));
}

Chosen choose(const CompileFlags& flags, const session::SpecializedModel& model,
              const std::vector<session::InputInfo>& inputs, const session::PreparedInputs& prepared) {
  std::vector<graph::Tensor> rest;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (std::find(model.bound.begin(), model.bound.end(), inputs[i].name) == model.bound.end())
      rest.push_back(prepared.tensors[i]);
  return {session::Model::load(flags.model, model.options), std::move(rest), {}};
}

}  // namespace

machine::Machine target_machine(const std::string& target, const std::string& machine_file) {
  if (!machine_file.empty()) {
    try {
      return machine::machine_from_text(read_text(machine_file));
    } catch (const UserError& error) {
      if (!error.context.file.empty()) throw;
      throw UserError(fmt::format("{}: {}", machine_file, error.what()),
                      {machine_file, {}, {}, error.context.hint});
    }
  }
  const size_t colon = target.find(':');
  const std::string kind = target.substr(0, colon);
  const std::string architecture = colon == std::string::npos ? "native" : target.substr(colon + 1);
  // Plans for OpenCL are those for this machine; only schedules are a GPU's own.
  if (kind == "cpu" || target == "opencl") return machine::machine_named(architecture);
  for (const char* later : {"cuda", "hip", "vulkan", "metal"})
    if (kind == later)
      throw UnsupportedError(fmt::format("not supported yet: --target {} (cpu and opencl are)", target));
  throw UsageError(fmt::format("--target: '{}' is none of cpu, cuda, hip, opencl, vulkan, metal", target));
}

void CompileFlags::declare(Parser& parser) {
  parser.positional("MODEL", model, "an ONNX file");
  inputs.declare(parser);
  parser.flag("--static", static_shapes, "compile for the sizes of this run only");
  declare_compilation(parser);
}

void CompileFlags::declare_compilation(Parser& parser) {
  threads.declare(parser);
  parser.choice("--fusion", fusion, {"on", "operators", "off"},
                "fuse by price; one kernel per model operator; one per primitive");
  parser.choice("--numerics", numerics, {"strict", "default", "fast"},
                "how free the compiler is with rounding");
  parser.choice("--search", search, {"auto", "greedy", "dp", "partition", "evolve"},
                "how the plan is searched for");
  parser.option("--precision", precision, "TYPE",
                "element types of the computation (model: the model's own)");
  parser.option("--plan", plan_file, "FILE", "replay a plan");
  parser.option("--target", target, "cpu[:LEVEL]|opencl",
                "what to compile for: cpu, or cpu:x86-64-v3 and the like, or an OpenCL device");
  parser.option("--machine", machine_file, "FILE", "a machine description to plan for");
  parser.option("--cache", cache, "DIR|off", "the folder of compiled programs (FUSEWISE_CACHE_DIR)");
  parser.list(
      "--in-place", in_place, "auto|OUTPUT=INPUT",
      "let an output that is an input with something behind it (a cache of keys and values) lie in its "
      "memory, so that only what is new is written; * stands for the same text in both names");
  parser.list("--disable-pass", disabled_passes, "NAME",
              "leave a rewrite or kernel pass out (to find a fault)");
  parser.flag("--poison", poison, "fill memory that is not written yet with NaN (to find a fault; slow)");
}

session::SessionOptions CompileFlags::options(Console& console) const {
  check_supported(*this);
  session::SessionOptions options;
  options.threads = threads.count();
  options.pin = threads.pin;
  options.numerics = numerics_of(numerics);
  options.fusion = fusion_of(fusion);
  options.machine = target_machine(target, machine_file);
  if (target == "opencl") options.target = target;
  options.use_cache = cache != "off";
  if (!cache.empty() && cache != "off") options.cache_folder = cache;
  if (!plan_file.empty()) options.plan_text = read_text(plan_file);
  options.disabled_passes = disabled_passes;
  options.in_place = in_place;
  options.poison = poison;
  options.warn = [&console](const std::string& text) { console.warn(text); };
  options.progress = [&console](const std::string& phase, int done, int total) {
    console.progress(total > 1 ? fmt::format("{} {} of {}", phase, done, total) : phase);
  };
  return options;
}

void with_model(const CompileFlags& flags, Console& console, const std::function<void(const Chosen&)>& use) {
  using How = session::Specialization;
  const session::ModelOptions options = {
      .import = {}, .extra_outputs = session::resolve_tensors(flags.model, flags.output_tensors)};
  if (!flags.static_shapes) {
    try {
      session::Model model = session::Model::load(flags.model, options);
      SymbolValues usual =
          session::requested_symbols(session::inputs_of(model.graph()), flags.inputs.request());
      return use({std::move(model), std::nullopt, std::move(usual)});
    } catch (const UnsupportedError& error) {
      console.note(fmt::format("not for all sizes: {}", error.what()));
    }
  }
  const std::vector<session::InputInfo> inputs = session::declared_inputs(flags.model);
  const session::PreparedInputs prepared = prepare_specialized(flags, options, inputs, console);
  for (const How how : {How::sizes, How::small_integers, How::values}) {
    const session::SpecializedModel model = session::specialize(options, inputs, prepared, how);
    const std::string words = words_of(model);
    try {
      use(choose(flags, model, inputs, prepared));
      if (!flags.static_shapes || how != How::sizes)
        console.warn(fmt::format("shapes depend on data in this model: it was compiled for {} only", words));
      return;
    } catch (const UnsupportedError& error) {
      if (how == How::values) throw;
      console.note(fmt::format("not for {}: {}", words, error.what()));
    } catch (const UserError& error) {
      // A branch that these inputs never take may be impossible in their sizes; with its condition known it is gone.
      if (how == How::values) rethrow_with_choices(error, flags, inputs, model.bound);
      console.note(fmt::format("not for {}: {}", words, error.what()));
    }
  }
}

Prepared prepare(const CompileFlags& flags, Console& console) {
  const session::InputRequest request = flags.inputs.request();
  session::SessionOptions options = flags.options(console);
  std::optional<Prepared> prepared;
  with_model(flags, console, [&](const Chosen& chosen) {
    options.usual = chosen.usual;
    session::Session session(chosen.model, options);
    std::vector<graph::Tensor> inputs =
        chosen.inputs ? *chosen.inputs
                      : session::prepare_inputs(session.info().inputs, request, options.warn).tensors;
    prepared.emplace(Prepared{chosen.model, std::move(session), std::move(inputs)});
  });
  const session::SessionInfo& info = prepared->session.info();
  if (info.cache_hit)
    console.note(fmt::format("taken from the cache, loaded in {:.1f} ms", info.load_ms));
  else
    console.note(fmt::format("imported in {:.1f} ms, compiled in {:.1f} ms, loaded in {:.1f} ms",
                             info.import_ms, info.compile_ms, info.load_ms));
  return std::move(*prepared);
}

std::vector<std::pair<std::string, std::string>> input_types(const session::SessionInfo& info,
                                                             const std::vector<graph::Tensor>& inputs) {
  std::vector<std::pair<std::string, std::string>> types;
  for (size_t i = 0; i < inputs.size(); ++i) types.emplace_back(info.inputs[i].name, type_text(inputs[i]));
  return types;
}

}  // namespace fusewise::cli

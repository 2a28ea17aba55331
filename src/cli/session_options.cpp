#include "cli/session_options.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/mapped_file.h"
#include "cli/results.h"

namespace fusewise::cli {
namespace {

std::string read_text(const std::string& path) {
  return std::string(MappedFile(path).text());
}

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
    throw UnsupportedError(fmt::format("not supported yet: --precision {} (the model's own types are used)",
                                       flags.precision));
  if (flags.search != "auto" && flags.search != "greedy")
    throw UnsupportedError(fmt::format("not supported yet: --search {} (greedy is)", flags.search));
}

// With --static, the sizes of this run are compiled in.
SymbolValues static_symbols(const session::Model& model, const CompileFlags& flags, const session::Warn& warn) {
  return session::prepare_inputs(session::inputs_of(model.graph()), flags.inputs.request(), warn).symbols;
}

}  // namespace

machine::Machine target_machine(const std::string& target, const std::string& machine_file) {
  if (!machine_file.empty()) {
    try {
      return machine::machine_from_text(read_text(machine_file));
    } catch (const UserError& error) {
      if (!error.context.file.empty()) throw;
      throw UserError(fmt::format("{}: {}", machine_file, error.what()), {machine_file, {}, {}, error.context.hint});
    }
  }
  const size_t colon = target.find(':');
  const std::string kind = target.substr(0, colon);
  const std::string architecture = colon == std::string::npos ? "native" : target.substr(colon + 1);
  if (kind == "cpu") return machine::host_machine(architecture);
  for (const char* later : {"cuda", "hip", "opencl", "vulkan", "metal"})
    if (kind == later) throw UnsupportedError(fmt::format("not supported yet: --target {} (cpu is)", target));
  throw UsageError(fmt::format("--target: '{}' is none of cpu, cuda, hip, opencl, vulkan, metal", target));
}

void CompileFlags::declare(Parser& parser) {
  parser.positional("MODEL", model, "an ONNX file");
  inputs.declare(parser);
  threads.declare(parser);
  parser.choice("--fusion", fusion, {"on", "operators", "off"},
                "fuse by price; one kernel per model operator; one per primitive");
  parser.choice("--numerics", numerics, {"strict", "default", "fast"}, "how free the compiler is with rounding");
  parser.choice("--search", search, {"auto", "greedy", "dp", "partition", "evolve"}, "how the plan is searched for");
  parser.option("--precision", precision, "TYPE", "element types of the computation (model: the model's own)");
  parser.option("--plan", plan_file, "FILE", "replay a plan");
  parser.option("--target", target, "cpu[:LEVEL]", "what to compile for: cpu, or cpu:x86-64-v3 and the like");
  parser.option("--machine", machine_file, "FILE", "a machine description to plan for");
  parser.flag("--static", static_shapes, "compile for the sizes of this run only");
  parser.option("--cache", cache, "DIR|off", "the folder of compiled programs (FUSEWISE_CACHE_DIR)");
  parser.list("--disable-pass", disabled_passes, "NAME", "leave a rewrite or kernel pass out (to find a fault)");
  parser.flag("--poison", poison, "fill memory that is not written yet with NaN (to find a fault; slow)");
}

session::SessionOptions CompileFlags::options(Console& console) const {
  check_supported(*this);
  session::SessionOptions options;
  options.threads = threads.count();
  options.numerics = numerics_of(numerics);
  options.fusion = fusion_of(fusion);
  options.machine = target_machine(target, machine_file);
  options.use_cache = cache != "off";
  if (!cache.empty() && cache != "off") options.cache_folder = cache;
  if (!plan_file.empty()) options.plan_text = read_text(plan_file);
  options.disabled_passes = disabled_passes;
  options.poison = poison;
  options.warn = [&console](const std::string& text) { console.warn(text); };
  options.progress = [&console](const std::string& phase, int done, int total) {
    console.progress(total > 1 ? fmt::format("{} {} of {}", phase, done, total) : phase);
  };
  return options;
}

Prepared prepare(const CompileFlags& flags, Console& console) {
  const session::InputRequest request = flags.inputs.request();
  session::SessionOptions options = flags.options(console);
  session::Model model = session::Model::load(flags.model);
  if (flags.static_shapes) options.static_symbols = static_symbols(model, flags, options.warn);
  session::Session session(model, options);
  session::PreparedInputs inputs;
  if (flags.static_shapes)
    inputs = session::prepare_inputs(session::inputs_of(model.graph()), request, [](const std::string&) {});
  else
    inputs = session::prepare_inputs(session.info().inputs, request, options.warn);
  const session::SessionInfo& info = session.info();
  if (info.cache_hit)
    console.note(fmt::format("taken from the cache, loaded in {:.1f} ms", info.load_ms));
  else
    console.note(fmt::format("imported in {:.1f} ms, compiled in {:.1f} ms, loaded in {:.1f} ms", info.import_ms,
                             info.compile_ms, info.load_ms));
  return {std::move(model), std::move(session), std::move(inputs.tensors), std::move(inputs.symbols)};
}

std::vector<std::pair<std::string, std::string>> input_types(const session::SessionInfo& info,
                                                             const std::vector<graph::Tensor>& inputs) {
  std::vector<std::pair<std::string, std::string>> types;
  for (size_t i = 0; i < inputs.size(); ++i) types.emplace_back(info.inputs[i].name, type_text(inputs[i]));
  return types;
}

}  // namespace fusewise::cli

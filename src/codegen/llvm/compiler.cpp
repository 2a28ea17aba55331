// The module's entry point: Kernel IR to LLVM IR to an object or to text. No optimisation pass of LLVM runs: kernels
// arrive vectorised and ordered, and only code generation is left.
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/SubtargetFeature.h>

#include <memory>
#include <mutex>
#include <shared_mutex>

#include "base/error.h"
#include "codegen/llvm/linker.h"
#include "codegen/llvm/llvm_options.h"
#include "codegen/llvm/phase_emitter.h"
#include "codegen/llvm_compiler.h"

namespace fusewise::codegen {
namespace {

void start_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
    std::vector<const char*> arguments = {"fusewise"};
    arguments.insert(arguments.end(), std::begin(llvm_options), std::end(llvm_options));
    llvm::cl::ParseCommandLineOptions(static_cast<int>(arguments.size()), arguments.data());
  });
}

std::unique_ptr<llvm::TargetMachine> machine_of(const CpuTarget& target) {
  start_llvm();
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (found == nullptr) throw UserError("no code generator for " + target.triple + ": " + error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.FunctionSections = false;
  return std::unique_ptr<llvm::TargetMachine>(
      found->createTargetMachine(target.triple, target.cpu, target.features, options, llvm::Reloc::PIC_,
                                 llvm::CodeModel::Small, llvm::CodeGenOptLevel::Less));
}

std::unique_ptr<llvm::Module> module_of(llvm::LLVMContext& context, std::span<const kernel::Kernel> kernels,
                                        const CpuTarget& target, const llvm::TargetMachine& machine) {
  auto module = std::make_unique<llvm::Module>("kernels", context);
  module->setTargetTriple(target.triple);
  module->setDataLayout(machine.createDataLayout());
  constexpr int registers_that_range_instructions_need = 512;
  const bool has_range = target.vector_bits >= registers_that_range_instructions_need;
  for (const kernel::Kernel& kernel : kernels) {
    PhaseEmitter emitter(*module, kernel, target, has_range);
    for (size_t phase = 0; phase < kernel.phases.size(); ++phase) emitter.emit(phase);
  }
  std::string problems;
  llvm::raw_string_ostream stream(problems);
  if (llvm::verifyModule(*module, &stream)) throw InternalError("LLVM refuses a kernel: " + problems);
  return module;
}

std::string generated(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  constexpr bool without_verifier = true;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type, without_verifier))
    throw InternalError("LLVM cannot emit this kind of file for the target");
  passes.run(module);
  return std::string(bytes);
}

class Compiler final : public LlvmCompiler {
 public:
  CpuTarget host() const override {
    start_llvm();
    CpuTarget target{.triple = llvm::sys::getProcessTriple(),
                     .cpu = llvm::sys::getHostCPUName().str(),
                     .features = "",
                     .vector_bits = 128};
    llvm::SubtargetFeatures features;
    const llvm::StringMap<bool> host_features = llvm::sys::getHostCPUFeatures();
    std::map<std::string, bool> sorted;
    for (const auto& feature : host_features) sorted[feature.first().str()] = feature.second;
    for (const auto& [name, present] : sorted) features.AddFeature(name, present);
    target.features = features.getString();
    if (sorted["avx2"] && sorted["fma"]) target.vector_bits = 256;
    if (sorted["avx512f"] && sorted["avx512vl"] && sorted["avx512dq"] && sorted["avx512bw"])
      target.vector_bits = 512;
    return target;
  }

  ObjectFile compile(std::span<const kernel::Kernel> kernels, const CpuTarget& target) const override {
    const std::shared_lock<std::shared_mutex> no_link_meanwhile(options_in_use_);
    llvm::LLVMContext context;
    const auto machine = machine_of(target);
    const auto module = module_of(context, kernels, target, *machine);
    return {generated(*module, *machine, llvm::CodeGenFileType::ObjectFile)};
  }

  std::string text(const kernel::Kernel& kernel, const CpuTarget& target, TextForm form) const override {
    const std::shared_lock<std::shared_mutex> no_link_meanwhile(options_in_use_);
    llvm::LLVMContext context;
    const auto machine = machine_of(target);
    const auto module = module_of(context, {&kernel, 1}, target, *machine);
    if (form == TextForm::assembly) return generated(*module, *machine, llvm::CodeGenFileType::AssemblyFile);
    std::string result;
    llvm::raw_string_ostream stream(result);
    module->print(stream, nullptr);
    return result;
  }

  void link(std::span<const ObjectFile> objects, const std::filesystem::path& output) const override {
    start_llvm();
    const std::unique_lock<std::shared_mutex> alone(options_in_use_);
    link_objects(objects, output);
  }

 private:
  // A link resets LLVM's options and sets them again: no kernel may be compiled in between.
  mutable std::shared_mutex options_in_use_;
};

}  // namespace
}  // namespace fusewise::codegen

extern "C" __attribute__((visibility("default"))) const fusewise::codegen::LlvmCompiler*
fusewise_llvm_compiler() {
  static const fusewise::codegen::Compiler compiler;
  return &compiler;
}

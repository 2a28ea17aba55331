#include "golden/compiled.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "numerics/scalar_op.h"
#include "program/program_file.h"
#include "runtime/executable.h"

namespace fusewise::test {
namespace {

using graph::Tensor;

void write_number(std::ofstream& file, int64_t number) {
  file.write(reinterpret_cast<const char*>(&number), sizeof number);
}

void write_tensors(const std::filesystem::path& path, std::span<const Tensor> tensors) {
  std::ofstream file(path, std::ios::binary);
  for (const Tensor& tensor : tensors) {
    write_number(file, tensor.rank());
    for (const int64_t extent : tensor.shape) write_number(file, extent);
    file.write(reinterpret_cast<const char*>(tensor.bytes().data()),
               static_cast<std::streamsize>(tensor.bytes().size()));
  }
  if (!file) throw UserError("cannot write " + path.string());
}

std::vector<Tensor> read_tensors(const std::filesystem::path& path,
                                 std::span<const program::Output> outputs) {
  const MappedFile file(path);
  std::span<const std::byte> rest = file.bytes();
  const auto take = [&](size_t bytes) {
    if (bytes > rest.size()) throw InternalError(path.string() + " ends early");
    const std::span<const std::byte> part = rest.first(bytes);
    rest = rest.subspan(bytes);
    return part;
  };
  const auto number = [&] {
    int64_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  };
  std::vector<Tensor> tensors;
  for (const program::Output& output : outputs) {
    std::vector<int64_t> shape(static_cast<size_t>(number()));
    for (int64_t& extent : shape) extent = number();
    const size_t bytes = static_cast<size_t>(graph::element_count(shape) * bytes_of(output.type));
    tensors.push_back(Tensor::copy_of(output.type, std::move(shape), take(bytes)));
  }
  return tensors;
}

// One bit pattern for all NaNs.
void unify_nans(Tensor& tensor) {
  if (!is_float(tensor.element)) return;
  const size_t size = static_cast<size_t>(bytes_of(tensor.element));
  const std::span<std::byte> bytes = tensor.mutable_bytes();
  for (size_t at = 0; at + size <= bytes.size(); at += size)
    if (std::isnan(load_scalar(bytes.data() + at, tensor.element).f))
      std::memset(bytes.data() + at, 0xFF, size);
}

}  // namespace

std::string describe(const Setting& setting) {
  const char* fusion = setting.fusion == fusion::FusionMode::off         ? "off"
                       : setting.fusion == fusion::FusionMode::operators ? "operators"
                                                                         : "on";
  return fmt::format("{}, fusion {}, {} threads", setting.cpu, fusion, setting.threads);
}

program::Program compile_strictly(const graph::Graph& graph, const Setting& setting) {
  compiler::CompileOptions options;
  options.numerics = compiler::Numerics::strict;
  options.fusion = setting.fusion;
  options.machine = machine::machine_named(setting.cpu);
  options.threads = setting.threads;
  return compiler::compile(graph, options).program;
}

std::vector<Tensor> run_here(program::Program program, std::span<const Tensor> inputs, int threads) {
  runtime::ExecutableOptions options;
  options.threads = threads;
  options.poison = true;
  const runtime::Executable executable(std::move(program), options);
  std::vector<std::vector<int64_t>> shapes;
  std::vector<const void*> input_pointers;
  for (const Tensor& input : inputs) {
    shapes.push_back(input.shape);
    input_pointers.push_back(input.bytes().data());
  }
  const auto binding = executable.bind(shapes);
  std::vector<Tensor> outputs;
  std::vector<void*> output_pointers;
  for (size_t i = 0; i < binding->output_shapes.size(); ++i)
    outputs.emplace_back(executable.program().outputs[i].type, binding->output_shapes[i]);
  for (Tensor& output : outputs) output_pointers.push_back(output.mutable_bytes().data());
  const runtime::Status status = executable.run(*binding, input_pointers, output_pointers);
  if (status.code != runtime::StatusCode::ok) throw InternalError("the run failed: " + status.message);
  return outputs;
}

std::string no_emulation() {
#if defined(FUSEWISE_AARCH64_RUNNER)
  return {};
#else
  return "AArch64 code is not run: aarch64-linux-gnu-g++ or qemu-aarch64-static is not installed";
#endif
}

std::vector<Tensor> run_emulated(const program::Program& program, std::span<const Tensor> inputs, int threads,
                                 const std::filesystem::path& folder) {
#if defined(FUSEWISE_AARCH64_RUNNER)
  const std::filesystem::path program_path = folder / "program", input_path = folder / "inputs",
                              output_path = folder / "outputs";
  program::save(program, program_path, {.embed_constants = true});
  write_tensors(input_path, inputs);
  std::filesystem::remove(output_path);
  const std::string command =
      fmt::format("{} '{}' '{}' '{}' {}", FUSEWISE_AARCH64_RUNNER, program_path.string(), input_path.string(),
                  output_path.string(), threads);
  if (std::system(command.c_str()) != 0) throw InternalError("failed: " + command);
  return read_tensors(output_path, program.outputs);
#else
  (void)write_tensors, (void)read_tensors, (void)program, (void)inputs, (void)threads, (void)folder;
  throw InternalError(no_emulation());
#endif
}

std::string hashes_of(const graph::Graph& graph, std::span<const Tensor> outputs) {
  std::string text;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tensor output = outputs[i];
    unify_nans(output);
    text += fmt::format("{} : {}{} {}\n", graph.outputs[i].name, name_of(output.element),
                        graph::to_string(output.shape), hash_bytes(output.bytes()).to_hex());
  }
  return text;
}

}  // namespace fusewise::test

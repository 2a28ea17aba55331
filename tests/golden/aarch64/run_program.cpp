// Loads a program file, runs it once on inputs of a file and writes its outputs to another: the whole of the runtime,
// built for another processor than that of the compiler.
//   run_program PROGRAM INPUTS OUTPUTS THREADS
// A file of tensors holds for each one its rank and extents as int64 and then its bytes.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>

#include "program/program_file.h"
#include "runtime/executable.h"

namespace fusewise {
namespace {

struct Tensor {
  std::vector<int64_t> shape;
  std::vector<char> bytes;
};

size_t bytes_of_tensor(DataType type, const std::vector<int64_t>& shape) {
  int64_t count = bytes_of(type);
  for (const int64_t extent : shape) count *= extent;
  return static_cast<size_t>(count);
}

std::vector<Tensor> read_inputs(const char* path, const program::Program& program) {
  std::ifstream file(path, std::ios::binary);
  const auto number = [&] {
    int64_t value = 0;
    file.read(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  };
  std::vector<Tensor> tensors;
  for (const program::Input& input : program.inputs) {
    Tensor tensor;
    tensor.shape.resize(static_cast<size_t>(number()));
    for (int64_t& extent : tensor.shape) extent = number();
    tensor.bytes.resize(bytes_of_tensor(input.type, tensor.shape));
    file.read(tensor.bytes.data(), static_cast<std::streamsize>(tensor.bytes.size()));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

void write_outputs(const char* path, const std::vector<Tensor>& tensors) {
  std::ofstream file(path, std::ios::binary);
  const auto number = [&](int64_t value) { file.write(reinterpret_cast<const char*>(&value), sizeof value); };
  for (const Tensor& tensor : tensors) {
    number(static_cast<int64_t>(tensor.shape.size()));
    for (const int64_t extent : tensor.shape) number(extent);
    file.write(tensor.bytes.data(), static_cast<std::streamsize>(tensor.bytes.size()));
  }
}

int run(char** words) {
  program::Program program = program::load(words[1]);
  const std::vector<Tensor> inputs = read_inputs(words[2], program);
  runtime::ExecutableOptions options;
  options.threads = std::atoi(words[4]);
  options.poison = true;
  const runtime::Executable executable(std::move(program), options);
  std::vector<std::vector<int64_t>> shapes;
  std::vector<const void*> input_pointers;
  for (const Tensor& input : inputs) {
    shapes.push_back(input.shape);
    input_pointers.push_back(input.bytes.data());
  }
  const auto binding = executable.bind(shapes);
  std::vector<Tensor> outputs;
  std::vector<void*> output_pointers;
  for (size_t i = 0; i < binding->output_shapes.size(); ++i) {
    const std::vector<int64_t>& shape = binding->output_shapes[i];
    outputs.push_back(
        {shape, std::vector<char>(bytes_of_tensor(executable.program().outputs[i].type, shape))});
  }
  for (Tensor& output : outputs) output_pointers.push_back(output.bytes.data());
  const runtime::Status status = executable.run(*binding, input_pointers, output_pointers);
  if (status.code != runtime::StatusCode::ok) {
    std::fprintf(stderr, "error: %s\n", status.message.c_str());
    return 1;
  }
  write_outputs(words[3], outputs);
  return 0;
}

}  // namespace
}  // namespace fusewise

int main(int count, char** words) {
  if (count != 5) {
    std::fprintf(stderr, "usage: run_program PROGRAM INPUTS OUTPUTS THREADS\n");
    return 2;
  }
  try {
    return fusewise::run(words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}

// Runs a kernel on the host, exactly and with suspicion: the oracle for lowering, passes and code generation.
// Every load and store is checked against its buffer; scratch and registers are watched for reads before writes;
// blocks run in a shuffled order, threads of a block interleave at barriers in a shuffled order, and accesses
// that nothing orders are reported even when this order happened to do no harm.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "kernel/kernel.h"

namespace fusewise::kernel {

enum class Fault : uint8_t {
  out_of_bounds,  // a load or store outside its buffer
  uninitialised,  // a load of an element of scratch, shared memory or registers that was never stored
  race,  // two accesses of one element, one of them a store, by threads or blocks that nothing orders
  divergent_barrier,  // a barrier or sub-group operation that some threads do not reach
  overlap,            // arguments that overlap although one is written and declared not to
  limit,              // an allocation or a number of threads that no kernel should ask for
};

std::string_view name_of(Fault fault);

class KernelFault : public std::runtime_error {
 public:
  KernelFault(Fault fault, const std::string& message, std::string text)
      : std::runtime_error(message), kind(fault), statement(std::move(text)) {}
  Fault kind;
  std::string statement;  // its text
};

struct BufferArgument {
  void* data = nullptr;  // never written unless the argument is declared `out`
  int64_t elements = 0;
};

struct InterpretOptions {
  uint64_t seed = 1;  // of the order of blocks and threads
  bool check_races = true;
};

struct InterpreterProgram;

// A kernel made ready to run any number of times, also from several threads at once. Throws UnsupportedError for
// element types that have no arithmetic. The kernel must be valid (verifier.h) and must stay alive and unchanged.
class Interpreter {
 public:
  explicit Interpreter(const Kernel& kernel);
  ~Interpreter();
  Interpreter(Interpreter&&) noexcept;
  // Throws KernelFault; InternalError when buffers or parameters are not as many as the kernel has.
  void run(std::span<const BufferArgument> buffers, std::span<const int64_t> parameters,
           const InterpretOptions& options = {}) const;

 private:
  std::unique_ptr<InterpreterProgram> program_;
};

void interpret(const Kernel& kernel, std::span<const BufferArgument> buffers,
               std::span<const int64_t> parameters, const InterpretOptions& options = {});

}  // namespace fusewise::kernel

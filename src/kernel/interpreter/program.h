// A kernel as a list of instructions over registers. A register is 64 bits, the bits of a constant (kernel.h); a
// vector is as many registers in a row. Within one statement every distinct expression is computed once.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"

namespace fusewise::kernel {

struct Instruction;
using Compute = void (*)(int64_t* registers, const Instruction& in);

enum class Step : uint8_t {
  compute,       // run(registers)
  load,          // dst = buffer[a], mask b
  store,         // buffer[a] = b, mask c
  jump,          // to target
  jump_if_zero,  // a == 0
  loop_test,     // leave to target unless register a < register b
  loop_next,     // register a += immediate; back to target if it is < register b
  blocks,  // run [next, target) for each value of register a from b to c by immediate, in shuffled order
  fork,    // the same as threads; goes on at target when all have ended
  end,     // of the body of a block, a thread or the kernel
  barrier,
  subgroup,  // dst = a combined over the threads of one fork
  allocate,  // buffer, a = register with the size
  alias,     // buffer = buffer `immediate` at a
};

struct Instruction {
  Step step = Step::compute;
  uint16_t lanes = 1;
  DataType type = DataType::int64;  // of the operands (compute: of a)
  DataType result = DataType::int64;
  uint32_t dst = 0, a = 0, b = none, c = none;  // registers
  uint32_t target = 0;                          // instruction
  uint32_t buffer = none;
  uint32_t owner = 0;  // allocate: number of the allocation
  StmtId statement = none;
  ScalarOp op = ScalarOp::add;
  Native native = Native::copysign;
  uint8_t arity = 0;
  int64_t immediate = 0;
  const int* pattern = nullptr;  // shuffle
  uint16_t lanes_a = 1;          // shuffle
  Compute run = nullptr;
};

struct InterpreterProgram {
  const Kernel* kernel = nullptr;
  std::vector<Instruction> code;     // phases one after the other, each finished by `end`
  std::vector<uint32_t> phases;      // where they begin
  std::vector<int64_t> registers;    // as they are at the beginning: constants
  std::vector<uint32_t> parameters;  // where parameters go
  uint32_t allocations = 0;
};

InterpreterProgram compile_for_interpreter(const Kernel& kernel);

// The function that computes an instruction of step `compute`.
Compute compute_apply(const Instruction& in);
Compute compute_native(const Instruction& in);
Compute compute_fma(const Instruction& in);
Compute compute_copy();
Compute compute_bitcast(const Instruction& in);
Compute compute_ramp();
Compute compute_broadcast();
Compute compute_shuffle();

}  // namespace fusewise::kernel

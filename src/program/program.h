// The executable as data: what the compiler hands to the runtime, what the cache stores and what
// ahead-of-time compilation ships. Steps call kernels of one shared object on numbered buffers; sizes and
// kernel parameters are dimensions over the model's symbols, evaluated once per shape of the inputs. Symbols that
// depend on data are bound by a step of the run (Step::binds); what speaks of them is evaluated then.
//
// The kernels' interface, for phase I = 0, 1, ... of a kernel NAME (all blocks of one phase end before the
// next):
//   void NAME_pI(void* const* buffers, const int64_t* parameters, char* scratch,
//                int64_t block_begin, int64_t block_end)
//   int64_t NAME_pI_blocks(const int64_t* parameters)
// `buffers` are never null, also those of size 0. Arena and once buffers and `scratch` start at 64 bytes; the
// caller's inputs and outputs may start anywhere, and so may constants, which are used where their file has
// them, and views. The arguments of one step never share an element that the step writes. `scratch` is private to the calling worker, uninitialised, and has the kernel's scratch bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "numerics/data_type.h"
#include "numerics/dim.h"

namespace fusewise::program {

using BufferId = uint32_t;
inline constexpr uint32_t none = UINT32_MAX;

// Memory with its owner; the owner is null when somebody else keeps the bytes alive.
struct Bytes {
  std::span<const std::byte> span;
  std::shared_ptr<const void> owner;
};
Bytes own_bytes(std::vector<std::byte> bytes);

// The caller's array may be longer than the tensor along one axis, so that there is room to append to it: its extent
// there is a symbol of its own, which the caller states beside the shapes (else it is the tensor's own extent).
struct Capacity {
  std::string symbol;  // empty: the array is the tensor
  uint32_t axis = 0;
};

struct Input {
  std::string name;
  DataType type = DataType::undefined;
  Shape shape;
  Capacity capacity = {};
};

struct Output {
  std::string name;
  DataType type = DataType::undefined;
  Shape shape;
  BufferId buffer = none;  // of kind output; a value that lives elsewhere gets there by a copy step
  // Inputs whose very memory the caller may give for this output; with the same capacity, where there is one.
  std::vector<uint32_t> may_alias_inputs;
  Capacity capacity = {};
};

enum class BufferKind : uint8_t {
  input,     // input `index`, owned by the caller, only read; all of its array
  output,    // output `index`, owned by the caller; may be read back by later steps; all of its array
  constant,  // constant `index`, only read
  once,      // made by a once step, lives as long as the program, only read by run steps
  arena,     // lives from the first to the last step that names it
  dims,      // int64 values of `dims`, evaluated when shapes are bound
  view,  // a part of buffer `base`, from byte `offset` on; its elements may lie apart (the kernel knows how)
  moving,  // a place in other buffers that the loop which names it sets for every iteration
};

struct Buffer {
  BufferKind kind = BufferKind::arena;
  uint32_t index = none;  // of the input, output or constant
  Dim bytes;              // constant for once buffers; of a view, those of its elements
  std::string name;
  bool zero_fill = false;  // once: starts as zeros (padding that a kernel does not write)
  std::vector<Dim> dims;   // dims only; bytes = 8 * dims.size()
  BufferId base = none;    // view only; no view itself
  Dim offset;              // view only
  Dim reach;               // view only: bytes of the base from `offset` to behind the last element
  // Arena buffers in whose place this one may lie although the step that makes this one reads those.
  std::vector<BufferId> may_overwrite;
  Bytes content;  // once: the result, when it came with the program file
};

// Where the bytes of a constant lie in a file, and what the file was when its content was hashed.
struct FileRegion {
  std::string path;
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t file_size = 0;
  int64_t modified_ns = 0;
  uint64_t inode = 0;
};
// A region of a file as it is now; UserError when the file is missing or shorter.
FileRegion describe_file_region(const std::string& path, uint64_t offset, uint64_t length);

struct Constant {
  std::string name;
  Bytes bytes;  // may be empty in a loaded program that holds all once results
  // Saved as a reference when there, otherwise embedded; then `bytes`, if they are here, are a mapping of that file.
  std::optional<FileRegion> file;
  uint64_t size = 0;  // in bytes, also when they are not here
  Hash128 hash;       // of the content; zero: save() computes it
};

// How a phase of a kernel that is source text is started: so many groups of so many threads.
struct Launch {
  std::string function;
  Dim blocks;  // over symbols named like the kernel's parameters
  int32_t threads = 1;
};

struct Kernel {
  std::string name;  // the symbol up to "_pI"
  uint32_t phases = 1;
  std::vector<std::string> parameters;
  Dim scratch_bytes;  // over symbols named like the parameters
  // One entry per buffer argument: does the kernel write to it? Empty when not known (then less is verified).
  std::vector<uint8_t> writes;
  std::vector<Launch> launches;  // of source text: one per phase; machine code has functions for that
};

enum class StepKind : uint8_t {
  kernel,
  // buffers = {from, to}, no kernel. Without parameters all bytes of two buffers of equal size; else the parameters
  // are the bytes of an element, and for each dimension from outermost to innermost its extent and the bytes from one
  // index to the next in `from` and in `to`. Nothing is done where both are the same memory.
  copy,
  host,  // buffers = operands, then results of a host function
  loop,  // the `body_steps` steps behind it, again and again
  branch,  // buffers = {condition, results...}: the `then_steps` steps behind it, or the rest of its `body_steps`
};

// What a host function (hostops/hostops.h) is told beside its buffers.
struct HostCall {
  std::string function;
  struct Operand {
    DataType type = DataType::undefined;
    Shape shape;
  };
  std::vector<Operand> operands;
};

// What a loop step does. Buffers are positions in the step's `buffers`, `none` where there is nothing.
struct Loop {
  bool bounded = false;       // at most `trips` iterations
  Dim trips;                  // evaluated when shapes are bound
  uint32_t count = none;      // int64: also at most so many
  uint32_t condition = none;  // boolean: whether to begin
  uint32_t go_on = none;      // boolean that the body writes: whether another iteration follows
  uint32_t counter = none;    // int64 that gets the iteration's number before each
  // `before` and `after` are moving: what the iteration reads and writes. The first one reads `initial`, every other one
  // what the last one wrote; the last one's is in `result` in the end. `after` is in turn in `result` and in `spare`, or
  // it is the part of a slice that the body writes, and there is no spare.
  struct State {
    uint32_t initial = none, before = none, after = none, result = none, spare = none;
  };
  // `part` is moving: the iteration's share of `whole`, which has `trips` of them.
  struct Slice {
    uint32_t whole = none, part = none;
    bool backwards = false, written = false;
  };
  std::vector<State> states;
  std::vector<Slice> slices;
};

struct Step {
  StepKind kind = StepKind::kernel;
  uint32_t kernel = none;  // of the kernels, or of the host calls
  std::vector<BufferId> buffers;
  std::vector<Dim> parameters;
  // Symbols that the step binds while it runs, in the function's order. Its own results, later steps and guards may
  // speak of them; its operands and parameters may not.
  std::vector<std::string> binds;
  std::string label;  // the model's nodes, for traces and profiles
  // kernel: where `size` is less than `parallel_from`, one thread is done sooner than several; where it is equal, they
  // save the time that it takes to hand them the work, in nanoseconds
  Dim size;
  int64_t parallel_from = 0, fork_join_nanoseconds = 0;
  uint32_t body_steps = 0, then_steps = 0;
  Loop loop = {};
};

// What must hold of the shapes; `words` say so to the user.
struct Guard {
  enum class Relation : uint8_t { equal, not_equal, at_least, at_most, multiple_of };
  Dim left;
  Relation relation = Relation::equal;
  Dim right;
  std::string words;
};

struct Library {
  Bytes bytes;       // of the shared object, or the source text
  std::string path;  // instead of bytes
};

struct Program {
  std::string name;
  std::string target;                // "opencl": kernels are source text; empty: machine code for a CPU
  std::vector<std::string> symbols;  // found from the shapes of the inputs; others are bound by steps
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<Buffer> buffers;
  std::vector<Constant> constants;
  std::vector<Kernel> kernels;
  std::vector<HostCall> host_calls;
  std::vector<Step> once_steps;  // when the program is loaded; names constants and once buffers only
  // In every run, in order; the body of a loop or branch lies behind its step and counts as one with it.
  std::vector<Step> run_steps;
  std::vector<Guard> guards;
  // What the library needs, as in /proc/cpuinfo: "avx2", "avx512f". Of a device: "double", "exact_division".
  std::vector<std::string> cpu_features;
  std::string metadata;  // free text of the maker (versions, plan), kept by save and load
  Library library;
};

// Throws InternalError (a program that the compiler made) naming what is wrong: indices out of range, buffers
// used where their kind does not allow it, an output that no step writes, arena buffers read before they are
// written.
void verify(const Program& program);

// The buffer that a view is a part of; any other buffer itself.
inline BufferId root_of(const Program& program, BufferId buffer) {
  const Buffer& one = program.buffers[buffer];
  return one.kind == BufferKind::view ? one.base : buffer;
}

// Once buffers and constants that some run step reads; the others may go once the once steps are done.
std::vector<uint8_t> needed_in_runs(const Program& program);  // by buffer
bool has_once_results(const Program& program);                // all needed once buffers have content

std::string_view name_of(BufferKind kind);
std::string describe_buffer(const Program& program, BufferId buffer);  // "arena buffer 12 'relu_3'"

}  // namespace fusewise::program

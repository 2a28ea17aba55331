// Runs the instructions: blocks one after the other, the threads of a block each until it ends or waits.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/float_environment.h"
#include "kernel/evaluate.h"
#include "kernel/interpreter/machine.h"
#include "kernel/text.h"

namespace fusewise::kernel {

void Machine::fault(Fault kind, StmtId statement, const std::string& detail) const {
  const std::string text = statement == none ? "" : statement_text(kernel_, statement);
  const std::string place = text.empty() ? "" : " in: " + text;
  throw KernelFault(kind, fmt::format("kernel '{}': {}: {}{}", kernel_.name, name_of(kind), detail, place),
                    text);
}

void Machine::check_overlap(std::span<const BufferArgument> buffers) const {
  const auto end = [&](size_t i) {
    return static_cast<const char*>(buffers[i].data) +
           buffers[i].elements * bytes_of(kernel_.buffers[i].element);
  };
  for (size_t i = 0; i < buffers.size(); ++i) {
    for (size_t j = i + 1; j < buffers.size(); ++j) {
      const Buffer& a = kernel_.buffers[i];
      const Buffer& b = kernel_.buffers[j];
      if (!(a.written || b.written) || !(a.no_alias || b.no_alias)) continue;
      if (buffers[i].elements == 0 || buffers[j].elements == 0) continue;
      if (static_cast<const char*>(buffers[i].data) < end(j) &&
          static_cast<const char*>(buffers[j].data) < end(i))
        fault(Fault::overlap, none, fmt::format("arguments '{}' and '{}' share memory", a.name, b.name));
    }
  }
}

void Machine::bind(std::span<const BufferArgument> buffers) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& declared = kernel_.buffers[i];
    auto memory = std::make_unique<Memory>();
    memory->data = static_cast<char*>(buffers[i].data);
    memory->count = buffers[i].elements;
    memory->type = declared.element;
    memory->bytes = bytes_of(declared.element);
    memory->watched = options_.check_races && declared.written;
    arguments_.push_back(std::move(memory));
  }
}

void Machine::run(std::span<const BufferArgument> buffers, std::span<const int64_t> parameters) {
  const DefaultFloatEnvironment environment;
  check(buffers.size() == static_cast<size_t>(kernel_.argument_count()),
        "a kernel was given too few or many buffers");
  check(parameters.size() == kernel_.parameters.size(), "a kernel was given too few or many parameters");
  check_overlap(buffers);
  bind(buffers);
  Frame frame;
  frame.registers = program_.registers;
  for (size_t i = 0; i < parameters.size(); ++i) frame.registers[program_.parameters[i]] = parameters[i];
  frame.views.resize(kernel_.buffers.size());
  frame.owned.resize(program_.allocations);
  for (size_t i = 0; i < buffers.size(); ++i) {
    frame.views[i].memory = arguments_[i].get();
    // The same memory as an earlier argument: accesses through both are seen together.
    for (size_t j = 0; j < i; ++j) {
      Memory& earlier = *arguments_[j];
      if (buffers[i].data != buffers[j].data || earlier.type != arguments_[i]->type ||
          earlier.count != arguments_[i]->count)
        continue;
      earlier.watched = earlier.watched || arguments_[i]->watched;
      frame.views[i].memory = &earlier;
      break;
    }
  }
  for (const uint32_t start : program_.phases) {
    agents_.clear();
    ++epoch_;
    for (const auto& memory : arguments_) memory->epoch = epoch_;
    frame.next = start;
    run_group(frame);
  }
}

std::vector<int64_t> Machine::iterations(const Frame& frame, const Instruction& in) const {
  const int64_t begin = frame.registers[in.b];
  const int64_t end = frame.registers[in.c];
  if (begin >= end) return {};
  const uint64_t step = static_cast<uint64_t>(in.immediate);
  const uint64_t count = (static_cast<uint64_t>(end) - static_cast<uint64_t>(begin) - 1) / step + 1;
  if (count > most_blocks) fault(Fault::limit, in.statement, "too many blocks or threads");
  std::vector<int64_t> values(count);
  for (uint64_t i = 0; i < count; ++i)
    values[i] = static_cast<int64_t>(static_cast<uint64_t>(begin) + i * step);
  return values;
}

void Machine::run_blocks(Frame& frame, const Instruction& in) {
  std::vector<int64_t> order = iterations(frame, in);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
  const uint32_t fork_number = ++forks_;
  const uint32_t parent = frame.agent;
  const uint32_t body = frame.next;
  for (const int64_t value : order) {
    frame.registers[in.a] = value;
    frame.agent = agents_.add(parent, fork_number, true);
    frame.next = body;
    run_group(frame);
  }
  frame.agent = parent;
  frame.next = in.target;
}

// Runs a block (or what is around blocks) with all threads that come out of it.
void Machine::run_group(Frame& root) {
  std::vector<std::unique_ptr<Frame>> group;
  for (;;) {
    root.state = advance(root);
    if (root.state == State::done) return;
    if (root.state == State::at_subgroup)
      fault(Fault::divergent_barrier, program_.code[root.next].statement, "no lanes");
    if (root.state == State::waiting) break;
    ++root.next;  // a barrier where there is one thread
  }
  fork(root, group);
  std::vector<Frame*> ready;
  while (root.state != State::done) {
    ready.clear();
    if (root.state == State::runnable) ready.push_back(&root);
    for (const auto& frame : group)
      if (frame->state == State::runnable) ready.push_back(frame.get());
    if (ready.empty()) {
      if (root.state == State::at_barrier) {
        root.state = State::runnable;
        ++root.next;
      } else {
        release(group);
      }
      continue;
    }
    // All that can run do so before the next look, in shuffled order.
    for (size_t i = ready.size(); i > 1; --i) std::swap(ready[i - 1], ready[random_.below(i)]);
    for (Frame* frame : ready) {
      frame->state = advance(*frame);
      if (frame->state == State::waiting) fork(*frame, group);
      if (frame->state != State::done || frame == &root) continue;
      if (--frame->parent->pending == 0) frame->parent->state = State::runnable;
    }
    if (root.state == State::runnable) group.clear();
  }
}

void Machine::fork(Frame& frame, std::vector<std::unique_ptr<Frame>>& group) {
  const Instruction& in = program_.code[frame.next];
  const std::vector<int64_t> values = iterations(frame, in);
  if (static_cast<int64_t>(group.size() + values.size()) > most_threads)
    fault(Fault::limit, in.statement, "too many threads in a block");
  const uint32_t fork_number = ++forks_;
  const uint32_t body = frame.next + 1;
  frame.next = in.target;
  frame.pending = static_cast<int64_t>(values.size());
  frame.state = values.empty() ? State::runnable : State::waiting;
  for (const int64_t value : values) {
    auto child = std::make_unique<Frame>();
    child->registers = frame.registers;
    child->views = frame.views;
    child->owned.resize(program_.allocations);
    child->registers[in.a] = value;
    child->next = body;
    child->fork = fork_number;
    child->parent = &frame;
    child->agent = agents_.add(frame.agent, fork_number, false);
    group.push_back(std::move(child));
  }
}

// Nobody can run: lanes that wait for each other go on, else all threads must stand at one barrier.
void Machine::release(std::vector<std::unique_ptr<Frame>>& group) {
  if (release_subgroups(group)) return;
  StmtId barrier = none;
  for (const auto& frame : group)
    if (frame->state == State::at_barrier) barrier = program_.code[frame->next].statement;
  check(barrier != none, "threads wait for nothing");
  for (const auto& frame : group) {
    if (frame->state == State::waiting) continue;
    // An ended thread matters as long as others of its fork go on.
    if (frame->state == State::done) {
      const bool all_ended = std::all_of(group.begin(), group.end(), [&](const auto& other) {
        return other->fork != frame->fork || other->state == State::done;
      });
      if (!all_ended)
        fault(Fault::divergent_barrier, barrier, "a thread ends without reaching what others wait at");
      continue;
    }
    if (frame->state != State::at_barrier || program_.code[frame->next].statement != barrier)
      fault(Fault::divergent_barrier, barrier, "threads wait at different places");
  }
  ++interval_;
  for (const auto& frame : group) {
    if (frame->state != State::at_barrier) continue;
    frame->state = State::runnable;
    ++frame->next;
  }
}

bool Machine::release_subgroups(std::vector<std::unique_ptr<Frame>>& group) {
  bool released = false;
  for (size_t i = 0; i < group.size(); ++i) {
    if (group[i]->state != State::at_subgroup) continue;
    std::vector<Frame*> lanes;
    for (const auto& frame : group)
      if (frame->fork == group[i]->fork) lanes.push_back(frame.get());
    const bool together = std::all_of(lanes.begin(), lanes.end(), [&](const Frame* lane) {
      return lane->state == State::at_subgroup && lane->next == group[i]->next;
    });
    if (!together)
      fault(Fault::divergent_barrier, program_.code[group[i]->next].statement,
            "not all lanes reach the operation of the sub-group");
    combine(lanes);
    released = true;
  }
  return released;
}

// By a tree: lane i takes lane i + width, for the widths ..., 4, 2, 1.
void Machine::combine(std::vector<Frame*>& lanes) {
  const Instruction& in = program_.code[lanes[0]->next];
  constexpr ScalarOp operations[] = {ScalarOp::add, ScalarOp::mul, ScalarOp::max, ScalarOp::min};
  const ScalarOp op = operations[in.immediate];
  for (uint32_t element = 0; element < in.lanes; ++element) {
    std::vector<Scalar> values;
    for (const Frame* lane : lanes)
      values.push_back(scalar_of_bits(in.type, lane->registers[in.a + element]));
    size_t width = 1;
    while (width * 2 < values.size()) width *= 2;
    for (; width > 0; width /= 2) {
      for (size_t i = 0; i < width && i + width < values.size(); ++i) {
        const Scalar pair[2] = {values[i], values[i + width]};
        values[i] = evaluate(op, pair, in.type);
      }
      values.resize(std::min(values.size(), width));
    }
    for (Frame* lane : lanes) lane->registers[in.dst + element] = bits_of_scalar(values[0]);
  }
  for (Frame* lane : lanes) {
    lane->state = State::runnable;
    ++lane->next;
  }
}

State Machine::advance(Frame& frame) {
  int64_t* const r = frame.registers.data();
  for (;;) {
    const Instruction& in = program_.code[frame.next++];
    switch (in.step) {
      case Step::compute:
        in.run(r, in);
        break;
      case Step::load:
        load(frame, in);
        break;
      case Step::store:
        store(frame, in);
        break;
      case Step::jump:
        frame.next = in.target;
        break;
      case Step::jump_if_zero:
        if (r[in.a] == 0) frame.next = in.target;
        break;
      case Step::loop_test:
        if (r[in.a] >= r[in.b]) frame.next = in.target;
        break;
      case Step::loop_next: {
        int64_t next = 0;
        if (__builtin_add_overflow(r[in.a], in.immediate, &next) || next >= r[in.b]) break;
        r[in.a] = next;
        frame.next = in.target;
        break;
      }
      case Step::blocks:
        run_blocks(frame, in);
        break;
      case Step::fork:
        --frame.next;
        return State::waiting;
      case Step::end:
        return State::done;
      case Step::barrier:
        --frame.next;
        return State::at_barrier;
      case Step::subgroup:
        --frame.next;
        return State::at_subgroup;
      case Step::allocate:
        allocate(frame, in);
        break;
      case Step::alias: {
        const View source = frame.views[static_cast<size_t>(in.immediate)];
        frame.views[in.buffer] = {source.memory, static_cast<int64_t>(static_cast<uint64_t>(source.offset) +
                                                                      static_cast<uint64_t>(r[in.a]))};
        break;
      }
    }
  }
}

std::string_view name_of(Fault fault) {
  switch (fault) {
    case Fault::out_of_bounds:
      return "out of bounds";
    case Fault::uninitialised:
      return "uninitialised";
    case Fault::race:
      return "race";
    case Fault::divergent_barrier:
      return "divergent barrier";
    case Fault::overlap:
      return "overlap";
    case Fault::limit:
      return "limit";
  }
  return "unknown fault";
}

Interpreter::Interpreter(const Kernel& kernel)
    : program_(std::make_unique<InterpreterProgram>(compile_for_interpreter(kernel))) {}
Interpreter::~Interpreter() = default;
Interpreter::Interpreter(Interpreter&&) noexcept = default;

void Interpreter::run(std::span<const BufferArgument> buffers, std::span<const int64_t> parameters,
                      const InterpretOptions& options) const {
  Machine(*program_, options).run(buffers, parameters);
}

void interpret(const Kernel& kernel, std::span<const BufferArgument> buffers,
               std::span<const int64_t> parameters, const InterpretOptions& options) {
  Interpreter(kernel).run(buffers, parameters, options);
}

}  // namespace fusewise::kernel

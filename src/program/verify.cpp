#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "program/program.h"

namespace fusewise::program {
namespace {

class Verifier {
 public:
  explicit Verifier(const Program& program)
      : program_(program), symbols_(program.symbols.begin(), program.symbols.end()) {
    for (const Step& step : program.run_steps) late_.insert(step.binds.begin(), step.binds.end());
  }

  void run() {
    require(symbols_.size() == program_.symbols.size(), "a symbol is listed twice");
    for (const Input& input : program_.inputs)
      capacity(input.capacity, input.shape, "input '" + input.name + "'");
    for (const Output& output : program_.outputs)
      capacity(output.capacity, output.shape, "output '" + output.name + "'");
    interface();
    for (BufferId id = 0; id < program_.buffers.size(); ++id) buffer(id);
    for (const Kernel& one : program_.kernels) kernel(one);
    for (const HostCall& call : program_.host_calls)
      for (const HostCall::Operand& operand : call.operands)
        shape(operand.shape, "an operand of " + call.function);
    steps(program_.once_steps, "once step", true);
    for (const Step& step : program_.once_steps)
      require(!is_control(step), "a once step '" + step.label + "' is no kernel and no copy");
    steps(program_.run_steps, "step", false);
    bodies();
    moving();
    first_uses();
    for (const Guard& guard : program_.guards) {
      dim(guard.left, "a guard");
      dim(guard.right, "a guard");
    }
  }

 private:
  static void require(bool condition, const std::string& message) {
    if (!condition) throw InternalError("invalid program: " + message);
  }

  void dim(const Dim& value, const std::string& where) const {
    if (value.is_constant()) return;
    for (const std::string& symbol : value.symbols())
      require(symbols_.contains(symbol) || late_.contains(symbol),
              fmt::format("{} names the unknown symbol '{}'", where, symbol));
  }
  // Of symbols that are bound by now.
  void dim_now(const Dim& value, const std::string& where) const {
    if (value.is_constant()) return;
    for (const std::string& symbol : value.symbols())
      require(symbols_.contains(symbol),
              fmt::format("{} needs the symbol '{}' before it is bound", where, symbol));
  }
  void shape(const Shape& value, const std::string& where) const {
    for (const Dim& extent : value) dim(extent, where);
  }

  void capacity(const Capacity& one, const Shape& shape, const std::string& where) {
    if (one.symbol.empty()) return;
    require(one.axis < shape.size(), where + " has a capacity along an axis that does not exist");
    for (const Dim& extent : shape) dim_now(extent, where);
    require(symbols_.insert(one.symbol).second, where + " has a capacity whose symbol means something else");
  }

  void interface() const {
    for (const Input& input : program_.inputs)
      for (const Dim& extent : input.shape) dim_now(extent, "input '" + input.name + "'");
    for (uint32_t i = 0; i < program_.outputs.size(); ++i) {
      const Output& output = program_.outputs[i];
      const std::string where = "output '" + output.name + "'";
      shape(output.shape, where);
      require(output.buffer < program_.buffers.size() &&
                  program_.buffers[output.buffer].kind == BufferKind::output &&
                  program_.buffers[output.buffer].index == i,
              where + " has no buffer of its own");
      for (const uint32_t input : output.may_alias_inputs)
        require(input < program_.inputs.size(), where + " may alias an input that does not exist");
    }
  }

  size_t count_of(BufferKind kind) const {
    switch (kind) {
      case BufferKind::input:
        return program_.inputs.size();
      case BufferKind::output:
        return program_.outputs.size();
      case BufferKind::constant:
        return program_.constants.size();
      default:
        return SIZE_MAX;
    }
  }

  void buffer(BufferId id) const {
    const Buffer& one = program_.buffers[id];
    const size_t count = count_of(one.kind);
    if (count != SIZE_MAX && one.index >= count)
      require(false, describe_buffer(program_, id) + " has an index that does not exist");
    if (one.bytes.is_constant()) {
      require(one.bytes.value() >= 0, describe_buffer(program_, id) + " has a negative size");
    } else {
      require(one.kind != BufferKind::once && one.kind != BufferKind::constant,
              describe_buffer(program_, id) + " has no constant size");
      dim(one.bytes, describe_buffer(program_, id));
    }
    if (one.kind == BufferKind::dims) {
      shape(one.dims, describe_buffer(program_, id));
      require(one.bytes.is(static_cast<int64_t>(8 * one.dims.size())),
              describe_buffer(program_, id) + " has a size that differs from its values");
    }
    if (one.kind == BufferKind::view) view(id);
    if (one.kind == BufferKind::constant)
      require(one.bytes.is(static_cast<int64_t>(program_.constants[one.index].size)),
              describe_buffer(program_, id) + " has a size that differs from its constant's");
    if (one.kind == BufferKind::once && !one.content.span.empty())
      require(one.bytes.is(static_cast<int64_t>(one.content.span.size())),
              describe_buffer(program_, id) + " has content of another size");
    for (const BufferId other : one.may_overwrite)
      require(one.kind == BufferKind::arena && other < program_.buffers.size() && other != id,
              describe_buffer(program_, id) + " may overwrite something that it cannot");
  }

  void view(BufferId id) const {
    const Buffer& one = program_.buffers[id];
    const std::string what = describe_buffer(program_, id);
    require(one.base < program_.buffers.size() && program_.buffers[one.base].kind != BufferKind::view &&
                program_.buffers[one.base].kind != BufferKind::dims,
            what + " is a part of something that has none");
    dim(one.offset, what);
    dim(one.reach, what);
    const Dim& whole = program_.buffers[one.base].bytes;
    if (one.offset.is_constant() && one.reach.is_constant() && whole.is_constant())
      // What holds no bytes may begin anywhere: a part's place in a whole without elements, for instance.
      require(one.offset.value() >= 0 && one.reach.value() >= 0 &&
                  (one.reach.is(0) || one.offset.value() + one.reach.value() <= whole.value()),
              what + " reaches beyond what it is a part of");
  }

  static void kernel(const Kernel& one) {
    const std::set<std::string> parameters(one.parameters.begin(), one.parameters.end());
    require(!one.name.empty() && one.phases > 0, "a kernel without a name or phases");
    require(one.launches.empty() || one.launches.size() == one.phases,
            "kernel " + one.name + " has not as many launches as phases");
    for (const Launch& launch : one.launches) {
      require(launch.threads > 0, "kernel " + one.name + " has a launch without threads");
      for (const std::string& symbol : launch.blocks.symbols())
        require(parameters.contains(symbol),
                "a launch of kernel " + one.name + " names an unknown parameter");
    }
    require(parameters.size() == one.parameters.size(),
            "kernel " + one.name + " has two parameters of one name");
    for (const std::string& symbol : one.scratch_bytes.symbols())
      require(
          parameters.contains(symbol),
          fmt::format("the scratch size of kernel {} names the unknown parameter '{}'", one.name, symbol));
  }

  void steps(const std::vector<Step>& list, const std::string& kind, bool once) {
    for (size_t i = 0; i < list.size(); ++i) {
      const Step& step = list[i];
      const std::string where = fmt::format("{} {} '{}'", kind, i, step.label);
      for (const BufferId id : step.buffers)
        require(id < program_.buffers.size(), where + " names a buffer that does not exist");
      if (step.kind == StepKind::copy)
        require(step.buffers.size() == 2 && (step.parameters.empty() || step.parameters.size() % 3 == 1),
                where + " is no valid copy");
      else if (is_control(step))
        control_step(step, where);
      else if (step.kind == StepKind::host)
        host_step(step, where);
      else
        kernel_step(step, where);
      dim_now(step.size, where);
      require(step.binds.empty() || (step.kind == StepKind::host && !once), where + " cannot bind symbols");
      for (const Dim& parameter : step.parameters) {
        if (once) require(parameter.is_constant(), where + " has a parameter that is not constant");
        dim_now(parameter, where);
      }
      for (const std::string& symbol : step.binds)
        require(symbols_.insert(symbol).second, fmt::format("{} binds '{}', which is bound", where, symbol));
      for (const BufferId id : step.buffers) {
        const Buffer& one = program_.buffers[id];
        dim_now(one.bytes, where);
        for (const Dim& value : one.dims) dim_now(value, where);
        if (one.kind != BufferKind::view) continue;
        dim_now(one.offset, where);
        dim_now(one.reach, where);
        dim_now(program_.buffers[one.base].bytes, where);
      }
      for (size_t argument = 0; argument < step.buffers.size(); ++argument)
        argument_of(step, argument, where, once);
    }
  }

  void kernel_step(const Step& step, const std::string& where) const {
    require(step.kernel < program_.kernels.size(), where + " names a kernel that does not exist");
    const Kernel& used = program_.kernels[step.kernel];
    require(step.parameters.size() == used.parameters.size(),
            fmt::format("{} gives {} parameters to kernel {}, which has {}", where, step.parameters.size(),
                        used.name, used.parameters.size()));
    require(used.writes.empty() || used.writes.size() == step.buffers.size(),
            fmt::format("{} gives {} buffers to kernel {}, which has {}", where, step.buffers.size(),
                        used.name, used.writes.size()));
  }

  static bool is_control(const Step& step) {
    return step.kind == StepKind::loop || step.kind == StepKind::branch;
  }

  void control_step(const Step& step, const std::string& where) const {
    require(step.parameters.empty(), where + " has parameters");
    if (step.kind == StepKind::branch) {
      require(!step.buffers.empty(), where + " has no condition");
      return place(step, 0, 1, where);
    }
    const Loop& loop = step.loop;
    dim_now(loop.trips, where);
    require(loop.bounded || loop.count != none || loop.go_on != none, where + " does not end");
    require(loop.bounded || loop.slices.empty(), where + " has slices and no bound");
    if (loop.count != none) place(step, loop.count, 8, where);
    if (loop.condition != none) place(step, loop.condition, 1, where);
    if (loop.go_on != none) place(step, loop.go_on, 1, where);
    if (loop.counter != none) place(step, loop.counter, 8, where);
    for (const Loop::Slice& slice : loop.slices)
      for (uint32_t at : {slice.whole, slice.part}) place(step, at, -1, where);
    for (const Loop::State& state : loop.states) {
      for (uint32_t at : {state.initial, state.before, state.after, state.result}) place(step, at, -1, where);
      if (state.spare != none) place(step, state.spare, -1, where);
      const bool in_slice =
          std::any_of(loop.slices.begin(), loop.slices.end(),
                      [&](const Loop::Slice& slice) { return slice.part == state.after && slice.written; });
      require(in_slice == (state.spare == none), where + " has no two places for a state");
    }
  }
  void place(const Step& step, uint32_t at, int64_t bytes, const std::string& where) const {
    require(at < step.buffers.size(), where + " has a role for a buffer that it does not name");
    if (bytes >= 0)
      require(program_.buffers[step.buffers[at]].bytes.is(bytes),
              where + " has a scalar of another size: " + describe_buffer(program_, step.buffers[at]));
  }

  // Bodies lie inside what is around them.
  void bodies() const {
    std::vector<size_t> ends = {program_.run_steps.size()};
    for (size_t i = 0; i < program_.run_steps.size(); ++i) {
      const Step& step = program_.run_steps[i];
      while (ends.back() <= i && ends.size() > 1) ends.pop_back();
      require(step.body_steps <= ends.back() - i - 1 && step.then_steps <= step.body_steps,
              "the body of step '" + step.label + "' has more steps than there are");
      require(is_control(step) || step.body_steps == 0, "step '" + step.label + "' has a body");
      require(step.binds.empty() || ends.size() == 1,
              "step '" + step.label + "' binds symbols inside of a body");
      ends.push_back(i + 1 + step.body_steps);
    }
  }

  // A moving buffer belongs to one loop, and only that and its body name it.
  void moving() const {
    std::vector<std::pair<size_t, size_t>> range(program_.buffers.size(), {1, 0});
    for (size_t i = 0; i < program_.run_steps.size(); ++i) {
      const Step& step = program_.run_steps[i];
      const auto own = [&](uint32_t at) {
        const BufferId id = step.buffers[at];
        require(program_.buffers[id].kind == BufferKind::moving && range[id].first > range[id].second,
                "step '" + step.label + "' cannot move " + describe_buffer(program_, id));
        range[id] = {i, i + step.body_steps};
      };
      for (const Loop::Slice& slice : step.loop.slices) own(slice.part);
      for (const Loop::State& state : step.loop.states) {
        own(state.before);
        if (state.spare != none) own(state.after);
      }
      for (const BufferId named : step.buffers) {
        const BufferId id = root_of(program_, named);
        require(
            program_.buffers[id].kind != BufferKind::moving ||
                (range[id].first <= i && i <= range[id].second),
            "step '" + step.label + "' names " + describe_buffer(program_, named) + " outside of its loop");
      }
    }
  }

  void host_step(const Step& step, const std::string& where) const {
    require(step.kernel < program_.host_calls.size(), where + " names a host call that does not exist");
    const HostCall& call = program_.host_calls[step.kernel];
    require(call.operands.size() <= step.buffers.size(), where + " gives too few buffers");
    for (const HostCall::Operand& operand : call.operands)
      for (const Dim& extent : operand.shape) dim_now(extent, where);
  }

  enum class Access { reads, writes, unknown };
  static Access access_of_loop(const Loop& loop, uint32_t argument) {
    if (argument == loop.count || argument == loop.condition) return Access::reads;
    if (argument == loop.counter) return Access::writes;
    for (const Loop::State& state : loop.states) {
      if (argument == state.initial) return Access::reads;
      if (argument == state.result || argument == state.spare) return Access::writes;
    }
    for (const Loop::Slice& slice : loop.slices)
      if (argument == slice.whole) return slice.written ? Access::writes : Access::reads;
    return Access::unknown;
  }
  Access access(const Step& step, size_t argument) const {
    if (step.kind == StepKind::copy) return argument == 1 ? Access::writes : Access::reads;
    if (step.kind == StepKind::loop) return access_of_loop(step.loop, static_cast<uint32_t>(argument));
    if (step.kind == StepKind::branch) return argument == 0 ? Access::reads : Access::writes;
    if (step.kind == StepKind::host)
      return argument < program_.host_calls[step.kernel].operands.size() ? Access::reads : Access::writes;
    const std::vector<uint8_t>& writes = program_.kernels[step.kernel].writes;
    if (writes.empty()) return Access::unknown;
    return writes[argument] ? Access::writes : Access::reads;
  }

  void argument_of(const Step& step, size_t argument, const std::string& where, bool once) const {
    const BufferId id = step.buffers[argument];
    const BufferKind kind = program_.buffers[root_of(program_, id)].kind;
    const std::string what = where + " uses " + describe_buffer(program_, id);
    if (once) require(kind == BufferKind::constant || kind == BufferKind::once, what);
    if (access(step, argument) != Access::writes) return;
    const bool writable =
        once ? kind == BufferKind::once
             : kind == BufferKind::arena || kind == BufferKind::output || kind == BufferKind::moving;
    if (!writable) require(false, where + " writes to " + describe_buffer(program_, id));
  }

  // Arena buffers and outputs must be written by the first step that names them, outputs by some step. What is put
  // together from parts counts as written from its first part on: which of them are there is not looked at.
  void first_uses() const {
    std::vector<uint8_t> seen(program_.buffers.size(), 0);
    for (const Step& step : program_.run_steps) {
      for (size_t argument = 0; argument < step.buffers.size(); ++argument) {
        const BufferId id = root_of(program_, step.buffers[argument]);
        const BufferKind kind = program_.buffers[id].kind;
        if (access(step, argument) == Access::reads && !seen[id] && !written_by(step, id))
          require(kind != BufferKind::arena && kind != BufferKind::output,
                  fmt::format("step '{}' reads {} before anything has written it", step.label,
                              describe_buffer(program_, id)));
      }
      for (const BufferId id : step.buffers) seen[root_of(program_, id)] = 1;
    }
    for (const Output& output : program_.outputs)
      require(seen[output.buffer] != 0, "no step writes output '" + output.name + "'");
  }

  bool written_by(const Step& step, BufferId id) const {
    for (size_t argument = 0; argument < step.buffers.size(); ++argument)
      if (root_of(program_, step.buffers[argument]) == id && access(step, argument) != Access::reads)
        return true;
    return false;
  }

  const Program& program_;
  std::set<std::string> symbols_;  // bound by now
  std::set<std::string> late_;     // that run steps bind
};

}  // namespace

void verify(const Program& program) { Verifier(program).run(); }

}  // namespace fusewise::program

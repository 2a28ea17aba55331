#include "compiler/program_parts.h"
#include "graph/shape_rules.h"

namespace fusewise::compiler {

using program::BufferId;
using program::BufferKind;

namespace {

class LoopRoles {
 public:
  LoopRoles(program::Program& program, const graph::Node& node, const std::vector<BufferId>& operands,
            const std::vector<BufferId>& results, program::Step& step)
      : program_(program),
        attributes_(graph::attributes<graph::LoopAttributes>(node)),
        body_(*node.bodies[0]),
        operands_(operands),
        results_(results),
        step_(step),
        loop_(step.loop),
        first_(attributes_.conditional ? 1 : 0),
        carried_(static_cast<size_t>(attributes_.carried)) {}

  BodyEnds add() {
    const graph::LoopPlaces places = graph::loop_places(attributes_);
    add_limits();
    add_slices(places);
    add_states(places);
    ends_.inputs.insert(ends_.inputs.end(), operands_.begin() + static_cast<std::ptrdiff_t>(places.captures),
                        operands_.end());
    return std::move(ends_);
  }

 private:
  uint32_t role(BufferId buffer) {
    step_.buffers.push_back(buffer);
    return static_cast<uint32_t>(step_.buffers.size() - 1);
  }
  uint32_t new_role(BufferKind kind, const graph::TensorType& type, const char* name) {
    return role(add_buffer(program_, kind, program::none, bytes_of_type(type), name));
  }
  BufferId buffer(uint32_t at) const { return step_.buffers[at]; }

  void add_limits() {
    if (attributes_.trips) loop_.trips = *attributes_.trips;
    loop_.bounded = attributes_.trips.has_value();
    if (attributes_.counted) loop_.count = role(operands_[0]);
    loop_.counter = new_role(BufferKind::arena, {DataType::int64, {}}, "iteration");
    ends_.inputs.push_back(buffer(loop_.counter));
    ends_.inputs.resize(1 + carried_ + attributes_.scanned.size());
    if (!attributes_.conditional) return;
    loop_.condition = role(operands_[attributes_.counted ? 1 : 0]);
    loop_.go_on = new_role(BufferKind::arena, {DataType::boolean, {}}, "goes on");
    ends_.outputs.push_back(buffer(loop_.go_on));
  }

  void add_slices(const graph::LoopPlaces& places) {
    ends_.outputs.resize(first_ + carried_ + attributes_.stacked.size());
    for (size_t s = 0; s < attributes_.scanned.size(); ++s) {
      const size_t input = 1 + carried_ + s;
      program::Loop::Slice slice;
      slice.whole = role(operands_[places.scanned + s]);
      slice.part = new_role(BufferKind::moving, body_.type({body_.inputs[input].node, 0}), "slice");
      slice.backwards = attributes_.scanned[s] < 0;
      ends_.inputs[input] = buffer(slice.part);
      loop_.slices.push_back(slice);
    }
    for (size_t s = 0; s < attributes_.stacked.size(); ++s) {
      const size_t output = first_ + carried_ + s;
      program::Loop::Slice slice;
      slice.whole = role(results_[carried_ + s]);
      slice.part = new_role(BufferKind::moving, body_.type(body_.outputs[output].value), "stacked slice");
      slice.backwards = attributes_.stacked[s] < 0;
      slice.written = true;
      ends_.outputs[output] = buffer(slice.part);
      loop_.slices.push_back(slice);
    }
  }

  // A state that is stacked, too, stays where its slice is: the next iteration reads it there.
  void add_states(const graph::LoopPlaces& places) {
    for (size_t s = 0; s < carried_; ++s) {
      const graph::TensorType& type = body_.type(body_.outputs[first_ + s].value);
      program::Loop::State state;
      state.initial = role(operands_[places.carried + s]);
      state.before = new_role(BufferKind::moving, type, "state before");
      state.result = role(results_[s]);
      state.after = stacked_as(s);
      if (state.after == program::none) {
        state.after = new_role(BufferKind::moving, type, "state after");
        state.spare = new_role(BufferKind::arena, type, "state");
      }
      ends_.inputs[1 + s] = buffer(state.before);
      ends_.outputs[first_ + s] = buffer(state.after);
      loop_.states.push_back(state);
    }
  }
  uint32_t stacked_as(size_t state) const {
    const size_t scanned = attributes_.scanned.size();
    for (size_t s = 0; s < attributes_.stacked.size(); ++s)
      if (body_.outputs[first_ + carried_ + s].value == body_.outputs[first_ + state].value)
        return loop_.slices[scanned + s].part;
    return program::none;
  }

  program::Program& program_;
  const graph::LoopAttributes& attributes_;
  const graph::Graph& body_;
  const std::vector<BufferId>& operands_;
  const std::vector<BufferId>& results_;
  program::Step& step_;
  program::Loop& loop_;
  size_t first_, carried_;
  BodyEnds ends_;
};

}  // namespace

BodyEnds add_loop_roles(program::Program& program, const graph::Node& node,
                        const std::vector<BufferId>& operands, const std::vector<BufferId>& results,
                        program::Step& step) {
  return LoopRoles(program, node, operands, results, step).add();
}

}  // namespace fusewise::compiler

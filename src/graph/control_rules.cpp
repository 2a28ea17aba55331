// The shape rules of loops and branches: the interface between a node and its bodies.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "graph/shape_rules.h"

namespace fusewise::graph {

namespace {

const TensorType boolean_scalar{DataType::boolean, {}};
const TensorType integer_scalar{DataType::int64, {}};

class ControlRule {
 public:
  ControlRule(Op op, std::span<const TensorType> operands, std::span<const Body> bodies)
      : op_(op), operands_(operands), bodies_(bodies) {}

  std::vector<TensorType> infer(const BranchAttributes&) const {
    need_bodies(2);
    if (operands_.empty() || operands_[0] != boolean_scalar) fail("the condition is no boolean scalar");
    for (size_t b = 0; b < 2; ++b) {
      inputs(b, {operands_.begin() + 1, operands_.end()});
      if (types_of_outputs(b) != types_of_outputs(0))
        fail("its bodies give results of different types or shapes");
    }
    return types_of_outputs(0);
  }

  std::vector<TensorType> infer(const LoopAttributes& a) const {
    need_bodies(1);
    const LoopPlaces places = loop_places(a);
    if (operands_.size() < places.captures)
      fail(fmt::format("{} operands are needed, and there are {}", places.captures, operands_.size()));
    if (!a.trips && !a.counted && !a.conditional) fail("nothing ends it");
    if (a.counted && operands_[0] != integer_scalar) fail("the number of iterations is no int64 scalar");
    if (a.conditional && operands_[a.counted ? 1 : 0] != boolean_scalar)
      fail("the condition is no boolean scalar");
    for (int direction : a.scanned) check_direction(direction);
    for (int direction : a.stacked) check_direction(direction);
    inputs(0, body_inputs(a, places));
    return results(a);
  }

 private:
  [[noreturn]] void fail(const std::string& words) const {
    throw UserError(fmt::format("{}: {}", name_of(op_), words));
  }
  void need_bodies(size_t count) const {
    if (bodies_.size() != count)
      fail(fmt::format("{} bodies are needed, and there are {}", count, bodies_.size()));
  }
  void check_direction(int direction) const {
    if (direction != 1 && direction != -1) fail("a direction is 1 or -1");
  }

  std::vector<TensorType> types_of_outputs(size_t body) const {
    std::vector<TensorType> types;
    for (const GraphOutput& output : bodies_[body]->outputs)
      types.push_back(bodies_[body]->type(output.value));
    return types;
  }

  void inputs(size_t body, const std::vector<TensorType>& types) const {
    const Graph& graph = *bodies_[body];
    if (graph.inputs.size() != types.size())
      fail(fmt::format("its body needs {} inputs and has {}", types.size(), graph.inputs.size()));
    for (size_t i = 0; i < types.size(); ++i) {
      const TensorType& type = graph.type({graph.inputs[i].node, 0});
      if (type != types[i])
        fail(fmt::format("input '{}' of its body is {} and should be {}", graph.inputs[i].name,
                         to_string(type), to_string(types[i])));
    }
  }

  std::vector<TensorType> body_inputs(const LoopAttributes& a, const LoopPlaces& places) const {
    std::vector<TensorType> types = {integer_scalar};
    types.insert(types.end(), operands_.begin() + static_cast<std::ptrdiff_t>(places.carried),
                 operands_.begin() + static_cast<std::ptrdiff_t>(places.scanned));
    for (size_t i = places.scanned; i < places.captures; ++i) {
      const TensorType& whole = operands_[i];
      if (!a.trips || whole.shape.empty() || whole.shape[0] != *a.trips)
        fail(fmt::format("{} is scanned and has not one slice for each iteration", to_string(whole)));
      types.push_back({whole.element, {whole.shape.begin() + 1, whole.shape.end()}});
    }
    types.insert(types.end(), operands_.begin() + static_cast<std::ptrdiff_t>(places.captures),
                 operands_.end());
    return types;
  }

  std::vector<TensorType> results(const LoopAttributes& a) const {
    std::vector<TensorType> outputs = types_of_outputs(0);
    const size_t first = a.conditional ? 1 : 0, carried = static_cast<size_t>(a.carried);
    if (outputs.size() != first + carried + a.stacked.size())
      fail(fmt::format("its body needs {} outputs and has {}", first + carried + a.stacked.size(),
                       outputs.size()));
    if (a.conditional && outputs[0] != boolean_scalar) fail("its body's condition is no boolean scalar");
    if (!a.stacked.empty() && (!a.trips || a.counted || a.conditional))
      fail("how many slices are stacked is not known with the shapes");
    const size_t start = loop_places(a).carried;
    std::vector<TensorType> types;
    for (size_t i = first; i < outputs.size(); ++i) {
      const bool is_state = i < first + carried;
      if (is_state && outputs[i] != operands_[start + i - first])
        fail(fmt::format("a carried value begins as {} and goes on as {}",
                         to_string(operands_[start + i - first]), to_string(outputs[i])));
      if (!is_state) outputs[i].shape.insert(outputs[i].shape.begin(), *a.trips);
      types.push_back(std::move(outputs[i]));
    }
    return types;
  }

  Op op_;
  std::span<const TensorType> operands_;
  std::span<const Body> bodies_;
};

}  // namespace

LoopPlaces loop_places(const LoopAttributes& a) {
  LoopPlaces places;
  places.carried = (a.counted ? 1 : 0) + (a.conditional ? 1 : 0);
  places.scanned = places.carried + static_cast<size_t>(std::max(a.carried, 0));
  places.captures = places.scanned + a.scanned.size();
  return places;
}

namespace {

// What a body requires counts where it runs: m is 0 for a loop without iterations, else 1.
Requirement where_it_runs(const Requirement& r, const Dim& m) {
  const bool or_one = r.kind == Requirement::Kind::equal_or_one;
  return {r.kind, or_one ? r.a * m + 1 - m : r.a * m, or_one ? r.b * m + 1 - m : r.b * m};
}

}  // namespace

Inference infer_control(Op op, std::span<const TensorType> operands, const Attributes& attributes,
                        std::span<const Body> bodies) {
  const ControlRule rule(op, operands, bodies);
  Inference inference;
  inference.results = op == Op::branch ? rule.infer(std::get<BranchAttributes>(attributes))
                                       : rule.infer(std::get<LoopAttributes>(attributes));
  const auto* loop = std::get_if<LoopAttributes>(&attributes);
  const Dim m = loop && loop->trips ? min(*loop->trips, 1) : Dim(1);
  if (m.is(0)) return inference;
  for (const Body& body : bodies)
    for (const Requirement& requirement : requirements_of(*body))
      inference.requirements.push_back(m.is(1) ? requirement : where_it_runs(requirement, m));
  return inference;
}

}  // namespace fusewise::graph

#include "rewrite/simplify_control.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "graph/dead_nodes.h"
#include "graph/shape_rules.h"
#include "rewrite/match.h"
#include "rewrite/rebuilder.h"

namespace fusewise::rewrite {

namespace {

using graph::Body;
using graph::ConstantData;
using graph::Graph;
using graph::LoopAttributes;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Value;

// What becomes of a body: the inputs and outputs that stay, in order, and the inputs that are constants now.
struct BodyEdit {
  std::vector<NodeId> inputs;
  std::map<NodeId, const ConstantData*> constants;
  std::vector<size_t> outputs;
};

Body edited(const Graph& old, const BodyEdit& edit) {
  Graph result;
  graph::GraphBuilder builder(result);
  result.name = old.name;
  result.model_nodes = old.model_nodes;
  result.constants = old.constants;
  std::vector<NodeId> moved(old.size(), graph::no_node);
  for (NodeId id = 0; id < old.size(); ++id) {
    Node node = old.node(id);
    if (const auto constant = edit.constants.find(id); constant != edit.constants.end()) {
      const ConstantData& data = *constant->second;
      const Value value = builder.constant(data.type, data.bytes, data.owner, data.name);
      moved[id] = data.type.shape == node.results[0].shape
                      ? value.node
                      : spread(builder, value, node.results[0].shape).node;
      continue;
    }
    if (node.op == Op::input && std::ranges::find(edit.inputs, id) == edit.inputs.end()) continue;
    for (Value& operand : node.operands) operand.node = moved[operand.node];
    moved[id] = result.append(std::move(node));
  }
  const auto name_of_input = [&](NodeId id) {
    return std::ranges::find(old.inputs, id, &graph::GraphInput::node)->name;
  };
  for (NodeId id : edit.inputs) result.inputs.push_back({moved[id], name_of_input(id)});
  for (size_t i : edit.outputs)
    result.outputs.push_back(
        {{moved[old.outputs[i].value.node], old.outputs[i].value.result}, old.outputs[i].name});
  return std::make_shared<const Graph>(graph::without_dead_nodes(std::move(result)));
}

// The nodes of a body in place of the node that has it; gives its outputs.
std::vector<Value> inlined(graph::GraphBuilder& builder, const Graph& body,
                           const std::vector<Value>& inputs) {
  std::vector<std::vector<Value>> moved(body.size());  // by node and result
  for (size_t i = 0; i < inputs.size(); ++i) moved[body.inputs[i].node] = {inputs[i]};
  for (NodeId id = 0; id < body.size(); ++id) {
    const Node& node = body.node(id);
    if (node.op == Op::input) continue;
    std::vector<Value> operands;
    for (const Value& operand : node.operands) operands.push_back(moved[operand.node].at(operand.result));
    if (node.op == Op::constant) {
      const ConstantData& data = *graph::constant_of(body, {id, 0});
      moved[id] = {builder.constant(data.type, data.bytes, data.owner, data.name)};
    } else if (graph::kind_of(node.op) == graph::Kind::control) {
      moved[id] = builder.control(node.op, std::move(operands), node.attributes, node.bodies);
    } else if (node.op == Op::result) {
      moved[id] = operands;
    } else {
      const NodeId made = builder.append(node.op, std::move(operands), node.attributes, node.results[0]).node;
      for (uint32_t r = 0; r < node.results.size(); ++r) moved[id].push_back({made, r});
    }
  }
  std::vector<Value> outputs;
  for (const graph::GraphOutput& output : body.outputs)
    outputs.push_back(moved[output.value.node].at(output.value.result));
  return outputs;
}

// Which inputs of a body some output of `outputs` depends on, by node.
std::vector<bool> needed_for(const Graph& body, const std::vector<size_t>& outputs) {
  std::vector<bool> needed(body.size(), false);
  for (size_t i : outputs) needed[body.outputs[i].value.node] = true;
  for (size_t i = body.size(); i-- > 0;)
    if (needed[i])
      for (const Value& operand : body.node(static_cast<NodeId>(i)).operands) needed[operand.node] = true;
  return needed;
}

class Simplifier {
 public:
  explicit Simplifier(Graph graph)
      : read_(graph.size()), results_(graph.size()), result_of_(results_of(graph)), r_(std::move(graph)) {}

  Rewritten run() {
    for (NodeId id = 0; id < r_.size(); ++id) {
      if (result_of_[id].node != graph::no_node && take_result(id)) continue;
      const Node& node = r_.begin(id);
      const bool is_control = graph::kind_of(node.op) == graph::Kind::control;
      if (!is_control || !simplify(id, node)) r_.keep(id);
    }
    return r_.finish();
  }

 private:
  // By `result` node, what it is a result of. Also marks what is read.
  std::vector<Value> results_of(const Graph& graph) {
    std::vector<Value> all(graph.size());
    const std::vector<int> uses = count_uses(graph);
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (graph.node(id).op != Op::result) continue;
      const Value of = all[id] = graph.node(id).operands[0];
      if (uses[id] == 0) continue;
      read_[of.node].resize(graph.node(of.node).results.size(), false);
      read_[of.node][of.result] = true;
    }
    return all;
  }

  // The results by number where the node changes; an absent one is not read.
  bool simplify(NodeId id, const Node& node) {
    read_[id].resize(node.results.size(), false);
    std::optional<std::vector<std::optional<Value>>> results =
        node.op == Op::loop ? loop(node, read_[id]) : branch(node, read_[id]);
    if (!results) return false;
    results_[id] = std::move(*results);
    return true;
  }

  bool take_result(NodeId id) {
    const Value of = result_of_[id];
    if (results_[of.node].empty()) return false;
    if (const std::optional<Value>& value = results_[of.node][of.result])
      r_.replace(id, *value, Rebuilder::Sources::leave);
    return true;  // else nobody reads it
  }

  // The constant that an operand is, or one number repeated.
  const ConstantData* bound(Value operand) const {
    if (const ConstantData* data = graph::constant_of(r_.result(), operand)) return data;
    const std::optional<Value> one = uniform_source(r_.result(), operand);
    return one ? graph::constant_of(r_.result(), *one) : nullptr;
  }

  // Captures from `first` on: constants go into the body, unread ones go away.
  bool settle_captures(const std::vector<Value>& operands, size_t first,
                       const std::vector<const Graph*>& bodies, const std::vector<std::vector<int>>& uses,
                       std::vector<BodyEdit>& edits, std::vector<Value>& kept) const {
    bool changed = false;
    for (size_t i = first; i < operands.size(); ++i) {
      const size_t number = bodies[0]->inputs.size() - operands.size() + i;
      bool is_read = false;
      for (size_t b = 0; b < bodies.size(); ++b)
        is_read = is_read || uses[b][bodies[b]->inputs[number].node] > 0;
      const ConstantData* data = bound(operands[i]);
      changed = changed || !is_read || data;
      if (!is_read) continue;
      if (!data) kept.push_back(operands[i]);
      for (size_t b = 0; b < bodies.size(); ++b) {
        const NodeId input = bodies[b]->inputs[number].node;
        if (data)
          edits[b].constants.emplace(input, data);
        else
          edits[b].inputs.push_back(input);
      }
    }
    return changed;
  }

  std::optional<std::vector<std::optional<Value>>> branch(const Node& node, const std::vector<bool>& read) {
    if (const std::optional<Scalar> condition = uniform_constant(r_.result(), node.operands[0])) {
      const std::vector<Value> inputs(node.operands.begin() + 1, node.operands.end());
      const std::vector<Value> values =
          inlined(r_.builder(), *node.bodies[condition->i != 0 ? 0 : 1], inputs);
      return std::vector<std::optional<Value>>(values.begin(), values.end());
    }
    const std::vector<const Graph*> bodies = {node.bodies[0].get(), node.bodies[1].get()};
    std::vector<BodyEdit> edits(2);
    for (size_t i = 0; i < read.size(); ++i)
      if (read[i])
        for (BodyEdit& edit : edits) edit.outputs.push_back(i);
    std::vector<Value> operands = {node.operands[0]};
    const std::vector<std::vector<int>> uses = {count_uses(*bodies[0]), count_uses(*bodies[1])};
    bool changed = settle_captures(node.operands, 1, bodies, uses, edits, operands);
    changed = changed || edits[0].outputs.size() < read.size();
    if (!changed) return std::nullopt;
    const std::vector<Value> values = r_.builder().control(
        Op::branch, operands, node.attributes, {edited(*bodies[0], edits[0]), edited(*bodies[1], edits[1])});
    return numbered(values, edits[0].outputs, 0, read.size());
  }

  // The values for those results whose body outputs are kept, behind `first` outputs that are no results.
  static std::vector<std::optional<Value>> numbered(const std::vector<Value>& values,
                                                    const std::vector<size_t>& outputs, size_t first,
                                                    size_t count) {
    std::vector<std::optional<Value>> results(count);
    for (size_t i = first; i < outputs.size(); ++i) results[outputs[i] - first] = values[i - first];
    return results;
  }

  std::optional<std::vector<std::optional<Value>>> loop(const Node& node, const std::vector<bool>& read) {
    const auto& old = graph::attributes<LoopAttributes>(node);
    if (old.trips && old.trips->is(1) && !old.counted && !old.conditional) return unrolled_once(node, old);
    const Graph& body = *node.bodies[0];
    const graph::LoopPlaces places = graph::loop_places(old);
    const size_t first = old.conditional ? 1 : 0, carried = static_cast<size_t>(old.carried);
    const auto state_input = [&](size_t s) { return body.inputs[1 + s].node; };
    std::vector<bool> invariant(carried);
    for (size_t s = 0; s < carried; ++s) invariant[s] = body.outputs[first + s].value.node == state_input(s);
    const std::vector<size_t> outputs = needed_outputs(body, first, carried, invariant, read);

    LoopAttributes attributes = old;
    attributes.carried = 0;
    attributes.stacked.clear();
    BodyEdit edit;
    edit.outputs = outputs;
    edit.inputs.push_back(body.inputs[0].node);
    std::vector<Value> operands(node.operands.begin(),
                                node.operands.begin() + static_cast<std::ptrdiff_t>(places.carried));
    std::vector<Value> invariants;
    std::vector<NodeId> invariant_inputs;
    for (size_t s = 0; s < carried; ++s) {
      if (invariant[s]) {
        invariants.push_back(node.operands[places.carried + s]);
        invariant_inputs.push_back(state_input(s));
      } else if (std::ranges::binary_search(outputs, first + s)) {
        ++attributes.carried;
        operands.push_back(node.operands[places.carried + s]);
        edit.inputs.push_back(state_input(s));
      }
    }
    for (size_t s = 0; s < old.stacked.size(); ++s)
      if (std::ranges::binary_search(outputs, first + carried + s))
        attributes.stacked.push_back(old.stacked[s]);
    bool changed = outputs.size() < body.outputs.size() || !invariants.empty();
    std::vector<int> uses(body.size(), 0);
    const std::vector<bool> needed = needed_for(body, outputs);
    for (NodeId id = 0; id < body.size(); ++id) uses[id] = needed[id] ? 1 : 0;
    attributes.scanned.clear();
    for (size_t s = 0; s < old.scanned.size(); ++s) {
      const NodeId input = body.inputs[1 + carried + s].node;
      changed = changed || uses[input] == 0;
      if (uses[input] == 0) continue;
      attributes.scanned.push_back(old.scanned[s]);
      operands.push_back(node.operands[places.scanned + s]);
      edit.inputs.push_back(input);
    }
    std::vector<BodyEdit> edits = {std::move(edit)};
    changed = settle_captures(node.operands, places.captures, {&body}, {uses}, edits, operands) || changed;
    if (!changed) return std::nullopt;
    operands.insert(operands.end(), invariants.begin(), invariants.end());
    edits[0].inputs.insert(edits[0].inputs.end(), invariant_inputs.begin(), invariant_inputs.end());
    const std::vector<Value> values =
        r_.builder().control(Op::loop, operands, attributes, {edited(body, edits[0])});
    std::vector<std::optional<Value>> results = numbered(values, outputs, first, read.size());
    for (size_t s = 0; s < carried; ++s)
      if (invariant[s]) results[s] = node.operands[places.carried + s];
    return results;
  }

  // The outputs of a loop's body that a result which is read, or the condition, depends on, over any number of
  // iterations.
  static std::vector<size_t> needed_outputs(const Graph& body, size_t first, size_t carried,
                                            const std::vector<bool>& invariant,
                                            const std::vector<bool>& read) {
    std::vector<size_t> outputs;
    for (size_t i = 0; i < body.outputs.size(); ++i)
      if (i < first || (read[i - first] && !(i - first < carried && invariant[i - first])))
        outputs.push_back(i);
    for (size_t before = SIZE_MAX; before != outputs.size();) {
      before = outputs.size();
      const std::vector<bool> needed = needed_for(body, outputs);
      for (size_t s = 0; s < carried; ++s)
        if (needed[body.inputs[1 + s].node] && !invariant[s] &&
            std::ranges::find(outputs, first + s) == outputs.end())
          outputs.push_back(first + s);
    }
    std::ranges::sort(outputs);
    return outputs;
  }

  // Slices and stacks of a single iteration only gain or lose a dimension of 1.
  std::optional<std::vector<std::optional<Value>>> unrolled_once(const Node& node,
                                                                 const LoopAttributes& loop) {
    graph::GraphBuilder& b = r_.builder();
    const graph::LoopPlaces places = graph::loop_places(loop);
    std::vector<Value> inputs = {b.scalar(DataType::int64, 0)};
    for (size_t i = places.carried; i < node.operands.size(); ++i) {
      Value value = node.operands[i];
      if (i >= places.scanned && i < places.captures)
        value = b.reshape(value, {b.shape(value).begin() + 1, b.shape(value).end()});
      inputs.push_back(value);
    }
    std::vector<Value> outputs = inlined(b, *node.bodies[0], inputs);
    for (size_t i = static_cast<size_t>(loop.carried); i < outputs.size(); ++i)
      outputs[i] = b.reshape(outputs[i], node.results[i].shape);
    return std::vector<std::optional<Value>>(outputs.begin(), outputs.end());
  }

  std::vector<std::vector<bool>> read_;                     // by node and result
  std::vector<std::vector<std::optional<Value>>> results_;  // of those that changed, the same
  std::vector<Value> result_of_;
  Rebuilder r_;
};

}  // namespace

Rewritten simplify_control(Graph graph, const RewriteContext&) {
  const auto is_control = [&](NodeId id) {
    return graph::kind_of(graph.node(id).op) == graph::Kind::control;
  };
  bool any = false;
  for (NodeId id = 0; id < graph.size() && !any; ++id) any = is_control(id);
  if (!any) return {std::move(graph), false};
  return Simplifier(std::move(graph)).run();
}

}  // namespace fusewise::rewrite

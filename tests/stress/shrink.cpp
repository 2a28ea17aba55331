#include "stress/shrink.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/error.h"
#include "graph/builder.h"
#include "graph/dead_nodes.h"
#include "graph/interpreter/interpreter.h"
#include "graph/shape_rules.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "numerics/scalar_op.h"
#include "rewrite/simplify_control.h"
#include "support/random_graphs/run_symbols.h"

namespace fusewise::test {

using graph::Graph;
using graph::GraphBuilder;
using graph::NodeId;
using graph::Op;
using graph::Tensor;
using graph::Value;

namespace {

// How a rebuilt graph differs.
struct Edit {
  std::map<NodeId, std::vector<Tensor>> to_input;  // results of these nodes become inputs
  std::map<NodeId, Value> to_operand;              // these are replaced by one of their operands
  std::set<size_t> without_output;
  std::set<NodeId> to_constant;                                         // these inputs become constants
  std::function<Dim(const Dim&)> dim = [](const Dim& d) { return d; };  // applied to every extent
};

std::vector<int64_t> extents(const Shape& shape, const SymbolValues& symbols) {
  std::vector<int64_t> result;
  for (const Dim& d : shape) result.push_back(d.evaluate(symbols));
  return result;
}

// The leading elements of each dimension.
Tensor cropped(const Tensor& t, const std::vector<int64_t>& shape) {
  if (shape == t.shape) return t;
  Tensor result(t.element, shape);
  const auto size = static_cast<size_t>(bytes_of(t.element));
  std::vector<int64_t> at(shape.size(), 0);
  for (int64_t i = 0, n = result.count(); i < n; ++i) {
    int64_t from = 0;
    for (size_t d = 0; d < shape.size(); ++d) from = from * t.shape[d] + std::min(at[d], t.shape[d] - 1);
    std::copy_n(t.bytes().data() + static_cast<size_t>(from) * size, size,
                result.mutable_bytes().data() + static_cast<size_t>(i) * size);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
  return result;
}

class Rebuilder {
 public:
  Rebuilder(const GraphCase& from, const Edit& edit) : from_(from), edit_(edit), builder_(result_.graph) {
    result_.graph.model_nodes = from.graph.model_nodes;
    result_.graph.name = from.graph.name;
  }

  // Throws UserError for what cannot be.
  GraphCase run() {
    const Graph& graph = from_.graph;
    std::vector<bool> used(graph.size(), false);
    for (size_t i = 0; i < graph.outputs.size(); ++i)
      if (!edit_.without_output.contains(i)) used[graph.outputs[i].value.node] = true;
    const auto binders = graph::symbol_binders(graph);
    for (NodeId n = static_cast<NodeId>(graph.size()); n-- > 0;) {
      if (!used[n]) continue;
      if (!binders.empty())
        for (NodeId binder : binders[n]) used[binder] = true;
      if (edit_.to_input.contains(n)) continue;
      if (const auto it = edit_.to_operand.find(n); it != edit_.to_operand.end())
        used[it->second.node] = true;
      else
        for (Value v : graph.node(n).operands) used[v.node] = true;
    }
    for (NodeId n = 0; n < graph.size(); ++n)
      if (used[n]) rebuild(n);
    for (size_t i = 0; i < graph.outputs.size(); ++i)
      if (!edit_.without_output.contains(i))
        builder_.output(values_.at(graph.outputs[i].value), graph.outputs[i].name);
    result_.symbols = run_symbols(result_.graph, result_.inputs);
    check_symbols();
    graph::verify(result_.graph);
    return std::move(result_);
  }

 private:
  const GraphCase& from_;
  const Edit& edit_;
  GraphCase result_;
  GraphBuilder builder_;
  std::map<Value, Value> values_;

  Shape changed(const Shape& shape) const {
    Shape result;
    for (const Dim& d : shape) result.push_back(edit_.dim(d));
    return result;
  }

  Value add_input(const graph::TensorType& type, const Tensor& data) {
    const Shape shape = changed(type.shape);
    std::vector<int64_t> sizes;
    for (size_t d = 0; d < shape.size(); ++d)
      sizes.push_back(shape[d].is_constant() ? shape[d].value() : data.shape[d]);
    result_.inputs.push_back(cropped(data, sizes));
    return builder_.input("x" + std::to_string(result_.inputs.size()), {type.element, shape});
  }

  static std::vector<std::shared_ptr<const Graph>> needed(std::vector<std::shared_ptr<const Graph>> bodies) {
    for (std::shared_ptr<const Graph>& body : bodies)
      body = std::make_shared<const Graph>(graph::without_dead_nodes(*body));
    return bodies;
  }

  Value add_constant(DataType element, const Tensor& data) {
    return builder_.constant({element, Shape(data.shape.begin(), data.shape.end())},
                             std::vector<std::byte>(data.bytes().begin(), data.bytes().end()));
  }

  void rebuild(NodeId n) {
    const graph::Node& node = from_.graph.node(n);
    const auto results = static_cast<uint32_t>(node.results.size());
    builder_.set_sources(node.sources);
    if (const auto it = edit_.to_input.find(n); it != edit_.to_input.end()) {
      for (uint32_t r = 0; r < results; ++r) values_[{n, r}] = add_input(node.results[r], it->second[r]);
      return;
    }
    if (const auto it = edit_.to_operand.find(n); it != edit_.to_operand.end()) {
      for (uint32_t r = 0; r < results; ++r) values_[{n, r}] = values_.at(it->second);
      return;
    }
    if (graph::kind_of(node.op) == graph::Kind::control) {  // with what its bodies need
      std::vector<Value> operands;
      for (Value v : node.operands) operands.push_back(values_.at(v));
      const std::vector<Value> made =
          builder_.control(node.op, std::move(operands), node.attributes, needed(node.bodies));
      for (uint32_t r = 0; r < results; ++r) values_[{n, r}] = made[r];
      return;
    }
    if (node.op == Op::result) {
      values_[{n, 0}] = values_.at(node.operands[0]);
      return;
    }
    const Value first = rebuilt(n, node);
    for (uint32_t r = 0; r < results; ++r) values_[{n, r}] = {first.node, first.result + r};
  }

  Value rebuilt(NodeId n, const graph::Node& node) {
    const graph::TensorType& type = node.results[0];
    if (node.op == Op::input)
      for (size_t i = 0; i < from_.graph.inputs.size(); ++i)
        if (from_.graph.inputs[i].node == n)
          return edit_.to_constant.contains(n) ? add_constant(type.element, from_.inputs[i])
                                               : add_input(type, from_.inputs[i]);
    if (const graph::ConstantData* data = graph::constant_of(from_.graph, {n, 0})) {
      const Shape shape = changed(type.shape);
      const Tensor t =
          cropped(Tensor::copy_of(type.element, extents(type.shape, {}), data->bytes), extents(shape, {}));
      return add_constant(type.element, t);
    }
    std::vector<Value> operands;
    for (Value v : node.operands) operands.push_back(values_.at(v));
    graph::Attributes attributes = node.attributes;
    if (auto* a = std::get_if<graph::BroadcastAttributes>(&attributes)) a->shape = changed(a->shape);
    if (auto* a = std::get_if<graph::ReshapeAttributes>(&attributes)) a->shape = changed(a->shape);
    if (auto* a = std::get_if<graph::SliceAttributes>(&attributes)) {
      a->shape = changed(a->shape);
      a->starts = changed(a->starts);
    }
    if (auto* a = std::get_if<graph::DimsAttributes>(&attributes)) a->dims = changed(a->dims);
    if (auto* a = std::get_if<graph::HostAttributes>(&attributes)) a->parameters = changed(a->parameters);
    graph::TensorType stated = type;
    stated.shape = changed(type.shape);
    return builder_.append(node.op, std::move(operands), std::move(attributes), stated);
  }

  // Symbols that nothing gives a value make no program.
  void check_symbols() const {
    for (NodeId n = 0; n < result_.graph.size(); ++n)
      for (const Dim& d : result_.graph.type({n, 0}).shape) d.evaluate(result_.symbols);
  }
};

class Shrinker {
 public:
  Shrinker(GraphCase what, FunctionRef<bool(const GraphCase&)> fails, const ShrinkOptions& options)
      : best_(std::move(what)), fails_(fails), left_(options.most_tries) {}

  GraphCase run() {
    bool changed = true;
    while (changed && left_ > 0) {
      changed = drop_outputs();
      changed = open_bodies() || changed;
      changed = cut_nodes() || changed;
      changed = bypass_nodes() || changed;
      changed = fix_symbols() || changed;
      changed = reduce_sizes() || changed;
      changed = simplify_numbers() || changed;
    }
    return std::move(best_);
  }

 private:
  GraphCase best_;
  FunctionRef<bool(const GraphCase&)> fails_;
  int64_t left_;

  bool take(GraphCase candidate) {
    if (left_-- <= 0) return false;
    try {
      if (!fails_(candidate)) return false;
    } catch (const std::exception&) {
      return false;
    }
    best_ = std::move(candidate);
    return true;
  }
  bool take(const Edit& edit) {
    try {
      return take(Rebuilder(best_, edit).run());
    } catch (const std::exception&) {
      return false;
    }
  }

  bool drop_outputs() {
    bool changed = false;
    const size_t count = best_.graph.outputs.size();
    for (size_t keep = 0; keep < count && count > 1; ++keep) {  // just one, at best
      Edit edit;
      for (size_t i = 0; i < count; ++i)
        if (i != keep) edit.without_output.insert(i);
      if (take(edit)) return true;
    }
    for (size_t i = best_.graph.outputs.size(); i-- > 0 && best_.graph.outputs.size() > 1;) {
      Edit edit;
      edit.without_output.insert(i);
      changed = take(edit) || changed;
    }
    return changed;
  }

  // Loops and branches lose what nobody reads, or give way to what they run where that is known.
  bool open_bodies() {
    bool changed = false;
    const auto simplified = [&](const GraphCase& from) {
      GraphCase candidate = from;
      rewrite::Rewritten step{std::move(candidate.graph), true};
      for (int round = 0; round < 8 && step.changed; ++round)
        step = rewrite::simplify_control(std::move(step.graph), {});
      candidate.graph = std::move(step.graph);
      candidate.graph = graph::without_dead_nodes(std::move(candidate.graph));
      const Edit nothing;
      return Rebuilder(candidate, nothing).run();
    };
    const auto attempt = [&](const auto& make) {
      try {
        const GraphCase candidate = make();
        if (candidate.graph.size() == best_.graph.size() && print(candidate.graph) == print(best_.graph))
          return;
        changed = take(candidate) || changed;
      } catch (const std::exception&) {  // not possible here
      }
    };
    for (size_t i = best_.graph.inputs.size(); i-- > 0;) {
      if (i >= best_.graph.inputs.size()) continue;
      const NodeId input = best_.graph.inputs[i].node;
      if (!best_.graph.type({input, 0}).shape.empty()) continue;
      Edit edit;
      edit.to_constant.insert(input);
      for (const double value :
           {1.0, 0.0})  // a loop that runs once gives way to its body, a branch to either
        attempt([&] {
          GraphCase fixed = best_;
          Tensor& t = fixed.inputs.at(i);
          store_scalar(t.mutable_bytes().data(), convert({DataType::float64, value, 0}, t.element));
          return simplified(Rebuilder(fixed, edit).run());
        });
      if (i < best_.graph.inputs.size() && best_.graph.inputs[i].node == input)
        attempt([&] { return simplified(Rebuilder(best_, edit).run()); });
    }
    attempt([&] { return simplified(best_); });
    return changed;
  }

  // What computes a value goes; its result, as the interpreter has it, comes in.
  bool cut_nodes() {
    bool changed = false;
    for (NodeId n = static_cast<NodeId>(best_.graph.size()); n-- > 0;) {
      if (n >= best_.graph.size()) continue;
      if (graph::kind_of(best_.graph.node(n).op) == graph::Kind::source) continue;
      graph::InterpretOptions options;
      const size_t outputs = best_.graph.outputs.size();
      for (uint32_t r = 0; r < best_.graph.node(n).results.size(); ++r) options.also.push_back({n, r});
      Edit edit;
      try {
        std::vector<Tensor> values = graph::interpret(best_.graph, best_.inputs, options);
        edit.to_input[n].assign(values.begin() + static_cast<std::ptrdiff_t>(outputs), values.end());
      } catch (const std::exception&) {
        continue;
      }
      changed = take(edit) || changed;
    }
    return changed;
  }

  bool bypass_nodes() {
    bool changed = false;
    for (NodeId n = static_cast<NodeId>(best_.graph.size()); n-- > 0;) {
      if (n >= best_.graph.size()) continue;
      const std::vector<Value> operands = best_.graph.node(n).operands;
      for (Value v : operands) {
        Edit edit;
        edit.to_operand[n] = v;
        if (!take(edit)) continue;
        changed = true;
        break;
      }
    }
    return changed;
  }

  bool fix_symbols() {
    bool changed = false;
    const SymbolValues symbols = best_.symbols;
    for (const auto& [name, value] : symbols) {
      const std::map<std::string, Dim> constant = {{name, Dim(value)}};
      Edit edit;
      edit.dim = [&](const Dim& d) { return d.substitute(constant); };
      changed = take(edit) || changed;
    }
    return changed;
  }

  bool reduce_sizes() {
    std::set<int64_t> sizes;
    for (NodeId n = 0; n < best_.graph.size(); ++n)
      for (const Dim& d : best_.graph.type({n, 0}).shape)
        if (d.is_constant() && d.value() > 1) sizes.insert(d.value());
    bool changed = false;
    for (auto it = sizes.rbegin(); it != sizes.rend(); ++it)
      for (const int64_t smaller : {int64_t{1}, int64_t{2}, *it / 2, *it - 1}) {
        if (smaller >= *it || smaller < 1) continue;
        Edit edit;
        edit.dim = [&](const Dim& d) { return d.is(*it) ? Dim(smaller) : d; };
        if (!take(edit)) continue;
        changed = true;
        break;
      }
    return reduce_symbols() || changed;
  }
  bool reduce_symbols() {
    bool changed = false;
    const SymbolValues symbols = best_.symbols;
    for (const auto& [name, value] : symbols)
      for (const int64_t smaller : {int64_t{1}, int64_t{2}, value / 2, value - 1}) {
        if (smaller >= value || smaller < 1) continue;
        GraphCase candidate = best_;
        candidate.symbols[name] = smaller;
        try {
          for (size_t i = 0; i < candidate.inputs.size(); ++i)
            candidate.inputs[i] = cropped(
                candidate.inputs[i],
                extents(candidate.graph.type({candidate.graph.inputs[i].node, 0}).shape, candidate.symbols));
          candidate.symbols = run_symbols(candidate.graph, candidate.inputs);
        } catch (const std::exception&) {
          continue;
        }
        if (!take(std::move(candidate))) continue;
        changed = true;
        break;
      }
    return changed;
  }

  bool simplify_numbers() {
    bool changed = false;
    for (size_t i = 0; i < best_.inputs.size(); ++i)
      for (const double value : {0.0, 1.0}) {
        GraphCase candidate = best_;
        Tensor& t = candidate.inputs[i];
        t = Tensor(t.element, t.shape);
        const auto size = static_cast<size_t>(bytes_of(t.element));
        for (size_t at = 0; at < t.bytes().size(); at += size)
          store_scalar(t.mutable_bytes().data() + at, convert({DataType::float64, value, 0}, t.element));
        if (std::ranges::equal(t.bytes(), best_.inputs[i].bytes())) break;
        if (!take(std::move(candidate))) continue;
        changed = true;
        break;
      }
    return changed;
  }
};

bool fails_with(const GraphCase& what, const GraphSettings& settings) {
  return run_graph(what, settings).kind == GraphOutcome::Kind::wrong;
}

// The failing one of the same settings with other random plans: a smaller graph has other plans.
std::optional<GraphSettings> some_plan_fails(const GraphCase& what, GraphSettings settings) {
  if (fails_with(what, settings)) return settings;
  if (settings.plan == 0) return std::nullopt;
  for (settings.plan = 1; settings.plan <= 16; ++settings.plan)
    if (fails_with(what, settings)) return settings;
  return std::nullopt;
}

void simplify(const GraphCase& what, GraphSettings& settings) {
  const auto attempt = [&](auto change) {
    GraphSettings simpler = settings;
    change(simpler);
    if (!(simpler == settings) && fails_with(what, simpler)) settings = simpler;
  };
  attempt([](GraphSettings& s) { s.plan = 0; });
  attempt([](GraphSettings& s) { s.execution = Execution::lowered; });
  attempt([](GraphSettings& s) { s.execution = Execution::passed; });
  attempt([](GraphSettings& s) { s.numerics = compiler::Numerics::strict; });
  attempt([](GraphSettings& s) { s.fusion = fusion::FusionMode::off; });
  attempt([](GraphSettings& s) { s.fusion = fusion::FusionMode::on; });
  attempt([](GraphSettings& s) { s.threads = 1; });
  attempt([](GraphSettings& s) { s.target = "x86-64-v3"; });
}

}  // namespace

GraphCase shrink(GraphCase what, FunctionRef<bool(const GraphCase&)> fails, const ShrinkOptions& options) {
  return Shrinker(std::move(what), fails, options).run();
}

GraphFailure shrink_failure(GraphCase what, GraphSettings settings, const ShrinkOptions& options) {
  simplify(what, settings);
  what = shrink(
      std::move(what),
      [&](const GraphCase& candidate) {
        const auto failing = some_plan_fails(candidate, settings);
        if (failing) settings = *failing;
        return failing.has_value();
      },
      options);
  simplify(what, settings);
  std::string words = run_graph(what, settings).words;
  return {std::move(what), settings, std::move(words)};
}

}  // namespace fusewise::test

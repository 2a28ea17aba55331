#include "session/reduce.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "graph/interpreter/interpreter.h"
#include "session/model.h"

namespace fusewise::session {
namespace {

using Nodes = std::vector<uint32_t>;

// Larger tensors stay inputs: as constants they would only make the file large.
constexpr size_t most_constant_bytes = 65536;

class Reducer {
 public:
  Reducer(const ModelParts& parts, const RecordedTensors& recorded, const StillFails& still_fails,
          const ReduceOptions& options)
      : parts_(parts), recorded_(recorded), still_fails_(still_fails), options_(options) {}

  std::optional<ModelPart> run() {
    Nodes all(parts_.size());
    std::iota(all.begin(), all.end(), 0);
    ModelPart whole{parts_.needed(all, parts_.outputs()), parts_.outputs(), {}};
    if (!fails(whole)) return std::nullopt;
    part_ = std::move(whole);
    keep_one_output();
    end_early();
    start_late();
    drop_nodes();
    keep_one_output();
    hold_inputs();
    return part_;
  }

  int64_t tried() const { return tried_; }
  bool complete() const { return complete_; }

 private:
  bool fails(const ModelPart& part) {
    if (part.nodes.empty() || part.outputs.empty()) return false;
    if (const auto known = known_.find(part); known != known_.end()) return known->second;
    if (tried_ >= options_.most_tries) {
      complete_ = false;
      return false;
    }
    ++tried_;
    if (options_.progress) options_.progress(tried_, part.nodes.size());
    bool result = false;
    try {
      std::vector<graph::Tensor> inputs;
      const OnnxBuilder model = parts_.build(part, recorded_);
      for (const std::string& name : parts_.inputs_of(part)) inputs.push_back(recorded_.at(name).value);
      result = still_fails_(model, inputs);
    } catch (const UnsupportedError&) {
      // A part that cannot be a model of its own.
    } catch (const UserError&) {
    }
    known_.emplace(part, result);
    return result;
  }

  bool take_if_fails(ModelPart part) {
    if (!fails(part)) return false;
    part_ = std::move(part);
    return true;
  }

  void keep_one_output() {
    if (part_.outputs.size() < 2) return;
    for (const std::string& output : std::vector<std::string>(part_.outputs))
      if (take_if_fails({parts_.needed(part_.nodes, {output}), {output}, part_.constants})) return;
  }

  // The first nodes only, as few as fail. What comes later only carries the fault on, so that a longer beginning
  // fails, too; where that is not so, this ends with more nodes than need be.
  void end_early() {
    const Nodes nodes = part_.nodes;
    const auto beginning = [&](size_t count) {
      Nodes first(nodes.begin(), nodes.begin() + static_cast<int64_t>(count));
      std::vector<std::string> ends = parts_.ends_of(first);
      return ModelPart{std::move(first), std::move(ends), {}};
    };
    size_t low = 0, high = nodes.size();  // `high` nodes fail, or are the whole
    while (high - low > 1) {
      const size_t middle = low + (high - low) / 2;
      (take_if_fails(beginning(middle)) ? high : low) = middle;
    }
    // What the last of them makes, when that alone shows it.
    const std::vector<std::string> last = parts_.made_by(nodes[high - 1]);
    take_if_fails({parts_.needed(part_.nodes, last), last, {}});
  }

  // The last nodes only, as few as fail.
  void start_late() {
    const Nodes nodes = part_.nodes;
    const std::vector<std::string> outputs = part_.outputs;
    size_t low = 0, high = nodes.size();  // without the first `low` nodes it fails
    while (high - low > 1) {
      const size_t middle = low + (high - low) / 2;
      const Nodes last(nodes.begin() + static_cast<int64_t>(middle), nodes.end());
      (take_if_fails({parts_.needed(last, outputs), outputs, {}}) ? low : high) = middle;
    }
  }

  // The part without nodes [first, first + count).
  ModelPart without(size_t first, size_t count) const {
    Nodes rest = part_.nodes;
    rest.erase(rest.begin() + static_cast<int64_t>(first),
               rest.begin() + static_cast<int64_t>(first + count));
    std::vector<std::string> outputs;
    for (const uint32_t node : rest)
      for (const std::string& name : parts_.made_by(node))
        if (std::find(part_.outputs.begin(), part_.outputs.end(), name) != part_.outputs.end())
          outputs.push_back(name);
    if (outputs.empty()) outputs = parts_.ends_of(rest);
    Nodes needed = parts_.needed(rest, outputs);
    return {std::move(needed), std::move(outputs), part_.constants};
  }

  // Delta debugging: ever smaller pieces are left out, until no single node can be.
  void drop_nodes() {
    for (size_t piece = part_.nodes.size() / 2; piece > 0;) {
      bool dropped = false;
      for (size_t first = 0; first < part_.nodes.size();) {
        const size_t count = std::min(piece, part_.nodes.size() - first);
        if (count < part_.nodes.size() && take_if_fails(without(first, count)))
          dropped = true;
        else
          first += count;
      }
      piece = dropped ? std::max<size_t>(1, std::min(piece, part_.nodes.size() / 2)) : piece / 2;
    }
  }

  void hold_inputs() {
    for (const std::string& name : parts_.inputs_of(part_)) {
      if (recorded_.at(name).value.bytes().size() > most_constant_bytes) continue;
      ModelPart part = part_;
      part.constants.insert(name);
      take_if_fails(std::move(part));
    }
  }

  const ModelParts& parts_;
  const RecordedTensors& recorded_;
  const StillFails& still_fails_;
  const ReduceOptions& options_;
  ModelPart part_;
  std::map<ModelPart, bool> known_;
  int64_t tried_ = 0;
  bool complete_ = true;
};

}  // namespace

RecordedTensors record_tensors(const std::string& path, std::span<const graph::Tensor> inputs, int threads) {
  const ModelParts parts(path);
  ModelOptions options;
  const std::vector<std::string> outputs = parts.outputs();
  for (const std::string& name : parts.made())
    if (std::find(outputs.begin(), outputs.end(), name) == outputs.end())
      options.extra_outputs.push_back(name);
  const Model model = Model::load(path, options);
  const graph::Graph& graph = model.graph();
  graph::InterpretOptions interpret;
  interpret.threads = threads;
  const std::vector<graph::Tensor> tensors = graph::interpret(graph, inputs, interpret);
  RecordedTensors recorded;
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    recorded[graph.inputs[i].name] = {inputs[i], graph.type({graph.inputs[i].node, 0}).shape};
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    recorded[graph.outputs[i].name] = {tensors[i], graph.type(graph.outputs[i].value).shape};
  return recorded;
}

std::optional<ReducedModel> reduce_model(const std::string& path, std::span<const graph::Tensor> inputs,
                                         const StillFails& still_fails, const ReduceOptions& options) {
  const ModelParts parts(path);
  const RecordedTensors recorded = record_tensors(path, inputs, options.threads);
  Reducer reducer(parts, recorded, still_fails, options);
  const std::optional<ModelPart> part = reducer.run();
  if (!part) return std::nullopt;
  ReducedModel reduced;
  reduced.model = parts.build(*part, recorded);
  reduced.input_names = parts.inputs_of(*part);
  for (const std::string& name : reduced.input_names) reduced.inputs.push_back(recorded.at(name).value);
  reduced.output_names = part->outputs;
  for (const OnnxNode& node : reduced.model.nodes)
    reduced.node_names.push_back(node.name.empty() ? node.outputs.at(0) : node.name);
  reduced.nodes_before = parts.size();
  reduced.tried = reducer.tried();
  reduced.complete = reducer.complete();
  return reduced;
}

}  // namespace fusewise::session

#include "session/reference.h"

#include <algorithm>

#include "base/error.h"
#include "graph/interpreter/interpreter.h"
#include "session/spread.h"

namespace fusewise::session {
namespace {

graph::BoundedOptions interpret_options(const char* what, const ReferenceOptions& options) {
  graph::BoundedOptions interpret;
  interpret.threads = options.threads;
  interpret.model = options.model;
  if (options.progress)
    interpret.progress = [what, progress = options.progress](graph::NodeId node, size_t nodes) {
      progress(what, node, nodes);
    };
  return interpret;
}

}  // namespace

Reference::Reference(const graph::Graph& graph, std::span<const graph::Tensor> inputs,
                     const ReferenceOptions& options) {
  for (const graph::GraphOutput& output : graph.outputs) names_.push_back(output.name);
  strict_ = graph::interpret(graph, inputs, interpret_options("interpret", options));
  if (!options.bounds) return;
  bounded_ = graph::interpret_bounded(graph, inputs, interpret_options("bound", options));
  decides_ = decides_on_rounded_numbers(graph);
}

std::vector<OutputVerdict> Reference::exact(std::span<const graph::Tensor> outputs) const {
  check(outputs.size() == names_.size(), "as many outputs as the model has");
  std::vector<OutputVerdict> verdicts;
  for (size_t i = 0; i < outputs.size(); ++i)
    verdicts.push_back(compare_exactly(names_[i], strict_[i], outputs[i]));
  return verdicts;
}

std::vector<OutputVerdict> Reference::rounded_otherwise(std::span<const graph::Tensor> outputs) const {
  check(outputs.size() == bounded_.size(), "as many outputs as the model has, with bounds");
  std::vector<OutputVerdict> verdicts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    verdicts.push_back(compare_bounded(names_[i], bounded_[i], strict_[i], outputs[i]));
    hold_to_spread(verdicts.back(), bounded_[i], strict_[i], outputs[i], decides_);
  }
  return verdicts;
}

std::vector<OutputVerdict> Reference::within(std::span<const graph::Tensor> outputs, double relative) const {
  check(outputs.size() == names_.size(), "as many outputs as the model has");
  std::vector<OutputVerdict> verdicts;
  for (size_t i = 0; i < outputs.size(); ++i)
    verdicts.push_back(compare_within(names_[i], strict_[i], outputs[i], relative));
  return verdicts;
}

bool all_passed(std::span<const OutputVerdict> verdicts) {
  return std::all_of(verdicts.begin(), verdicts.end(), [](const OutputVerdict& v) { return v.passed; });
}

}  // namespace fusewise::session

// Loops and branches, written once over the values of an interpreter. An Arithmetic has
//   Value                                         what it computes with
//   run(body, inputs) -> outputs                  a body
//   truth(value), count(value), number(integer)   of scalars
//   slice(value, i)                               element i of the first dimension, without it
//   stack(slices, type)                           the other way round, also for no slices
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/shape_rules.h"

namespace fusewise::graph {

template <class Arithmetic>
class LoopRun {
 public:
  using Value = typename Arithmetic::Value;
  LoopRun(const Node& node, const std::vector<Value>& operands, const SymbolValues& symbols,
          Arithmetic& arithmetic)
      : node_(node),
        loop_(attributes<LoopAttributes>(node)),
        places_(loop_places(loop_)),
        operands_(operands),
        arithmetic_(arithmetic) {
    if (loop_.trips) most_ = slices_ = loop_.trips->evaluate(symbols);
    if (loop_.counted) most_ = std::min(most_, arithmetic.count(operands[0]));
    state_.assign(operands.begin() + static_cast<std::ptrdiff_t>(places_.carried),
                  operands.begin() + static_cast<std::ptrdiff_t>(places_.scanned));
    stacks_.resize(loop_.stacked.size());
  }

  std::vector<Value> run() {
    bool goes_on = !loop_.conditional || arithmetic_.truth(operands_[loop_.counted ? 1 : 0]);
    for (int64_t i = 0; i < most_ && goes_on; ++i) goes_on = iterate(i);
    std::vector<Value> results = std::move(state_);
    for (size_t s = 0; s < stacks_.size(); ++s) {
      if (loop_.stacked[s] < 0) std::reverse(stacks_[s].begin(), stacks_[s].end());
      results.push_back(arithmetic_.stack(stacks_[s], node_.results[static_cast<size_t>(loop_.carried) + s]));
    }
    return results;
  }

 private:
  bool iterate(int64_t i) {
    std::vector<Value> inputs = {arithmetic_.number(i)};
    inputs.insert(inputs.end(), state_.begin(), state_.end());
    for (size_t s = 0; s < loop_.scanned.size(); ++s)
      inputs.push_back(
          arithmetic_.slice(operands_[places_.scanned + s], loop_.scanned[s] > 0 ? i : slices_ - 1 - i));
    inputs.insert(inputs.end(), operands_.begin() + static_cast<std::ptrdiff_t>(places_.captures),
                  operands_.end());
    std::vector<Value> outputs = arithmetic_.run(*node_.bodies[0], std::move(inputs));
    size_t next = 0;
    const bool goes_on = !loop_.conditional || arithmetic_.truth(outputs[next++]);
    for (Value& value : state_) value = std::move(outputs[next++]);
    for (std::vector<Value>& stack : stacks_) stack.push_back(std::move(outputs[next++]));
    return goes_on;
  }

  const Node& node_;
  const LoopAttributes& loop_;
  LoopPlaces places_;
  const std::vector<Value>& operands_;
  Arithmetic& arithmetic_;
  int64_t most_ = INT64_MAX, slices_ = 0;
  std::vector<Value> state_;
  std::vector<std::vector<Value>> stacks_;
};

template <class Arithmetic>
std::vector<typename Arithmetic::Value> run_control(const Node& node,
                                                    const std::vector<typename Arithmetic::Value>& operands,
                                                    const SymbolValues& symbols, Arithmetic& arithmetic) {
  if (node.op == Op::loop) return LoopRun(node, operands, symbols, arithmetic).run();
  check(node.op == Op::branch, "no loop and no branch");
  const Body& taken = node.bodies[arithmetic.truth(operands[0]) ? 0 : 1];
  return arithmetic.run(*taken, {operands.begin() + 1, operands.end()});
}

}  // namespace fusewise::graph

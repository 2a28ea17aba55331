// Builds the bodies of loops and branches, and the nodes that have them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/builder.h"

namespace fusewise::graph {

// One body under construction. Its own inputs first, in the order that the node's rule states (attributes.h); what it
// reads of the graph around it is captured.
class BodyBuilder {
 public:
  // `outer` must outlive it.
  BodyBuilder(GraphBuilder& outer, std::string name);
  BodyBuilder(const BodyBuilder&) = delete;
  BodyBuilder& operator=(const BodyBuilder&) = delete;

  GraphBuilder& builder() { return builder_; }
  Value input(std::string name, TensorType type) { return builder_.input(std::move(name), std::move(type)); }
  void output(Value value, std::string name) { builder_.output(value, std::move(name)); }
  // The value in the body that stands for one of the graph around it. A constant becomes a constant of the body.
  Value capture(Value outer);
  const std::vector<Value>& captures() const { return captures_; }

  // The body with these captures as its last inputs, those that it does not read included.
  Body finish(const std::vector<Value>& captures);

 private:
  GraphBuilder& outer_;
  Graph graph_;
  GraphBuilder builder_;
  std::map<Value, Value> inside_;  // by the value of the graph around it
  std::vector<Value> captures_;
};

// The node of a finished body, and its results. `operands` come before the captures, which are added.
std::vector<Value> append_loop(GraphBuilder& outer, LoopAttributes attributes, std::vector<Value> operands,
                               BodyBuilder& body);
std::vector<Value> append_branch(GraphBuilder& outer, Value condition, BodyBuilder& then_body,
                                 BodyBuilder& else_body);

}  // namespace fusewise::graph

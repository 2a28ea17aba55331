#include "graph/body_builder.h"

#include <algorithm>

#include "base/error.h"

namespace fusewise::graph {

BodyBuilder::BodyBuilder(GraphBuilder& outer, std::string name) : outer_(outer), builder_(graph_) {
  graph_.name = std::move(name);
}

Value BodyBuilder::capture(Value outer) {
  const auto known = inside_.find(outer);
  if (known != inside_.end()) return known->second;
  Value inside;
  if (const ConstantData* data = constant_of(outer_.graph(), outer)) {
    inside = builder_.constant(data->type, data->bytes, data->owner, data->name);
  } else {
    // Listed as an input at the end only.
    inside = builder_.append(Op::input, {}, InputAttributes{}, outer_.type(outer));
    captures_.push_back(outer);
  }
  inside_.emplace(outer, inside);
  return inside;
}

Body BodyBuilder::finish(const std::vector<Value>& captures) {
  for (const Value& own : captures_)
    check(std::ranges::find(captures, own) != captures.end(), "a body reads what its node does not capture");
  for (const Value& outer : captures) {
    auto known = inside_.find(outer);
    if (known == inside_.end() || graph_.node(known->second.node).op != Op::input)
      known =
          inside_
              .insert_or_assign(outer, builder_.append(Op::input, {}, InputAttributes{}, outer_.type(outer)))
              .first;
    graph_.inputs.push_back({known->second.node, "captured " + std::to_string(outer.node)});
  }
  return std::make_shared<const Graph>(std::move(graph_));
}

std::vector<Value> append_loop(GraphBuilder& outer, LoopAttributes attributes, std::vector<Value> operands,
                               BodyBuilder& body) {
  const std::vector<Value> captures = body.captures();
  operands.insert(operands.end(), captures.begin(), captures.end());
  return outer.control(Op::loop, std::move(operands), std::move(attributes), {body.finish(captures)});
}

std::vector<Value> append_branch(GraphBuilder& outer, Value condition, BodyBuilder& then_body,
                                 BodyBuilder& else_body) {
  std::vector<Value> captures = then_body.captures();
  for (const Value& value : else_body.captures())
    if (std::ranges::find(captures, value) == captures.end()) captures.push_back(value);
  std::vector<Value> operands = {condition};
  operands.insert(operands.end(), captures.begin(), captures.end());
  return outer.control(Op::branch, std::move(operands), BranchAttributes{},
                       {then_body.finish(captures), else_body.finish(captures)});
}

}  // namespace fusewise::graph

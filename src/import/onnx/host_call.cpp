#include "import/onnx/host_call.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "graph/interpreter/interpreter.h"
#include "import/onnx/importer.h"

namespace fusewise::onnx {

using graph::Value;

namespace {

graph::HostAttributes attributes_of(Call& c, const HostRequest& request) {
  graph::HostAttributes attributes{request.function, request.parameters, {}};
  std::string hint = std::string(c.node().outputs.empty() ? "" : c.node().outputs[0]);
  if (hint.empty()) hint = c.node().op_type;
  for (int i = 0; i < request.symbols; ++i)
    attributes.symbols.push_back(c.importer().sizes().fresh_symbol(hint + "_count"));
  return attributes;
}

// The results when all that goes in is constant and small.
std::optional<std::vector<Value>> folded(Call& c, const HostRequest& request,
                                         const graph::HostAttributes& attributes) {
  if (!std::ranges::all_of(request.parameters, [](const Dim& d) { return d.is_constant(); }))
    return std::nullopt;
  graph::Graph graph;
  graph::GraphBuilder builder(graph);
  std::vector<Value> operands;
  for (const Value operand : request.operands) {
    const auto data = c.importer().folder().fold(operand);
    if (!data) return std::nullopt;
    operands.push_back(builder.constant(data->type, data->bytes, data->owner));
  }
  for (const Value result : builder.host(operands, attributes)) builder.output(result, "");
  std::vector<Value> results;
  for (graph::Tensor& tensor : graph::interpret(graph, {})) {
    const graph::TensorType type{tensor.element, {tensor.shape.begin(), tensor.shape.end()}};
    const auto owner = std::make_shared<const graph::Tensor>(std::move(tensor));
    results.push_back(c.builder().constant(type, owner->bytes(), owner));
  }
  return results;
}

}  // namespace

std::vector<Value> host_call(Call& c, const HostRequest& request) {
  const graph::HostAttributes attributes = attributes_of(c, request);
  if (auto constants = folded(c, request, attributes)) return *constants;
  return c.builder().host(request.operands, attributes);
}

}  // namespace fusewise::onnx

#include "session/static_shapes.h"

namespace fusewise::session {
namespace {

// Replaces dimensions wherever attributes hold some.
class Substitution {
 public:
  explicit Substitution(const SymbolValues& values) {
    for (const auto& [name, value] : values) replacements_.emplace(name, Dim(value));
  }

  void apply(Shape& shape) const {
    for (Dim& extent : shape) extent = extent.substitute(replacements_);
  }
  void operator()(graph::BroadcastAttributes& attributes) const { apply(attributes.shape); }
  void operator()(graph::DimsAttributes& attributes) const { apply(attributes.dims); }
  void operator()(graph::PadAttributes& attributes) const {
    apply(attributes.low);
    apply(attributes.high);
  }
  void operator()(graph::ReshapeAttributes& attributes) const { apply(attributes.shape); }
  void operator()(graph::SliceAttributes& attributes) const {
    apply(attributes.starts);
    apply(attributes.shape);
  }
  // Those without dimensions, by name, so that a new one is not forgotten here.
  void operator()(graph::ConcatAttributes&) const {}
  void operator()(graph::ConstantAttributes&) const {}
  void operator()(graph::ConvolutionAttributes&) const {}
  void operator()(graph::DotAttributes&) const {}
  void operator()(graph::GatherAttributes&) const {}
  void operator()(graph::InputAttributes&) const {}
  void operator()(graph::IotaAttributes&) const {}
  void operator()(graph::MapAttributes&) const {}
  void operator()(graph::ReduceAttributes&) const {}
  void operator()(graph::TransposeAttributes&) const {}
  void operator()(graph::WindowReduceAttributes&) const {}

 private:
  std::map<std::string, Dim> replacements_;
};

}  // namespace

graph::Graph with_static_shapes(const graph::Graph& graph, const SymbolValues& values) {
  const Substitution substitution(values);
  graph::Graph result;
  result.name = graph.name;
  result.model_nodes = graph.model_nodes;
  result.constants = graph.constants;
  result.inputs = graph.inputs;
  result.outputs = graph.outputs;
  for (graph::NodeId id = 0; id < graph.size(); ++id) {
    graph::Node node = graph.node(id);
    std::visit(substitution, node.attributes);
    for (graph::TensorType& type : node.results) substitution.apply(type.shape);
    result.append(std::move(node));
  }
  return result;
}

}  // namespace fusewise::session

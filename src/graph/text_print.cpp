#include <fmt/core.h>

#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include "graph/text.h"
#include "graph/text_internal.h"

namespace fusewise::graph {

namespace {

using text_internal::quote;

constexpr std::array<std::string_view, 4> combine_names = {"sum", "product", "max", "min"};
constexpr std::array<std::string_view, 5> update_names = {"replace", "sum", "product", "max", "min"};

std::string to_text(int64_t value) { return std::to_string(value); }
std::string to_text(int value) { return std::to_string(value); }
std::string to_text(uint32_t value) { return std::to_string(value); }
std::string to_text(bool value) { return value ? "1" : "0"; }
std::string to_text(const Dim& value) { return value.to_string(); }
std::string to_text(const std::optional<Dim>& value) { return value ? "[" + value->to_string() + "]" : "[]"; }
std::string to_text(const std::string& symbol) { return Dim::symbol(symbol).to_string(); }
std::string to_text(hostops::Function function) { return std::string(hostops::name_of(function)); }
std::string to_text(ScalarOp op) { return std::string(name_of(op)); }
std::string to_text(Update update) { return std::string(name_of(update)); }
std::string to_text(Combine combine) { return std::string(name_of(combine)); }
std::string to_text(Value value) {
  return fmt::format(fmt::runtime(value.result == 0 ? "%{}" : "%{}.{}"), value.node, value.result);
}
template <class T>
std::string to_text(const std::vector<T>& values) {
  std::string out = "[";
  for (const T& value : values) {
    if (out.size() > 1) out += ", ";
    out += to_text(value);
  }
  return out + "]";
}

// Of each input node its place among the inputs.
using InputPlaces = std::unordered_map<NodeId, size_t>;

InputPlaces input_places(const Graph& graph) {
  InputPlaces places;
  for (size_t i = 0; i < graph.inputs.size(); ++i) places.emplace(graph.inputs[i].node, i);
  return places;
}

std::string print_attributes(const Graph& graph, NodeId id, const InputPlaces& inputs) {
  const Node& node = graph.node(id);
  std::string out;
  if (node.op == Op::input) {
    const auto place = inputs.find(id);
    if (place == inputs.end()) return out;
    return fmt::format(" index={} name={}", place->second, quote(graph.inputs[place->second].name));
  }
  std::visit(
      [&](const auto& a) {
        text_internal::visit_fields(
            [&](std::string_view name, const auto& value) {
              out += fmt::format(" {}={}", name, to_text(value));
            },
            a);
      },
      node.attributes);
  return out;
}

std::string print_node(const Graph& graph, NodeId id, const InputPlaces& inputs) {
  const Node& node = graph.node(id);
  std::string out = fmt::format("%{} = {}", id, name_of(node.op));
  for (size_t i = 0; i < node.operands.size(); ++i) out += (i == 0 ? " " : ", ") + to_text(node.operands[i]);
  out += print_attributes(graph, id, inputs) + " :";
  for (size_t i = 0; i < node.results.size(); ++i) out += (i == 0 ? " " : ", ") + to_string(node.results[i]);
  if (!node.sources.empty()) out += " from " + to_text(node.sources);
  return out;
}

}  // namespace

std::string_view name_of(Combine combine) { return combine_names.at(static_cast<size_t>(combine)); }

std::optional<Combine> combine_of(std::string_view name) {
  for (size_t i = 0; i < combine_names.size(); ++i)
    if (combine_names[i] == name) return static_cast<Combine>(i);
  return std::nullopt;
}

std::string_view name_of(Update update) { return update_names.at(static_cast<size_t>(update)); }

std::optional<Update> update_of(std::string_view name) {
  for (size_t i = 0; i < update_names.size(); ++i)
    if (update_names[i] == name) return static_cast<Update>(i);
  return std::nullopt;
}

std::string print_node(const Graph& graph, NodeId id) { return print_node(graph, id, input_places(graph)); }

namespace {

void print_items(const Graph& graph, const PrintOptions& options, const std::string& indent,
                 std::string& out) {
  for (size_t i = 0; i < graph.model_nodes.size(); ++i) {
    const ModelNode& model = graph.model_nodes[i];
    out += fmt::format("{}model {} {} {} {}\n", indent, i, quote(model.name), quote(model.op_type),
                       quote(model.first_output));
  }
  for (size_t i = 0; i < graph.constants.size(); ++i) {
    const ConstantData& data = graph.constants[i];
    out += fmt::format("{}constant {} {} : {} =", indent, i, quote(data.name), to_string(data.type));
    // Measured in bytes where elements have no size.
    const int bits = std::max(bits_of(data.type.element), 1);
    if (static_cast<int64_t>(data.bytes.size()) * 8 / bits <= options.inline_elements)
      out += text_internal::print_elements(data);
    else
      out += " hash:" + hash_bytes(data.bytes).to_hex();
    out += '\n';
  }
  const InputPlaces inputs = input_places(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    out += indent + print_node(graph, id, inputs) + '\n';
    for (const Body& body : graph.node(id).bodies) {
      out += fmt::format("{}body {} {{\n", indent, quote(body->name));
      print_items(*body, options, indent + "  ", out);
      out += indent + "}\n";
    }
  }
  for (const GraphOutput& output : graph.outputs)
    out += fmt::format("{}output {} {}\n", indent, to_text(output.value), quote(output.name));
}

}  // namespace

std::string print(const Graph& graph, const PrintOptions& options) {
  std::string out = fmt::format("graph {}\n", quote(graph.name));
  print_items(graph, options, "", out);
  return out;
}

}  // namespace fusewise::graph

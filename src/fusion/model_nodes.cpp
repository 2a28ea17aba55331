#include "fusion/model_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <set>

#include "base/error.h"

namespace fusewise::fusion {

bool matches_pattern(std::string_view text, std::string_view pattern) {
  size_t t = 0, p = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]) && pattern[p] != '*') {
      ++t;
      ++p;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string model_node_name(const graph::Graph& graph, uint32_t model_node) {
  const graph::ModelNode& node = graph.model_nodes[model_node];
  if (!node.name.empty()) return node.name;
  if (!node.first_output.empty()) return node.first_output;
  return fmt::format("#{}", model_node);
}

namespace {

std::optional<uint32_t> number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "#57" and "Conv#12".
std::optional<uint32_t> by_number(const graph::Graph& graph, std::string_view text) {
  const size_t hash = text.rfind('#');
  if (hash == std::string_view::npos) return std::nullopt;
  auto count = number(text.substr(hash + 1));
  if (!count) return std::nullopt;
  const std::string_view type = text.substr(0, hash);
  for (uint32_t i = 0; i < graph.model_nodes.size(); ++i) {
    if (!type.empty() && graph.model_nodes[i].op_type != type) continue;
    if ((*count)-- == 0) return i;
  }
  return std::nullopt;
}

template <class F>
std::vector<uint32_t> all_with(const graph::Graph& graph, F&& fits) {
  std::vector<uint32_t> result;
  for (uint32_t i = 0; i < graph.model_nodes.size(); ++i)
    if (fits(graph.model_nodes[i])) result.push_back(i);
  return result;
}

}  // namespace

std::vector<uint32_t> resolve_model_nodes(const graph::Graph& graph, std::string_view text) {
  for (auto member : {&graph::ModelNode::name, &graph::ModelNode::first_output}) {
    const std::vector<uint32_t> exact =
        all_with(graph, [&](const graph::ModelNode& n) { return n.*member == text && !text.empty(); });
    if (exact.size() == 1) return exact;
    if (exact.size() < 2) continue;
    std::string candidates;
    for (uint32_t i : exact)
      candidates +=
          fmt::format("\n  #{} {} '{}'", i, graph.model_nodes[i].op_type, graph.model_nodes[i].first_output);
    throw UserError(fmt::format("'{}' names {} nodes; give one of these by its number or tensor:{}", text,
                                exact.size(), candidates));
  }
  if (const auto numbered = by_number(graph, text)) return {*numbered};
  if (text.find_first_of("*?") != std::string_view::npos) {
    const std::vector<uint32_t> matching = all_with(graph, [&](const graph::ModelNode& n) {
      return matches_pattern(n.name, text) || (n.name.empty() && matches_pattern(n.first_output, text));
    });
    if (!matching.empty()) return matching;
  }
  throw UserError(
      fmt::format("the model has no node '{}'; a node is its name, an output tensor's name, an operator with "
                  "its number such as Conv#12, or #57",
                  text));
}

std::vector<uint32_t> model_nodes_of(const graph::Graph& graph, const graph::Region& region) {
  std::set<graph::NodeId> constant;
  std::set<uint32_t> varying, all;
  for (graph::NodeId node : region.nodes) {
    const graph::Node& n = graph.node(node);
    const bool from_constants = std::all_of(n.operands.begin(), n.operands.end(), [&](graph::Value v) {
      return graph.node(v.node).op == graph::Op::constant || constant.contains(v.node);
    });
    if (from_constants) constant.insert(node);
    if (n.sources.empty()) continue;
    all.insert(n.sources[0]);
    if (!from_constants) varying.insert(n.sources[0]);
  }
  const std::set<uint32_t>& chosen = varying.empty() ? all : varying;
  return {chosen.begin(), chosen.end()};
}

}  // namespace fusewise::fusion

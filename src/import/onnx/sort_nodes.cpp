#include "import/onnx/sort_nodes.h"

#include <fmt/core.h>

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "import/onnx/importer.h"

namespace fusewise::onnx {

namespace {

using Producers = std::unordered_map<std::string_view, uint32_t>;

Producers producers_of(const std::vector<Node>& nodes, const Scope& scope) {
  Producers producers;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    for (std::string_view output : nodes[i].outputs) {
      if (output.empty()) continue;
      if (!producers.emplace(output, i).second || scope.items.contains(output)) {
        throw UserError(fmt::format("the tensor '{}' is made twice, the second time by node '{}'", output,
                                    display_name(nodes[i])),
                        {.node = display_name(nodes[i])});
      }
    }
  }
  return producers;
}

using Names = std::unordered_set<std::string_view>;

// What a nested graph reads of the graphs around it; it may give the same names to tensors of its own. The reader limits
// how deep they are nested.
void add_free_names(const Graph& g, std::vector<std::string_view>& names) {
  Names own;
  for (const ValueInfo& input : g.inputs) own.insert(input.name);
  for (const Tensor& tensor : g.initializers) own.insert(tensor.name);
  for (const Node& n : g.nodes) own.insert(n.outputs.begin(), n.outputs.end());
  std::vector<std::string_view> read;
  for (const Node& n : g.nodes) {
    read.insert(read.end(), n.inputs.begin(), n.inputs.end());
    for (const Attribute& a : n.attributes)
      for (const auto& nested : a.graphs) add_free_names(*nested, read);
  }
  for (const ValueInfo& output : g.outputs) read.push_back(output.name);
  for (std::string_view name : read)
    if (!own.contains(name)) names.push_back(name);
}

// The names that a node reads, those that its nested graphs read from outside included.
std::vector<std::string_view> names_read(const Node& node) {
  std::vector<std::string_view> names(node.inputs);
  for (const Attribute& a : node.attributes)
    for (const auto& g : a.graphs) add_free_names(*g, names);
  return names;
}

// The nodes each node waits for; names inside nested graphs that are not made out here are their own affair.
std::vector<std::vector<uint32_t>> dependencies(const std::vector<Node>& nodes, const Producers& producers,
                                                const Scope& scope) {
  std::vector<std::vector<uint32_t>> result(nodes.size());
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    for (std::string_view name : nodes[i].inputs) {
      if (!name.empty() && !producers.contains(name) && !scope.find(name)) {
        throw UserError(
            fmt::format("node '{}' reads the tensor '{}', which nothing makes", display_name(nodes[i]), name),
            {.node = display_name(nodes[i])});
      }
    }
    for (std::string_view name : names_read(nodes[i])) {
      const auto producer = producers.find(name);
      if (producer != producers.end()) result[i].push_back(producer->second);
    }
    std::ranges::sort(result[i]);
    result[i].erase(std::unique(result[i].begin(), result[i].end()), result[i].end());
  }
  return result;
}

std::vector<bool> needed_nodes(const std::vector<std::vector<uint32_t>>& waits_for,
                               const Producers& producers, const std::vector<std::string_view>& results) {
  std::vector<bool> needed(waits_for.size());
  std::vector<uint32_t> pending;
  const auto need = [&](uint32_t i) {
    if (!needed[i]) pending.push_back(i);
    needed[i] = true;
  };
  for (std::string_view name : results)
    if (const auto producer = producers.find(name); producer != producers.end()) need(producer->second);
  while (!pending.empty()) {
    const uint32_t i = pending.back();
    pending.pop_back();
    for (uint32_t j : waits_for[i]) need(j);
  }
  return needed;
}

[[noreturn]] void throw_cycle(const std::vector<Node>& nodes,
                              const std::vector<std::vector<uint32_t>>& waits_for,
                              const std::vector<int>& open) {
  // Every node still open waits for another one that is, so walking along must come round.
  uint32_t at = static_cast<uint32_t>(std::ranges::find_if(open, [](int n) { return n > 0; }) - open.begin());
  std::vector<uint32_t> walk;
  std::vector<bool> seen(nodes.size());
  while (!seen[at]) {
    seen[at] = true;
    walk.push_back(at);
    at = *std::ranges::find_if(waits_for[at], [&](uint32_t j) { return open[j] > 0; });
  }
  std::string names;
  int count = 0;
  for (auto it = std::ranges::find(walk, at); it != walk.end() && count < 8; ++it, ++count) {
    const auto& outputs = nodes[*it].outputs;
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ",
                         outputs.empty() ? display_name(nodes[*it]) : outputs[0]);
  }
  throw UserError(fmt::format("the nodes form a cycle through the tensors {}", names),
                  {.node = display_name(nodes[at])});
}

}  // namespace

std::vector<uint32_t> sorted_nodes(const std::vector<Node>& nodes, const Scope& scope,
                                   const std::vector<std::string_view>& results) {
  const Producers producers = producers_of(nodes, scope);
  const auto waits_for = dependencies(nodes, producers, scope);
  const std::vector<bool> needed = needed_nodes(waits_for, producers, results);
  std::vector<int> open(nodes.size());  // how many nodes it still waits for
  std::vector<std::vector<uint32_t>> waiting(nodes.size());
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  size_t total = 0;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    if (!needed[i]) continue;
    ++total;
    open[i] = static_cast<int>(waits_for[i].size());
    for (uint32_t j : waits_for[i]) waiting[j].push_back(i);
    if (open[i] == 0) ready.push(i);
  }
  std::vector<uint32_t> order;
  while (!ready.empty()) {
    const uint32_t i = ready.top();
    ready.pop();
    order.push_back(i);
    for (uint32_t j : waiting[i])
      if (--open[j] == 0) ready.push(j);
  }
  if (order.size() != total) throw_cycle(nodes, waits_for, open);
  return order;
}

}  // namespace fusewise::onnx

#include "compiler/find_appends.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "base/error.h"

namespace fusewise::compiler {

namespace {

using fusion::Append;
using graph::Value;

// What * stands for; nothing where the name does not match. Without * the name must be the pattern.
std::optional<std::string> star_text(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name ? std::optional<std::string>("") : std::nullopt;
  const std::string_view before = pattern.substr(0, star), behind = pattern.substr(star + 1);
  if (name.size() < before.size() + behind.size() || !name.starts_with(before) || !name.ends_with(behind))
    return std::nullopt;
  return std::string(name.substr(before.size(), name.size() - before.size() - behind.size()));
}

std::string filled(std::string pattern, const std::string& text) {
  if (const size_t star = pattern.find('*'); star != std::string::npos) pattern.replace(star, 1, text);
  return pattern;
}

class Finder {
 public:
  explicit Finder(const graph::Graph& graph)
      : graph_(graph), sized_in_run_(fusion::sized_in_run(graph)), in_one_piece_(graph.size(), false) {
    for (graph::NodeId n = 0; n < graph.size(); ++n)
      if (graph::stands_alone(graph, n))
        for (Value v : graph.node(n).operands) in_one_piece_[v.node] = true;
  }

  std::vector<Append> find(const std::vector<std::string>& wishes) {
    for (const std::string& wish : wishes) {
      if (wish == "auto")
        find_all();
      else
        find_named(wish);
    }
    return std::move(found_);
  }

 private:
  const graph::Graph& graph_;
  const std::vector<bool> sized_in_run_;
  std::vector<bool> in_one_piece_;  // by node: read by one that stands alone
  std::vector<Append> found_;
  std::set<Value> wholes_, pasts_;

  const graph::GraphInput* first_part(Value whole) const {
    const graph::Node& node = graph_.node(whole.node);
    if (node.op != graph::Op::concat || node.operands.size() < 2) return nullptr;
    const auto input =
        std::find_if(graph_.inputs.begin(), graph_.inputs.end(),
                     [&](const graph::GraphInput& i) { return i.node == node.operands[0].node; });
    return input == graph_.inputs.end() ? nullptr : &*input;
  }

  // Why it cannot grow in place; empty where it can.
  std::string obstacle(Value whole, Value past) const {
    if (!fusion::can_be_in_place(graph_, sized_in_run_, whole.node)) return "only the run knows a size of it";
    if (in_one_piece_[whole.node] || in_one_piece_[past.node])
      return "a selection, sort, running sum or scatter reads it, and needs it in one piece";
    return {};
  }

  void add(Value whole, Value past) {
    if (!wholes_.insert(whole).second || !pasts_.insert(past).second) return;
    Append append;
    append.whole = whole;
    append.past = past;
    append.axis = graph::attributes<graph::ConcatAttributes>(graph_.node(whole.node)).axis;
    append.whole_capacity = fmt::format("capacity.out.{}", found_.size());
    append.past_capacity = fmt::format("capacity.in.{}", found_.size());
    found_.push_back(std::move(append));
  }

  void find_all() {
    const size_t before = found_.size();
    for (const graph::GraphOutput& output : graph_.outputs)
      if (const graph::GraphInput* input = first_part(output.value))
        if (const Value past{input->node, 0}; obstacle(output.value, past).empty()) add(output.value, past);
    if (found_.size() == before)
      throw UserError("--in-place auto: no output is an input with something behind it",
                      {.hint = "leave --in-place out"});
  }

  void find_named(const std::string& wish) {
    const size_t equal = wish.find('=');
    if (equal == std::string::npos)
      throw UserError(fmt::format("--in-place '{}' is neither auto nor OUTPUT=INPUT", wish));
    const std::string outputs = wish.substr(0, equal), inputs = wish.substr(equal + 1);
    bool any = false;
    for (const graph::GraphOutput& output : graph_.outputs) {
      const std::optional<std::string> text = star_text(outputs, output.name);
      if (!text) continue;
      any = true;
      const std::string wanted = filled(inputs, *text);
      const graph::GraphInput* input = first_part(output.value);
      if (!input || input->name != wanted)
        throw UserError(fmt::format("output '{}' cannot grow in the memory of input '{}': it is {}",
                                    output.name, wanted,
                                    input ? fmt::format("input '{}' with something behind it", input->name)
                                          : std::string("no concatenation that begins with an input")));
      if (const std::string why = obstacle(output.value, {input->node, 0}); !why.empty())
        throw UnsupportedError(
            fmt::format("not supported yet: output '{}' growing in the memory of input '{}': {}", output.name,
                        wanted, why));
      add(output.value, {input->node, 0});
    }
    if (!any) throw UserError(fmt::format("--in-place '{}': no output is named so", wish));
  }
};

}  // namespace

std::vector<Append> find_appends(const graph::Graph& graph, const std::vector<std::string>& wishes) {
  return Finder(graph).find(wishes);
}

}  // namespace fusewise::compiler

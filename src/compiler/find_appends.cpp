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
  explicit Finder(const graph::Graph& graph) : graph_(graph) {}

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
      if (const graph::GraphInput* input = first_part(output.value)) add(output.value, {input->node, 0});
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

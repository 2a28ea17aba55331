#include "fusion/plan_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "fusion/layouts.h"
#include "fusion/model_nodes.h"
#include "fusion/node_keys.h"
#include "fusion/schedule_json.h"
#include "schedule/memory_index.h"

namespace fusewise::fusion {

using Json = nlohmann::ordered_json;
using graph::Value;

namespace {

constexpr const char* schema = "fusewise.plan/1";
constexpr const char* mode_names[] = {"on", "operators", "off"};

Json plan_to_json(const graph::Graph& graph, const FusionPlan& plan);

std::string layout_text(const FusionPlan& plan, Value value, int rank) {
  const auto it = plan.layouts.find(value);
  return (it == plan.layouts.end() ? schedule::row_major(rank) : it->second).to_string();
}

Json group_to_json(const graph::Graph& graph, const NodeKeys& keys, const FusionPlan& plan,
                   const PlannedRegion& planned) {
  Json group;
  group["pin"] = planned.pinned;
  group["once"] = planned.once;
  if (planned.assembled) group["assembled"] = true;
  group["nodes"] = Json::array();
  for (graph::NodeId node : planned.region.nodes) group["nodes"].push_back(keys.key_of(node));
  group["outputs"] = Json::array();
  for (Value v : planned.region.outputs) {
    const auto& nodes = planned.region.nodes;
    const int64_t member = std::lower_bound(nodes.begin(), nodes.end(), v.node) - nodes.begin();
    group["outputs"].push_back({{"node", member},
                                {"type", graph::to_string(graph.type(v))},
                                {"layout", layout_text(plan, v, graph.type(v).rank())}});
  }
  group["predicted_us"] = planned.predicted_microseconds;
  if (planned.measured_microseconds > 0) group["measured_us"] = planned.measured_microseconds;
  if (!planned.assembled && !graph::stands_alone(graph, planned.region.nodes[0]))
    group["schedule"] = schedule_to_json(planned.schedule, planned.region.nodes);
  if (planned.bodies.empty()) return group;
  const graph::Node& node = graph.node(planned.region.nodes.front());
  group["bodies"] = Json::array();
  for (size_t b = 0; b < node.bodies.size(); ++b)
    group["bodies"].push_back(plan_to_json(*node.bodies[b], planned.bodies[b]));
  return group;
}

// Takes a plan's members one by one: `member` a whole one, `list` the name of an array, `item` its next element.
class JsonTree {
 public:
  Json json;
  void member(const char* name, Json value) { json[name] = std::move(value); }
  void list(const char* name) { items_ = &(json[name] = Json::array()); }
  void item(Json value) { items_->push_back(std::move(value)); }

 private:
  Json* items_ = nullptr;
};

// The same as text, of which only one element at a time is a tree.
class JsonText {
 public:
  void member(const char* name, const Json& value) {
    key(name);
    append(value, 1);
  }
  void list(const char* name) {
    key(name);
    text_ += '[';
    in_list_ = true;
  }
  void item(const Json& value) {
    text_ += has_items_ ? ",\n  " : "\n  ";
    has_items_ = true;
    append(value, 2);
  }
  std::string finish() && {
    end_list();
    return std::move(text_ += "\n}\n");
  }

 private:
  std::string text_ = "{";
  bool in_list_ = false, has_items_ = false;

  void key(const char* name) {
    end_list();
    text_ += text_.size() > 1 ? ",\n \"" : "\n \"";
    text_ += name;
    text_ += "\": ";
  }
  void end_list() {
    if (in_list_) text_ += has_items_ ? "\n ]" : "]";
    in_list_ = has_items_ = false;
  }
  // As Json::dump(1) has it, at a depth.
  void append(const Json& value, size_t depth) {
    if (value.is_object()) {
      append_entries('{', value.size(), '}', depth, [&](const auto& entry) {
        for (const auto& [name, member] : value.get_ref<const Json::object_t&>()) {
          entry();
          append_string(name);
          text_ += ": ";
          append(member, depth + 1);
        }
      });
    } else if (value.is_array()) {
      append_entries('[', value.size(), ']', depth, [&](const auto& entry) {
        for (const Json& member : value) {
          entry();
          append(member, depth + 1);
        }
      });
    } else if (value.is_string()) {
      append_string(value.get_ref<const std::string&>());
    } else if (value.is_number_integer()) {
      fmt::format_to(std::back_inserter(text_), "{}", value.get<int64_t>());
    } else {
      text_ += value.dump();
    }
  }
  template <class Entries>
  void append_entries(char open, size_t count, char close, size_t depth, const Entries& entries) {
    text_ += open;
    bool first = true;
    entries([&] {
      text_ += first ? "\n" : ",\n";
      text_.append(depth + 1, ' ');
      first = false;
    });
    if (count) text_.append("\n").append(depth, ' ');
    text_ += close;
  }
  void append_string(const std::string& string) {
    const bool plain =
        std::ranges::all_of(string, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
    if (plain)
      text_.append("\"").append(string).append("\"");
    else
      text_ += Json(string).dump();
  }
};

template <class Members>
void write_plan(const graph::Graph& graph, const FusionPlan& plan, Members& members) {
  const NodeKeys keys(graph);
  members.member("schema", schema);
  members.member("model", graph.name);
  members.member("mode", mode_names[static_cast<size_t>(plan.mode)]);
  members.member("machine", plan.machine);
  members.member("replay", true);
  members.member("search", plan.search);
  members.member("search_complete", plan.search_complete);
  members.member("candidates", plan.candidates);
  members.member("predicted_ms", plan.predicted_microseconds / 1e3);
  members.member("lower_bound_ms", plan.lower_bound_microseconds / 1e3);
  if (plan.mode == FusionMode::operators) members.member("operators_split", plan.operators_split);
  members.member("notes", plan.notes);
  members.list("groups");
  for (const PlannedRegion& planned : plan.regions) members.item(group_to_json(graph, keys, plan, planned));
  members.list("layouts");
  for (const auto& [value, layout] : plan.layouts)
    if (!layout.is_row_major())
      members.item({{"value", keys.key_of(value.node)}, {"layout", layout.to_string()}});
  // Where values lie that share the memory of others: nobody has to state it, it follows from the groups that are
  // assembled.
  members.list("places");
  const auto place_to_json = [&](Json row, const Value& value, const Place& place) {
    row["in"] = keys.key_of(place.host.node);
    if (!schedule::is_strided(place.memory)) return row;  // parts lie there, not the value as a whole
    row["offset"] = place.memory.linear.constant.to_string();
    row["strides"] = Json::array();
    for (const Dim& d : schedule::strides_of(place.memory, graph.type(value).shape.size()))
      row["strides"].push_back(d.to_string());
    return row;
  };
  for (const auto& [value, place] : plan.assemblies.places)
    members.item(place_to_json({{"value", keys.key_of(value.node)}}, value, place));
  for (const PartCopy& copy : plan.assemblies.copies) {
    Json row = {{"value", keys.key_of(copy.part.node)}, {"copied_to", keys.key_of(copy.whole)}};
    row["reason"] = copy.reason;
    row["detail"] = copy.detail;
    members.item(place_to_json(std::move(row), copy.part, copy.to));
  }
  // Both prices of what moves elements.
  members.list("moves");
  for (const auto& [node, price] : plan.assemblies.prices)
    members.item({{"node", keys.key_of(node)},
                  {"in_place", plan.assemblies.in_place(node)},
                  {"us_in_place", price.in_place},
                  {"us_apart", price.apart}});
  members.list("cuts");
  for (const CutEdge& cut : plan.cuts) {
    Json row = {{"from", keys.key_of(cut.from)},
                {"to", keys.key_of(cut.to)},
                {"reason", cut.reason},
                {"detail", cut.detail},
                {"ms_now", cut.now_microseconds / 1e3}};
    row["ms_if_fused"] = cut.fused_microseconds > 0 ? Json(cut.fused_microseconds / 1e3) : Json(nullptr);
    members.item(std::move(row));
  }
}

Json plan_to_json(const graph::Graph& graph, const FusionPlan& plan) {
  JsonTree tree;
  write_plan(graph, plan, tree);
  return std::move(tree.json);
}

}  // namespace

std::string to_json_text(const graph::Graph& graph, const FusionPlan& plan) {
  JsonText text;
  write_plan(graph, plan, text);
  return std::move(text).finish();
}

namespace {

class PlanReader {
 public:
  PlanReader(const graph::Graph& graph, const machine::Machine& machine)
      : graph_(graph), machine_(machine), keys_(graph), constant_(constant_only(graph)) {}

  PlanConstraints read(std::string_view text) { return read(Json::parse(text, nullptr, false)); }

  PlanConstraints read(const Json& json) {
    if (json.is_discarded() || !json.is_object()) throw UserError("the plan file is not JSON");
    if (json.value("schema", std::string()) != schema)
      throw UserError(fmt::format("the plan file's schema is '{}'; this version reads {}",
                                  json.value("schema", std::string()), schema));
    const bool replay = json.value("replay", false);
    const std::string machine = json.value("machine", std::string());
    const bool same_machine = machine == machine_.name;
    bool dropped = false;
    size_t number = 0;
    for (const Json& group : json.value("groups", Json::array())) {
      const std::string where = group.value("name", fmt::format("group {} of the plan", number));
      ++number;
      if (!replay && !group.value("pin", false)) continue;
      read_group(group, where, same_machine, dropped);
    }
    if (dropped)
      result_.notes.push_back(fmt::format(
          "the plan was made for machine '{}'; its groups are kept, tiles are chosen anew for '{}'", machine,
          machine_.name));
    for (const Json& edge : json.value("forbid", Json::array()))
      forbid(edge.at(0).get<std::string>(), edge.at(1).get<std::string>());
    for (const Json& tensor : json.value("barriers", Json::array())) barrier(tensor.get<std::string>());
    if (json.contains("max_fusions")) result_.most_merges = json.at("max_fusions").get<int64_t>();
    return std::move(result_);
  }

 private:
  const graph::Graph& graph_;
  const machine::Machine& machine_;
  const NodeKeys keys_;
  const std::vector<bool> constant_;
  PlanConstraints result_;

  void read_group(const Json& json, const std::string& where, bool same_machine, bool& dropped) {
    GroupConstraint group;
    group.name = where;
    group.pin = true;
    group.grid_tile = json.value("grid_tile", int64_t{0});
    group.measured_microseconds = json.value("measured_us", 0.0);
    std::vector<graph::NodeId> in_order;
    for (const Json& key : json.value("nodes", Json::array())) in_order.push_back(keys_.node_of(key, where));
    for (const Json& name : json.value("members", Json::array()))
      for (uint32_t model_node : resolve_model_nodes(graph_, name.get<std::string>()))
        for (graph::NodeId node : keys_.primitives_of(model_node)) in_order.push_back(node);
    if (json.value("assembled", false)) {
      // Of a model node, what the rewrites have left of its concatenation or view: perhaps nothing.
      std::erase_if(in_order, [&](graph::NodeId node) {
        return constant_[node] ||
               (graph_.node(node).op != graph::Op::concat && !is_movable_view(graph_, node));
      });
      if (in_order.empty() && !json.contains("members"))
        throw UserError(fmt::format(
            "{} is assembled and names something else than a concatenation or a view of one tensor", where));
      result_.assembled.insert(in_order.begin(), in_order.end());
      return;
    }
    if (in_order.empty()) throw UserError(fmt::format("{} names no nodes", where));
    if (json.contains("bodies")) return read_bodies(json.at("bodies"), in_order.front(), where);
    if (json.contains("schedule") && json.contains("nodes")) {
      if (same_machine)
        group.schedule = schedule_from_json(json.at("schedule"), in_order, where);
      else
        dropped = true;
    }
    for (const Json& output : json.value("outputs", Json::array())) {
      const size_t member = output.is_object() ? output.at("node").get<size_t>() : output.get<size_t>();
      if (member >= in_order.size())
        throw UserError(fmt::format("{}: an output names member {} of {}", where, member, in_order.size()));
      result_.stored_views.insert(in_order[member]);
    }
    group.nodes = std::move(in_order);
    std::sort(group.nodes.begin(), group.nodes.end());
    group.nodes.erase(std::unique(group.nodes.begin(), group.nodes.end()), group.nodes.end());
    result_.groups.push_back(std::move(group));
  }

  void read_bodies(const Json& json, graph::NodeId control, const std::string& where) {
    const std::vector<graph::Body>& bodies = graph_.node(control).bodies;
    if (json.size() != bodies.size())
      throw UserError(
          fmt::format("{} has {} bodies, and the model's node has {}", where, json.size(), bodies.size()));
    for (size_t b = 0; b < bodies.size(); ++b) {
      PlanConstraints inside = PlanReader(*bodies[b], machine_).read(json[b]);
      result_.notes.insert(result_.notes.end(), inside.notes.begin(), inside.notes.end());
      result_.bodies[control].push_back(std::move(inside));
    }
  }

  void forbid(const std::string& from, const std::string& to) {
    for (uint32_t a : resolve_model_nodes(graph_, from))
      for (uint32_t b : resolve_model_nodes(graph_, to))
        for (graph::NodeId producer : keys_.primitives_of(a))
          for (graph::NodeId reader : keys_.primitives_of(b)) result_.forbidden.insert({producer, reader});
  }

  void barrier(const std::string& tensor) {
    for (uint32_t model_node : resolve_model_nodes(graph_, tensor))
      if (const auto& owned = keys_.primitives_of(model_node); !owned.empty())
        result_.barriers.insert(owned.back());
  }
};

}  // namespace

PlanConstraints constraints_from_json(const graph::Graph& graph, std::string_view text,
                                      const machine::Machine& machine) {
  try {
    return PlanReader(graph, machine).read(text);
  } catch (const nlohmann::json::exception& error) {
    throw UserError(fmt::format("the plan file cannot be read: {}", error.what()));
  }
}

}  // namespace fusewise::fusion

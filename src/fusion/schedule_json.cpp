#include "fusion/schedule_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"

namespace fusewise::fusion {

using Json = nlohmann::ordered_json;
using graph::NodeId;
using schedule::Schedule;
using schedule::StageChoice;

namespace {

constexpr std::array<std::string_view, 3> placements = {"registers", "scratch", "memory"};
constexpr std::array<std::string_view, 4> reuses = {"keep", "recompute", "slide", "carry"};

template <class Enum>
Enum parse_enum(std::span<const std::string_view> names, const std::string& text, const std::string& where) {
  const auto it = std::find(names.begin(), names.end(), text);
  if (it == names.end()) throw UserError(fmt::format("{}: a schedule has no '{}'", where, text));
  return static_cast<Enum>(it - names.begin());
}

StageChoice stage_from_json(const Json& json, const std::vector<NodeId>& nodes, const std::string& where) {
  StageChoice s;
  const size_t node = json.at("node").get<size_t>();
  if (node >= nodes.size())
    throw UserError(fmt::format("{}: a stage names member {} of {}", where, node, nodes.size()));
  s.node = nodes[node];
  s.parent = json.value("parent", -1);
  s.depth = json.value("depth", 0);
  s.phase = json.value("phase", 0);
  s.partial = json.value("partial", false);
  s.placement = parse_enum<schedule::Placement>(placements, json.at("placement").get<std::string>(), where);
  s.reuse = parse_enum<schedule::Reuse>(reuses, json.value("reuse", std::string("keep")), where);
  s.slide_axis = json.value("slide_axis", -1);
  for (const Json& loop : json.value("loops", Json::array()))
    s.loops.push_back({loop.at(0).get<int>(), loop.at(1).get<int64_t>()});
  s.grid_loops = json.value("grid_loops", 0);
  s.vector_axis = json.value("vector_axis", -1);
  s.storage = json.value("storage", std::vector<int>());
  return s;
}

}  // namespace

Json schedule_to_json(const Schedule& schedule, const std::vector<NodeId>& nodes) {
  Json result;
  result["order"] = {{"block", schedule.order.block}, {"lanes", schedule.order.lanes}};
  result["stages"] = Json::array();
  for (const StageChoice& s : schedule.stages) {
    Json stage;
    stage["node"] = std::lower_bound(nodes.begin(), nodes.end(), s.node) - nodes.begin();
    stage["parent"] = s.parent;
    stage["depth"] = s.depth;
    if (s.phase) stage["phase"] = s.phase;
    if (s.partial) stage["partial"] = true;
    stage["placement"] = placements[static_cast<size_t>(s.placement)];
    if (s.reuse != schedule::Reuse::keep) stage["reuse"] = reuses[static_cast<size_t>(s.reuse)];
    if (s.slide_axis >= 0) stage["slide_axis"] = s.slide_axis;
    stage["loops"] = Json::array();
    for (const auto& loop : s.loops) stage["loops"].push_back({loop.axis, loop.tile});
    stage["grid_loops"] = s.grid_loops;
    stage["vector_axis"] = s.vector_axis;
    stage["storage"] = s.storage;
    result["stages"].push_back(std::move(stage));
  }
  return result;
}

Schedule schedule_from_json(const Json& json, const std::vector<NodeId>& nodes, const std::string& where) {
  Schedule schedule;
  try {
    const Json order = json.value("order", Json::object());
    schedule.order.block = order.value("block", schedule.order.block);
    schedule.order.lanes = order.value("lanes", schedule.order.lanes);
    for (const Json& stage : json.at("stages"))
      schedule.stages.push_back(stage_from_json(stage, nodes, where));
  } catch (const nlohmann::json::exception& error) {
    throw UserError(fmt::format("{}: its schedule cannot be read: {}", where, error.what()));
  }
  return schedule;
}

}  // namespace fusewise::fusion

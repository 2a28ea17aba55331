// A schedule as JSON; stages name their node by its position in a list.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace fusewise::fusion {

nlohmann::ordered_json schedule_to_json(const schedule::Schedule& schedule,
                                        const std::vector<graph::NodeId>& nodes);
// UserError, beginning with `where`.
schedule::Schedule schedule_from_json(const nlohmann::ordered_json& json,
                                      const std::vector<graph::NodeId>& nodes, const std::string& where);

}  // namespace fusewise::fusion

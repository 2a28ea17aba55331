#include "session/metadata.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace fusewise::session {

using Json = nlohmann::json;

std::string to_text(const Metadata& metadata) {
  Json json = {{"flops", metadata.flops.to_string()},   {"phases_ms", metadata.phases_ms},
               {"predicted_ms", metadata.predicted_ms}, {"lower_bound_ms", metadata.lower_bound_ms},
               {"machine", metadata.machine},           {"compiler", metadata.compiler},
               {"index_extents", Json::array()},        {"predicted_step_ms", Json::array()}};
  for (const auto& extent : metadata.index_extents)
    json["index_extents"].push_back(extent ? Json(extent->to_string()) : Json());
  for (const auto& predicted : metadata.predicted_step_ms)
    json["predicted_step_ms"].push_back(predicted ? Json(*predicted) : Json());
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Metadata metadata_from(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    Metadata metadata;
    metadata.flops = Dim::parse(json.at("flops").get<std::string>());
    metadata.phases_ms = json.at("phases_ms").get<std::map<std::string, double>>();
    metadata.predicted_ms = json.at("predicted_ms");
    metadata.lower_bound_ms = json.at("lower_bound_ms");
    metadata.machine = json.at("machine");
    metadata.compiler = json.at("compiler");
    for (const Json& extent : json.at("index_extents")) {
      auto& target = metadata.index_extents.emplace_back();
      if (!extent.is_null()) target = Dim::parse(extent.get<std::string>());
    }
    for (const Json& predicted : json.at("predicted_step_ms")) {
      auto& target = metadata.predicted_step_ms.emplace_back();
      if (!predicted.is_null()) target = predicted.get<double>();
    }
    return metadata;
  } catch (const Json::exception& error) {
    throw UserError(std::string("the program's metadata is not a session's: ") + error.what());
  }
}

}  // namespace fusewise::session

#include "cli/chrome_trace.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace fusewise::cli {
namespace {

using Json = nlohmann::ordered_json;
using session::TracedPiece;

constexpr int process = 1;

Json name_of_row(const char* what, int row, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", row}, {"args", {{"name", name}}}};
}

Json slice(const std::string& name, const char* category, int row, double begin_us, double end_us,
           Json args) {
  return {{"name", name},   {"cat", category},          {"ph", "X"},
          {"ts", begin_us}, {"dur", end_us - begin_us}, {"pid", process},
          {"tid", row},     {"args", std::move(args)}};
}

}  // namespace

std::string chrome_trace(const std::string& model, const session::Session& session,
                         std::span<const TracedPiece> pieces) {
  Json events = Json::array({name_of_row("process_name", 0, model)});
  const int workers = session.info().threads;
  for (int worker = 0; worker < workers; ++worker)
    events.push_back(name_of_row("thread_name", worker, fmt::format("worker {}", worker)));
  events.push_back(name_of_row("thread_name", workers, "runs"));
  std::map<int64_t, std::pair<double, double>> runs;
  for (const TracedPiece& piece : pieces) {
    const auto [run, first] = runs.try_emplace(piece.run, piece.begin_us, piece.end_us);
    run->second.first = std::min(run->second.first, piece.begin_us);
    run->second.second = std::max(run->second.second, piece.end_us);
    const session::StepInfo& step = session.steps()[piece.step];
    const std::string name = step.kernel.empty() ? "copy" : step.kernel;
    events.push_back(slice(name, step.kernel.empty() ? "copy" : "kernel", piece.worker, piece.begin_us,
                           piece.end_us,
                           {{"nodes", step.label},
                            {"run", piece.run},
                            {"step", piece.step},
                            {"phase", piece.phase},
                            {"first_block", piece.first_block},
                            {"blocks", piece.end_block - piece.first_block}}));
  }
  for (const auto& [number, span] : runs)
    events.push_back(
        slice(fmt::format("run {}", number), "run", workers, span.first, span.second, Json::object()));
  const Json document = {{"displayTimeUnit", "ms"}, {"traceEvents", events}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace fusewise::cli

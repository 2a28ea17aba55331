#include "base/log.h"

#include <cstdio>
#include <cstdlib>

namespace fusewise {

namespace {

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

LogChannels::LogChannels(std::string_view list) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string_view name = trim(list.substr(0, comma));
    if (name == "all") all_ = true;
    if (!name.empty()) names_.emplace(name);
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
}

bool log_enabled(std::string_view channel) {
  static const LogChannels channels = [] {
    const char* list = std::getenv("FUSEWISE_LOG");
    return LogChannels(list ? list : "");
  }();
  return channels.enabled(channel);
}

void write_log_line(std::string_view channel, std::string_view message) {
  const std::string line = fmt::format("[{}] {}\n", channel, message);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace fusewise

// Log lines for developers and curious users, by channel: FUSEWISE_LOG=fusion,codegen (or "all") chooses
// which channels speak. Lines go to standard error; results never do.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace fusewise {

// A list of channels as the environment variable states it: names separated by commas, spaces ignored.
class LogChannels {
 public:
  explicit LogChannels(std::string_view list);
  bool enabled(std::string_view channel) const { return all_ || names_.contains(channel); }

 private:
  bool all_ = false;
  std::set<std::string, std::less<>> names_;
};

// Whether the environment, read once, asks for this channel.
bool log_enabled(std::string_view channel);

// Writes "[channel] message" as one piece, so that lines of several threads do not mix.
void write_log_line(std::string_view channel, std::string_view message);

// The arguments are formatted only when the channel is on.
template <class... Arguments>
void log(std::string_view channel, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  if (log_enabled(channel))
    write_log_line(channel, fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace fusewise

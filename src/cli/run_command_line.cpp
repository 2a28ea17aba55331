#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/near_names.h"
#include "cli/command.h"
#include "cli/foreign_flags.h"

namespace fusewise::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* version = "0.1.0";

// An error as it is reported: in words on standard error, and as an object with --json.
struct Report {
  int code = exit_failed;
  std::string kind;
  std::string message;
  ErrorContext where;
  std::vector<UnsupportedItem> items;
};

void append_if_new(std::string& text, const std::string& label, const std::string& value) {
  // The message mostly names file and node already.
  if (!value.empty() && text.find(value) == std::string::npos)
    text += fmt::format("\n  {}: {}", label, value);
}

std::string words_of(const Report& report) {
  std::string text = "error: " + report.message;
  append_if_new(text, "file", report.where.file);
  append_if_new(text, "node", report.where.node);
  for (const UnsupportedItem& item : report.items)
    text += fmt::format("\n  {} ({} time{}{})", item.what, item.count, item.count == 1 ? "" : "s",
                        item.first_node.empty() ? "" : ", first at '" + item.first_node + "'");
  append_if_new(text, "hint", report.where.hint);
  return text + "\n";
}

int report_error(const Report& report, bool json) {
  std::fputs(words_of(report).c_str(), stderr);
  if (json) {
    Json error = {{"code", report.kind},       {"message", report.message}, {"file", report.where.file},
                  {"node", report.where.node}, {"op", report.where.op},     {"hint", report.where.hint}};
    if (!report.items.empty()) {
      error["unsupported"] = Json::array();
      for (const UnsupportedItem& item : report.items)
        error["unsupported"].push_back(
            {{"what", item.what}, {"count", item.count}, {"first_node", item.first_node}});
    }
    fmt::print("{}\n", Json{{"schema", "fusewise.error/1"}, {"error", error}}.dump(
                           -1, ' ', false, Json::error_handler_t::replace));
  }
  return report.code;
}

template <class Body>
int with_errors_reported(bool json, Body&& body) {
  try {
    return body();
  } catch (const UsageError& error) {
    return report_error({exit_usage, "usage", error.what(), {.hint = error.hint}, {}}, json);
  } catch (const UserError& error) {
    return report_error({exit_failed, "failed", error.what(), error.context, {}}, json);
  } catch (const UnsupportedError& error) {
    return report_error({exit_unsupported, "unsupported", error.what(), {}, error.items}, json);
  } catch (const std::bad_alloc&) {
    return report_error({exit_failed, "out_of_memory", "there is not enough memory", {}, {}}, json);
  } catch (const std::exception& error) {
    const std::string message = fmt::format("internal error: {}", error.what());
    const std::string hint = fmt::format(
        "please report it with the command, its output, the version ({}) and, if you can, the model",
        version);
    return report_error({exit_internal, "internal", message, {.hint = hint}, {}}, json);
  }
}

std::string overview() {
  std::string text = "Fusewise compiles neural networks.\n\nusage: fusewise COMMAND [OPTIONS]\n\nCommands:\n";
  for (const Command& command : command_table())
    text += fmt::format("  {:<10}{}\n", command.name, command.summary);
  return text +
         "\nfusewise COMMAND --help describes a command with an example; fusewise --version names the "
         "version.\n";
}

const Command& find_command(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : command_table()) {
    if (command.name == name) return command;
    names.push_back(command.name);
  }
  throw_if_foreign(name.substr(0, name.find('=')));
  const std::string nearest = did_you_mean(name, names);
  throw UsageError(fmt::format("there is no command '{}'", name),
                   nearest.empty() ? "fusewise --help lists the commands" : nearest);
}

int run_command(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::fputs(overview().c_str(), stderr);
    return exit_usage;
  }
  if (arguments[0] == "--version" || arguments[0] == "version") {
    fmt::print("fusewise {}\n", version);
    return exit_done;
  }
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    if (arguments.size() > 1) return run_command({arguments[1], "--help"});
    std::fputs(overview().c_str(), stdout);
    return exit_done;
  }
  const Command& command = find_command(arguments[0]);
  Parser parser(command.name, command.summary, command.example);
  Console console;
  parser.flag("--json", console.json, "the last line of standard output is one JSON object");
  parser.flag("--verbose", console.verbose, "say more on standard error");
  parser.flag("--quiet", console.quiet, "no words on standard output, only errors and what --json gives");
  const Action action = command.declare(parser);
  if (!parser.parse({arguments.begin() + 1, arguments.end()})) {
    std::fputs(parser.help().c_str(), stdout);
    return exit_done;
  }
  return action(console);
}

}  // namespace

int run_command_line(const std::vector<std::string>& arguments) {
  const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  int code = with_errors_reported(json, [&] { return run_command(arguments); });
  // A result that did not reach its reader is a failure.
  if ((std::fflush(stdout) != 0 || std::ferror(stdout)) && code == exit_done) {
    const std::string message = fmt::format("cannot write to standard output: {}", std::strerror(errno));
    code = report_error({exit_failed, "failed", message, {}, {}}, false);
  }
  return code;
}

}  // namespace fusewise::cli

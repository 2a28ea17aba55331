// A command of the command line: one file each in commands/, listed in command_table.cpp.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "cli/console.h"
#include "cli/parser.h"

namespace fusewise::cli {

// Exit codes of the command line.
enum ExitCode : int {
  exit_done = 0,
  exit_failed = 1,
  exit_usage = 2,
  exit_unsupported = 3,
  exit_internal = 4,
  exit_negative = 5,
  exit_interrupted = 130,
};

// What a command does once its arguments are parsed; the result is the exit code.
using Action = std::function<int(Console&)>;

struct Command {
  std::string name, summary, example;
  // Declares the options and gives the action, which holds what the options are parsed into.
  std::function<Action(Parser&)> declare;
};

// Sorted by name.
std::span<const Command> command_table();

// Everything behind main(): finds the command, parses, runs, reports errors; gives the exit code.
int run_command_line(const std::vector<std::string>& arguments);

}  // namespace fusewise::cli

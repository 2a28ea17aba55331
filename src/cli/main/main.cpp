#include <unistd.h>

#include <csignal>

#include "cli/command.h"

namespace {

// Files are written under temporary names and renamed, so ending at once leaves no half-written result.
void end_interrupted(int) { ::_exit(fusewise::cli::exit_interrupted); }

}  // namespace

int main(int argument_count, char** arguments) {
  std::signal(SIGINT, end_interrupted);
  return fusewise::cli::run_command_line({arguments + 1, arguments + argument_count});
}

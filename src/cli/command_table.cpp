#include "cli/commands/commands.h"

namespace fusewise::cli {

std::span<const Command> command_table() {
  static const Command table[] = {
      bench_command(), dump_command(), explain_command(), inspect_command(), machine_command(),
      plan_command(),  run_command(),  test_command(),    verify_command(),  zoo_command(),
  };
  return table;
}

}  // namespace fusewise::cli

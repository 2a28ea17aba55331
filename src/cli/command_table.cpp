#include "cli/commands/commands.h"

namespace fusewise::cli {

std::span<const Command> command_table() {
  static const Command table[] = {
      inspect_command(),
      run_command(),
  };
  return table;
}

}  // namespace fusewise::cli

// All commands; each is defined in the file of its name.
#pragma once

#include "cli/command.h"

namespace fusewise::cli {

Command inspect_command();
Command run_command();

}  // namespace fusewise::cli

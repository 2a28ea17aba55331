// All commands; each is defined in the file of its name.
#pragma once

#include "cli/command.h"

namespace fusewise::cli {

Command bench_command();
Command dump_command();
Command explain_command();
Command inspect_command();
Command machine_command();
Command plan_command();
Command run_command();
Command test_command();
Command verify_command();
Command zoo_command();

}  // namespace fusewise::cli

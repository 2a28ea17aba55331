#include "machine/machine.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/session_options.h"

namespace fusewise::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string target = "cpu", machine_file;
};

Json to_json(const machine::Machine& machine) {
  Json tiles = Json::array();
  for (const machine::RegisterTile& tile : machine.contraction_tiles)
    tiles.push_back({tile.rows, tile.vectors});
  return {{"name", machine.name},
          {"architecture", machine.architecture},
          {"cpu", machine.cpu},
          {"cores", machine.cores},
          {"gigahertz", machine.gigahertz},
          {"vector_bits", machine.vector_bits},
          {"vector_registers", machine.vector_registers},
          {"fma_units", machine.fma_units},
          {"l1_bytes", machine.l1_bytes},
          {"l2_bytes", machine.l2_bytes},
          {"l3_bytes", machine.l3_bytes},
          {"l1_bandwidth", machine.l1_bandwidth},
          {"l2_bandwidth", machine.l2_bandwidth},
          {"l3_bandwidth", machine.l3_bandwidth},
          {"memory_bandwidth", machine.memory_bandwidth},
          {"dispatch_microseconds", machine.dispatch_microseconds},
          {"fork_join_microseconds", machine.fork_join_microseconds},
          {"contraction_tiles", tiles}};
}

Action declare(Parser& parser) {
  auto options = std::make_shared<Options>();
  parser.option("--target", options->target, "cpu[:LEVEL]", "cpu, or cpu:x86-64-v3 and the like");
  parser.option("--machine", options->machine_file, "FILE", "a description to read instead");
  return [options](Console& console) {
    const machine::Machine machine = target_machine(options->target, options->machine_file);
    console.print(machine::to_text(machine));
    console.finish("machine", to_json(machine));
    return int{exit_done};
  };
}

}  // namespace

Command machine_command() {
  return {"machine", "prints the machine description in use", "fusewise machine > mine.txt", declare};
}

}  // namespace fusewise::cli

#include "kernel/passes/pipeline.h"

#include <algorithm>

#include "base/error.h"
#include "kernel/passes/hoist_addresses.h"
#include "kernel/passes/promote_registers.h"
#include "kernel/passes/unroll.h"
#include "kernel/passes/vectorize.h"

namespace fusewise::kernel {

const std::vector<Pass>& passes() {
  static const std::vector<Pass> list = {
      {"unroll", "constant indices for register tiles",
       [](Kernel kernel, const PassOptions&) { return unroll(std::move(kernel)); }},
      {"vectorize", "whole vectors, while functions are still single expressions",
       [](Kernel kernel, const PassOptions& options) { return vectorize(std::move(kernel), options.vector_bits); }},
      {"unroll_serial", "less loop per multiplication; before names are given to shared values",
       [](Kernel kernel, const PassOptions& options) { return unroll_serial(std::move(kernel), options.unroll_factor); }},
      {"promote_registers", "accumulators in registers, now that their indices are constant",
       [](Kernel kernel, const PassOptions&) { return promote_registers(std::move(kernel)); }},
      {"hoist_addresses", "one pointer per row in front of the innermost loop",
       [](Kernel kernel, const PassOptions&) { return hoist_addresses(std::move(kernel)); }},
  };
  return list;
}

Kernel run_passes(Kernel kernel, const PassOptions& options) {
  for (const std::string& name : options.disabled) {
    const bool known = std::any_of(passes().begin(), passes().end(), [&](const Pass& pass) { return pass.name == name; });
    if (!known) throw UserError("there is no kernel pass '" + name + "'");
  }
  for (const Pass& pass : passes()) {
    if (options.disabled.contains(pass.name)) continue;
    kernel = pass.run(std::move(kernel), options);
    if (options.dump) options.dump(pass.name, kernel);
  }
  return kernel;
}

}  // namespace fusewise::kernel

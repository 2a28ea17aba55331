#include "kernel/passes/pipeline.h"

#include <algorithm>

#include "base/error.h"
#include "kernel/passes/expand_functions.h"
#include "kernel/passes/hoist_addresses.h"
#include "kernel/passes/hoist_invariants.h"
#include "kernel/passes/join_rows.h"
#include "kernel/passes/legalize_halves.h"
#include "kernel/passes/place_scratch.h"
#include "kernel/passes/promote_registers.h"
#include "kernel/passes/share_loads.h"
#include "kernel/passes/unroll.h"
#include "kernel/passes/vectorize.h"

namespace fusewise::kernel {

const std::vector<Pass>& passes() {
  static const std::vector<Pass> list = {
      {"unroll", "constant indices for register tiles",
       [](Kernel kernel, const PassOptions& options) {
         return unroll(std::move(kernel), options.most_unrolled);
       }},
      {"vectorize", "whole vectors, while functions are still single expressions",
       [](Kernel kernel, const PassOptions& options) {
         return vectorize(std::move(kernel), options.vector_bits);
       }},
      {"unroll_serial", "less loop per multiplication; before names are given to shared values",
       [](Kernel kernel, const PassOptions& options) {
         return unroll_serial(std::move(kernel), options.unroll_factor);
       }},
      {"expand_functions", "functions as basic operations, for the passes below to see",
       [](Kernel kernel, const PassOptions&) { return expand_functions(std::move(kernel)); }},
      {"legalize_halves", "half arithmetic in float32, expanded functions included",
       [](Kernel kernel, const PassOptions&) { return legalize_halves(std::move(kernel)); }},
      {"promote_registers", "accumulators in registers, now that their indices are constant",
       [](Kernel kernel, const PassOptions&) { return promote_registers(std::move(kernel)); }},
      {"hoist_addresses", "one pointer per row in front of the innermost loop",
       [](Kernel kernel, const PassOptions&) { return hoist_addresses(std::move(kernel)); }},
      {"join_rows", "fewer pointers than the processor has registers",
       [](Kernel kernel, const PassOptions&) { return join_rows(std::move(kernel)); }},
      {"hoist_invariants", "what loops repeat, computed once in front of them",
       [](Kernel kernel, const PassOptions&) { return hoist_invariants(std::move(kernel)); }},
      {"share_loads", "names for what is used more than once; sums of addresses are settled by now",
       [](Kernel kernel, const PassOptions&) { return share_loads(std::move(kernel)); }},
      {"place_scratch", "the bytes of scratch that are really needed",
       [](Kernel kernel, const PassOptions&) { return place_scratch(std::move(kernel)); }},
  };
  return list;
}

Kernel run_passes(Kernel kernel, const PassOptions& options) {
  for (const std::string& name : options.disabled) {
    const bool known =
        std::any_of(passes().begin(), passes().end(), [&](const Pass& pass) { return pass.name == name; });
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

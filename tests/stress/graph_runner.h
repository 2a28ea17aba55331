// A graph through the whole compiler under some settings, and what comes out against the reference interpreter on the
// graph as it was: to the bit in strict mode, within three times the proven bound of one evaluation in default mode.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/compiler.h"
#include "graph/interpreter/double_interpreter.h"
#include "kernel/kernel.h"
#include "support/random_graphs/random_graph.h"

namespace fusewise::test {

enum class Execution : uint8_t {
  lowered,   // kernels as lowered, in the kernel interpreter
  passed,    // after the kernel passes, in the kernel interpreter
  compiled,  // machine code on threads
  guarded,   // the same, buffers between pages that may not be touched
};

struct GraphSettings {
  compiler::Numerics numerics = compiler::Numerics::strict;
  fusion::FusionMode fusion = fusion::FusionMode::on;
  std::string target = "x86-64-v3";
  int threads = 1;
  Execution execution = Execution::lowered;
  uint64_t plan = 0;  // of a random plan; 0: the planner's
  friend bool operator==(const GraphSettings&, const GraphSettings&) = default;
};
std::string to_text(const GraphSettings& settings);  // "numerics=strict fusion=on ..."
GraphSettings settings_from_text(std::string_view text);

// What a value compared with itself must give, in any mode, for outputs named "promise.*". Empty if it holds.
std::string broken_promise(const std::string& name, const graph::Tensor& output);

class GraphOracle {
 public:
  // UserError when the interpreter refuses the inputs.
  explicit GraphOracle(const GraphCase& of_case);
  // Empty if right, else what differs.
  std::string judge(std::span<const graph::Tensor> outputs, compiler::Numerics numerics) const;

 private:
  const GraphCase& case_;
  std::vector<graph::Tensor> strict_;
  mutable std::optional<std::vector<graph::BoundedTensor>> bounded_;
};

// What comes out: the whole compiler, then a run (of machine code: several, with the same bits, and inputs that stay as
// they are). Throws what it throws.
std::vector<graph::Tensor> outputs_of(const GraphCase& what, const GraphSettings& settings, int runs = 2);
// The same with lowered kernels damaged: what tests of the tests need.
std::vector<graph::Tensor> outputs_of(const GraphCase& what, const GraphSettings& settings,
                                      const std::function<void(kernel::Kernel&)>& damage);

using Counts = std::map<std::string, int64_t>;

struct GraphOutcome {
  enum class Kind : uint8_t { agrees, refused, wrong };
  Kind kind = Kind::agrees;
  std::string words;  // the reason, what differs
};

// `seen`, where there is one, counts what the plan is made of.
GraphOutcome run_graph(const GraphCase& what, const GraphOracle& oracle, const GraphSettings& settings,
                       Counts* seen = nullptr);
// The same, with an oracle of its own; "refused" where the interpreter refuses.
GraphOutcome run_graph(const GraphCase& what, const GraphSettings& settings);

}  // namespace fusewise::test

// Which values may differ between the threads of one block.
#pragma once

#include <vector>

#include "kernel/kernel.h"

namespace fusewise::kernel {

class Uniformity {
 public:
  explicit Uniformity(const Kernel& kernel);
  // Whether threads of one block may have different values: it depends on the variable of a thread or lane loop,
  // directly, through variables, or through where it loads from.
  bool varies(ExprId expr) const { return expr != none && exprs_[expr]; }

 private:
  bool mark(StmtId stmt, bool divergent);
  bool mark_variable(VariableId variable);
  void mark_exprs();

  const Kernel& kernel_;
  std::vector<bool> variables_;
  std::vector<bool> exprs_;
};

}  // namespace fusewise::kernel

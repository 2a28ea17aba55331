// Which values may differ between the threads of one block.
#pragma once

#include <vector>

#include "kernel/kernel.h"

namespace fusewise::kernel {

class Uniformity {
 public:
  explicit Uniformity(const Kernel& kernel);
  // Whether threads of one block may have different values: it depends on the variable of a thread or lane loop,
  // directly, through variables, through memory of its own, or through where it loads from.
  bool varies(ExprId expr) const { return expr != none && exprs_[expr]; }

 private:
  bool mark(StmtId stmt, bool divergent);
  static bool set(std::vector<bool>& marks, size_t index);
  bool mark_store(const Stmt& stmt, bool divergent);
  void mark_exprs();

  const Kernel& kernel_;
  std::vector<bool> variables_;
  std::vector<bool> buffers_;  // private ones that hold what varies
  std::vector<bool> exprs_;
};

}  // namespace fusewise::kernel

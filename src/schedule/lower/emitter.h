// What every lowering begins with: the kernel under construction, its arguments and parameters, plain loops.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "kernel/kernel.h"
#include "schedule/lower.h"

namespace fusewise::schedule {

using kernel::BufferId;
using kernel::ExprId;
using kernel::LoopKind;
using kernel::StmtId;
using kernel::VariableId;

class Emitter {
 protected:
  Emitter() : builder_(result_.kernel) {}
  Emitter(const Emitter&) = delete;
  Emitter& operator=(const Emitter&) = delete;

  // Appends an argument unless the value is one already.
  void add_argument(const Graph& graph, Value value, bool written);
  // Symbols become run-time parameters.
  ExprId dim_expr(const Dim& dim);
  StmtId serial_loop(const char* name, ExprId count, const std::function<StmtId(ExprId)>& body,
                     LoopKind kind = LoopKind::serial);
  ExprId combined(Combine combine, DataType type, ExprId a, ExprId b);
  ExprId identity_of(Combine combine, DataType type);
  ExprId convert(ExprId value, DataType to);
  // An index from a tensor of integers as int64: what has no sign and lies beyond it lies beyond any extent.
  ExprId signed_index(ExprId index);
  ExprId zero() { return builder_.integer(0); }

  LoweredKernel result_;
  kernel::Builder builder_;
  std::map<Value, BufferId> arguments_;

 private:
  std::map<std::string, int> parameters_;
};

}  // namespace fusewise::schedule

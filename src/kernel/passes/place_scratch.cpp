#include "kernel/passes/place_scratch.h"

#include "kernel/sizes.h"

namespace fusewise::kernel {
namespace {

// The most that statements at and below `id` need beyond `used`, and what is in use behind the statement.
struct Use {
  Dim after, peak;
};

Use use_of(const Kernel& kernel, StmtId id, const Dim& used) {
  const Stmt& stmt = kernel.stmt(id);
  if (stmt.kind == StmtKind::allocate) {
    const Buffer& buffer = kernel.buffers[stmt.target];
    if (buffer.scope == Scope::registers) return {used, used};
    const Dim bytes = size_of(kernel, buffer.size) * Dim(bytes_of(buffer.element));
    const Dim after = used + ceil_div(bytes, Dim(scratch_alignment)) * Dim(scratch_alignment);
    return {after, after};
  }
  Use use = {used, used};
  for (StmtId child : stmt.children) {
    const Use inner = use_of(kernel, child, stmt.kind == StmtKind::block ? use.after : used);
    if (inner.peak != use.peak) use.peak = max(use.peak, inner.peak);
    use.after = inner.after;
  }
  // What a block, a loop or a branch allocated ends with it.
  if (!stmt.children.empty()) use.after = used;
  return use;
}

}  // namespace

Dim scratch_bytes(const Kernel& kernel) {
  Dim most = 0;
  for (StmtId phase : kernel.phases) {
    const Use use = use_of(kernel, phase, 0);
    if (use.peak != most) most = max(most, use.peak);
  }
  return most;
}

Kernel place_scratch(Kernel kernel) {
  kernel.scratch_bytes = scratch_bytes(kernel);
  return kernel;
}

}  // namespace fusewise::kernel

// Small questions about loops and expressions that several passes ask.
#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.h"

namespace fusewise::kernel {

// The number of iterations where it is known.
std::optional<int64_t> trip_count(Builder& builder, const Stmt& loop);

// The buffer that an alias (of an alias ...) ends at; a buffer that is no alias is its own.
class AliasRoots {
 public:
  explicit AliasRoots(const Kernel& kernel);
  BufferId root(BufferId buffer) const { return roots_[buffer]; }
  // A new buffer, the last of the kernel, that shifts another.
  void add_alias(BufferId source) { roots_.push_back(roots_[source]); }
  // Whether the elements of the buffer stay the same while the kernel runs.
  bool never_changes(const Kernel& kernel, BufferId buffer) const;

 private:
  std::vector<BufferId> roots_;
};

// Variables that statements at and below a statement define or assign, and buffers that they write or define.
struct Effects {
  std::vector<bool> variables;
  std::vector<bool> written;  // stored to, by root
  std::vector<bool> defined;  // allocated or made an alias
  bool any_write_may_touch(const Kernel& kernel, const AliasRoots& roots, BufferId buffer) const;
};
Effects effects_of(const Kernel& kernel, const AliasRoots& roots, StmtId stmt);

// Answers for expressions, remembered: whether an expression keeps its value while a statement with these effects runs.
class Invariance {
 public:
  Invariance(const Kernel& kernel, const AliasRoots& roots, const Effects& effects)
      : kernel_(kernel), roots_(roots), effects_(effects) {}
  bool operator()(ExprId expr);

 private:
  bool compute(const Expr& expr);
  const Kernel& kernel_;
  const AliasRoots& roots_;
  const Effects& effects_;
  std::vector<int8_t> known_;  // by expression: 0 unknown, 1 varies, 2 invariant
};

bool contains_load(const Kernel& kernel, ExprId expr);

}  // namespace fusewise::kernel

// Prints one phase of a kernel. Split by what is printed: statements.cpp and expressions.cpp.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/source/source.h"

namespace fusewise::codegen {

class SourcePrinter {
 public:
  SourcePrinter(const kernel::Kernel& kernel, const Dialect& dialect);
  // The function of a phase; fills in what the driver must know of it.
  std::string phase(size_t index, Launch& launch);
  bool uses_double() const { return uses_double_; }

 private:
  using ExprId = kernel::ExprId;
  using StmtId = kernel::StmtId;

  // An expression's text and how tightly it binds.
  struct Text {
    std::string text;
    int level;
  };
  static constexpr int primary = 12, unary = 11, product = 10, sum = 9, shift = 8, order = 7, equality = 6,
                       bit_and = 5, bit_xor = 4, bit_or = 3, choice = 1;

  // --- expressions.cpp
  std::string expression(ExprId id, int least_level = 0);
  Text spelled(ExprId id);
  Text constant(const kernel::Expr& expr);
  Text apply(const kernel::Expr& expr);
  Text apply_float(const kernel::Expr& expr);
  Text apply_integer(const kernel::Expr& expr, bool is_index);
  Text apply_boolean(const kernel::Expr& expr);
  Text cast(const kernel::Expr& expr);
  Text native(const kernel::Expr& expr, bool is_index);
  Text load(const kernel::Expr& expr);
  Text infix(const char* sign, int level, ExprId a, ExprId b);
  Text bitwise(const char* sign, int level, const kernel::Expr& expr);
  Text call(const std::string& function, std::initializer_list<ExprId> operands);
  // Arithmetic that wraps is done on the unsigned type: C leaves the signed one undefined.
  Text wrapping(const char* sign, int level, const kernel::Expr& expr);
  std::string element(uint32_t buffer, ExprId index);
  std::string type_name(DataType type);
  bool is_index(ExprId id);
  // Gives names to what the statement's expressions use more than once.
  void bind_shared(const kernel::Stmt& stmt, int indent);

  // --- statements.cpp
  void statement(StmtId id, int indent);
  void scope(StmtId id, int indent);
  bool has_threads(StmtId id) const;
  void loop(const kernel::Stmt& stmt, int indent);
  void thread_loop(const kernel::Stmt& stmt, int indent);
  void assign(const kernel::Stmt& stmt, int indent);
  void allocate(const kernel::Stmt& stmt, int indent);
  void alias(const kernel::Stmt& stmt, int indent);
  void store(const kernel::Stmt& stmt, int indent);
  std::string address_space(uint32_t buffer) const;
  void collect(StmtId id, bool in_threads);
  std::string signature(size_t index);
  void line(int indent, const std::string& text);
  std::string variable(kernel::VariableId id) const;
  std::string buffer(uint32_t id) const;

  const kernel::Kernel& kernel_;
  const Dialect& dialect_;
  std::string out_;
  std::vector<uint32_t> sources_;  // of aliases: what they shift
  std::map<ExprId, std::string> bound_;
  std::set<kernel::VariableId> declared_;  // mutable ones, here
  std::vector<int8_t> index_like_;         // by expression: 0 unknown, 1 no, 2 yes
  std::set<kernel::VariableId> data_;      // variables that hold more than index arithmetic
  std::vector<uint32_t> shared_;           // buffers of the phase that a group's threads share
  int64_t threads_ = 0;                    // of the phase's thread loops; 0: there are none
  bool in_threads_ = false;
  bool uses_double_ = false;
  int names_ = 0;
};

}  // namespace fusewise::codegen

// Kernel IR: loops, buffers, statements and expressions of one kernel. A closed set: eight statements and eleven
// expressions, typed, vectors explicit. Expressions and statements live in arenas under 32-bit ids; expressions
// are hash-consed by the builder, so equal expressions have equal ids. The grid is the outermost loop of each
// phase (kind `block`); a barrier over all blocks is the boundary between two phases.
//
// Meaning: integers wrap; `div` truncates and `floor_div` rounds down, both 0 when dividing by 0; loads and stores
// outside a buffer are errors that the interpreter reports; a masked-off lane touches nothing and loads 0.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "numerics/data_type.h"
#include "numerics/dim.h"
#include "numerics/scalar_op.h"

namespace fusewise::kernel {

using ExprId = uint32_t;
using StmtId = uint32_t;
using VariableId = uint32_t;
using BufferId = uint32_t;
inline constexpr uint32_t none = UINT32_MAX;

struct Type {
  DataType element = DataType::int64;
  uint16_t lanes = 1;
  friend bool operator==(const Type&, const Type&) = default;
};

enum class ExprKind : uint8_t {
  constant,   // `value`: the bits (floats: IEEE bits of the element type, zero-extended; signed integers
              // sign-extended, unsigned ones and booleans zero-extended), all lanes
  parameter,  // run-time integer argument number `value`; int64
  read,       // variable `value`
  apply,      // scalar operation `op` on a, b, c lane by lane; functions stay until expand_functions
  native,     // machine operation `native` (below) on a, b
  fma,        // a * b + c, rounded once
  bitcast,    // a, same size
  load,       // buffer `value` at element index a (int64, one per lane), mask b (boolean lanes) or none
  ramp,       // a, a + value, a + 2 * value, ...: int64
  broadcast,  // scalar a in all lanes
  shuffle,    // lanes of a (then of b) picked by pattern number `value`
  subgroup_reduce,  // combine `value` over the lanes of the sub-group (GPU)
};

// What scalar functions and index arithmetic need beside ScalarOp.
enum class Native : uint8_t { copysign, floor_div, floor_mod, shift_left, shift_right };

struct Expr {
  ExprKind kind = ExprKind::constant;
  ScalarOp op = ScalarOp::add;
  Native native = Native::copysign;
  Type type;
  ExprId a = none, b = none, c = none;
  int64_t value = 0;
  friend bool operator==(const Expr&, const Expr&) = default;
};

enum class StmtKind : uint8_t {
  block,     // children in order
  loop,      // for variable = a; variable < b; variable += value (a positive constant)
  branch,    // if a then children[0] else children[1] (if there)
  let,       // variable = a; immutable, visible in what follows in the enclosing block
  assign,    // variable = a; the variable is mutable; its first assignment declares it at that block
  allocate,  // buffer `target` comes into being here, uninitialised, until the end of the enclosing block
  alias,     // buffer `target` is buffer `value` shifted by a elements: target[i] = source[a + i]
  store,     // buffer target [a] = b, mask c or none
  barrier,   // all threads of the block
  prefetch,  // buffer target at a, into cache level `value` (1 or 2)
};

enum class LoopKind : uint8_t { serial, unrolled, vector, block, thread, lane };

struct Stmt {
  StmtKind kind = StmtKind::block;
  LoopKind loop = LoopKind::serial;
  uint32_t target = none;  // variable or buffer
  ExprId a = none, b = none, c = none;
  int64_t value = 0;
  std::vector<StmtId> children;  // block: statements; loop: the one body; branch: then, else
};

enum class Scope : uint8_t {
  argument,   // global memory, passed in
  registers,  // small, constant size: becomes variables
  scratch,    // private memory of one worker (CPU) or thread
  shared,     // memory of one block (GPU)
};

struct Buffer {
  std::string name;
  DataType element = DataType::float32;
  Scope scope = Scope::argument;
  bool written = false;   // arguments: may be stored to
  ExprId size = none;     // elements, for allocations: an expression over parameters (registers: constant)
  bool no_alias = true;   // arguments: overlaps no other argument
  bool is_alias = false;  // brought into being by an alias statement (the builder sets it); the scope is
                          // that of the source
};

struct Variable {
  std::string name;
  Type type;
  bool is_mutable = false;
};

// A function of the object code: phases run in order, all blocks of one before the next.
struct Kernel {
  std::string name;
  std::vector<std::string> parameters;  // names; all int64
  std::vector<Buffer> buffers;          // arguments first, in call order
  std::vector<Variable> variables;
  std::vector<Expr> exprs;
  std::vector<Stmt> stmts;
  std::vector<std::vector<int>> patterns;  // of shuffles
  std::vector<StmtId> phases;              // each a loop of kind block
  // Private scratch that one worker needs in bytes, over symbols named like the parameters.
  Dim scratch_bytes = 0;

  const Expr& expr(ExprId id) const { return exprs[id]; }
  const Stmt& stmt(StmtId id) const { return stmts[id]; }
  int argument_count() const;  // buffers of scope argument that are no alias
};

// The least and the greatest value of an int64 expression; the limits of int64_t mean "not known".
struct Range {
  int64_t low = INT64_MIN;
  int64_t high = INT64_MAX;
  friend bool operator==(const Range&, const Range&) = default;
};

// Builds expressions (folding constants, simplifying index arithmetic, sharing equal ones) and statements.
//
// Index arithmetic (add ... logical_and on scalar int64) is kept in a canonical form: a sum of terms
// `product of atoms * constant`, ordered so that what outer loops determine comes first, the constant last; equal
// sums have equal ids. It is assumed that no index leaves 64 bits and that no divisor which is not a
// constant is 0 where the result matters.
class Builder {
 public:
  explicit Builder(Kernel& kernel) : kernel_(kernel) {}
  // Continues an existing kernel (a pass): the present expressions are shared too, and the ranges of loop and
  // let variables are learnt from the statements.
  static Builder resume(Kernel& kernel);

  // What is known about an int64 variable that no statement of this builder has told yet (a loop's variable while
  // its body is being built): low <= variable <= high, and variable < bound. Parameters are at least 0.
  void set_range(VariableId variable, int64_t low, int64_t high);
  void set_bound(VariableId variable, ExprId bound);
  Range range(ExprId a);
  // The expression exactly as given, only shared with an equal one (parsers; passes that must not simplify).
  ExprId share(const Expr& expr) { return intern(expr); }

  ExprId constant(Type type, int64_t bits);
  ExprId integer(int64_t value) { return constant({DataType::int64, 1}, value); }
  ExprId floating(Type type, double value);  // rounded to the element type
  ExprId boolean(bool value) { return constant({DataType::boolean, 1}, value ? 1 : 0); }
  ExprId parameter(int index);
  ExprId read(VariableId variable);
  ExprId apply(ScalarOp op, Type result, ExprId a, ExprId b = none, ExprId c = none);
  ExprId native(Native op, Type result, ExprId a, ExprId b);
  ExprId fma(ExprId a, ExprId b, ExprId c);
  ExprId bitcast(Type type, ExprId a);
  ExprId load(BufferId buffer, ExprId index, ExprId mask = none);
  ExprId ramp(ExprId base, int64_t stride, int lanes);
  ExprId broadcast(ExprId scalar, int lanes);
  ExprId shuffle(ExprId a, ExprId b, std::vector<int> lanes);
  // int64 index arithmetic, simplified: x + 0, x * 1, constants gathered in sums, (x * c + y) / c where y < c is known.
  ExprId add(ExprId a, ExprId b);
  ExprId sub(ExprId a, ExprId b);
  ExprId mul(ExprId a, ExprId b);
  ExprId floor_div(ExprId a, ExprId b);
  ExprId floor_mod(ExprId a, ExprId b);
  ExprId min(ExprId a, ExprId b);
  ExprId max(ExprId a, ExprId b);
  ExprId less(ExprId a, ExprId b);
  ExprId logical_and(ExprId a, ExprId b);
  std::optional<int64_t> constant_value(ExprId a) const;  // of an integer or boolean constant

  VariableId variable(std::string name, Type type, bool is_mutable = false);
  BufferId buffer(Buffer buffer);
  StmtId block(std::vector<StmtId> statements);
  StmtId loop(LoopKind kind, VariableId variable, ExprId begin, ExprId end, int64_t step, StmtId body);
  StmtId branch(ExprId condition, StmtId then, StmtId otherwise = none);
  StmtId let(VariableId variable, ExprId value);
  StmtId assign(VariableId variable, ExprId value);
  StmtId allocate(BufferId buffer);
  StmtId alias(BufferId target, BufferId source, ExprId offset);
  StmtId store(BufferId buffer, ExprId index, ExprId value, ExprId mask = none);
  StmtId barrier();
  StmtId prefetch(BufferId buffer, ExprId index, int level);

 private:
  ExprId intern(const Expr& expr);
  StmtId intern(Stmt stmt);

  // constant + sum of coefficient * product, a product being an expression that is neither a sum nor scaled.
  struct Term {
    ExprId product;
    int64_t coefficient;
  };
  struct Sum {
    int64_t constant = 0;
    std::vector<Term> terms;
  };
  // What is known about an expression: its range, and the highest variable that it reads plus 1.
  struct Facts {
    Range range;
    uint32_t rank = 0;
  };
  struct Known {
    Range range;
    ExprId bound = none;
    ExprId read = none;  // the expression that reads the variable, once there is one
  };

  void collect(ExprId a, int64_t factor, Sum& sum, int depth = 0);
  void normalise(Sum& sum);
  bool join_division(Sum& sum);
  ExprId build(Sum sum);
  void collect_factors(ExprId a, std::vector<ExprId>& factors, int depth = 0) const;
  ExprId build_product(std::vector<ExprId> factors);
  ExprId multiply(ExprId a, ExprId b);
  ExprId divide_by_constant(const Sum& sum, int64_t divisor, bool quotient);
  ExprId divide_by_symbol(ExprId a, ExprId divisor, bool quotient);
  Range range_of(const Sum& sum);
  bool before(ExprId a, ExprId b);
  bool is_index(ExprId a) const;
  bool is_bounded(ExprId a);
  std::optional<std::pair<ExprId, int64_t>> as_ramp(ExprId a);
  ExprId index_vector(ScalarOp op, ExprId a, ExprId b);
  ExprId fold(ScalarOp op, Type result, ExprId a, ExprId b, ExprId c);
  const Facts& facts(ExprId a);
  Range range_of_expr(const Expr& e, const std::function<Range(ExprId)>& operand) const;
  void learn(StmtId statement);
  Known& known(VariableId variable);

  Kernel& kernel_;
  struct ExprHash {
    size_t operator()(const Expr& e) const;
  };
  std::unordered_map<Expr, ExprId, ExprHash> known_;
  std::vector<Facts> facts_;  // of the first expressions, in their order
  std::vector<Known> variables_;
  std::map<std::vector<int>, int64_t> patterns_;
};

std::string print(const Kernel& kernel);
Kernel parse(std::string_view text);  // UserError with the line

}  // namespace fusewise::kernel

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "kernel/evaluate.h"
#include "kernel/interpreter.h"
#include "kernel/kernel.h"
#include "kernel/statistics.h"
#include "kernel/text.h"
#include "kernel/verifier.h"
#include "kernel/visit.h"

namespace fusewise::kernel {
namespace {

constexpr Type index_type = {DataType::int64, 1};

struct BuilderTest : testing::Test {
  Kernel kernel;
  Builder b{kernel};
  ExprId n, x, y, z;
  VariableId vx, vy, vz;

  BuilderTest() {
    kernel.parameters = {"n"};
    n = b.parameter(0);
    vx = b.variable("x", index_type);
    vy = b.variable("y", index_type);
    vz = b.variable("z", index_type);
    b.set_range(vx, 0, 99);
    b.set_range(vy, 0, 7);
    x = b.read(vx);
    y = b.read(vy);
    z = b.read(vz);
  }
  ExprId c(int64_t value) { return b.integer(value); }
  std::string text(ExprId e) { return expression_text(kernel, e); }
};

TEST_F(BuilderTest, EqualExpressionsHaveEqualIds) {
  EXPECT_EQ(b.add(x, y), b.add(y, x));
  EXPECT_EQ(b.add(b.add(x, c(1)), b.add(y, c(2))), b.add(b.add(y, x), c(3)));
  EXPECT_EQ(b.mul(n, b.mul(x, y)), b.mul(b.mul(y, n), x));
  EXPECT_EQ(b.mul(b.add(x, c(2)), n), b.add(b.mul(n, c(2)), b.mul(n, x)));
  EXPECT_EQ(b.sub(b.add(x, y), x), y);
  EXPECT_EQ(b.sub(x, x), c(0));
  EXPECT_NE(b.add(x, y), b.add(x, z));
}

TEST_F(BuilderTest, TimesOrByOneIsTheOperand) {
  const Type type = {DataType::float32, 1};
  const ExprId one = b.floating(type, 1),
               value = b.bitcast(type, b.apply(ScalarOp::cast, {DataType::int32, 1}, x));
  EXPECT_EQ(b.apply(ScalarOp::mul, type, value, one), value);
  EXPECT_EQ(b.apply(ScalarOp::mul, type, one, value), value);
  EXPECT_EQ(b.apply(ScalarOp::div, type, value, one), value);
  EXPECT_NE(b.apply(ScalarOp::div, type, one, value), value);
  EXPECT_NE(b.apply(ScalarOp::mul, type, value, b.floating(type, -1)), value);
}

TEST_F(BuilderTest, SumsAreOrderedFromOuterToInner) {
  EXPECT_EQ(text(b.add(c(5), b.add(b.mul(c(4), z), b.add(x, b.mul(c(3), n))))), "n * 3 + x + z * 4 + 5");
  EXPECT_EQ(text(b.sub(n, b.mul(x, c(2)))), "n - x * 2");
  EXPECT_EQ(text(b.mul(c(3), b.add(x, c(7)))), "x * 3 + 21");
}

TEST_F(BuilderTest, DivisionUsesRanges) {
  const ExprId sum = b.add(b.mul(x, c(8)), y);
  EXPECT_EQ(b.floor_div(sum, c(8)), x);
  EXPECT_EQ(b.floor_mod(sum, c(8)), y);
  EXPECT_EQ(b.floor_div(b.add(sum, c(24)), c(8)), b.add(x, c(3)));
  EXPECT_EQ(text(b.floor_div(b.add(b.mul(x, c(8)), z), c(8))), "x + z // 8");
  EXPECT_EQ(text(b.floor_div(b.mul(z, c(4)), c(6))), "z * 2 // 3");
  EXPECT_EQ(text(b.floor_mod(b.mul(z, c(4)), c(6))), "z * 2 % 3 * 2");
  EXPECT_EQ(text(b.floor_div(b.floor_div(z, c(4)), c(6))), "z // 24");
  EXPECT_EQ(text(b.floor_mod(b.floor_mod(z, c(12)), c(4))), "z % 4");
  EXPECT_EQ(b.floor_div(y, c(8)), c(0));
  EXPECT_EQ(b.floor_mod(z, c(1)), c(0));
}

TEST_F(BuilderTest, QuotientAndRemainderJoin) {
  const ExprId quotient = b.floor_div(z, c(5));
  const ExprId rest = b.floor_mod(z, c(5));
  EXPECT_EQ(b.add(b.mul(quotient, c(35)), b.mul(rest, c(7))), b.mul(z, c(7)));
  EXPECT_EQ(b.add(b.mul(rest, n), b.mul(b.mul(quotient, n), c(5))), b.mul(z, n));
  const ExprId by_symbol = b.add(b.mul(b.floor_div(z, n), n), b.floor_mod(z, n));
  EXPECT_EQ(by_symbol, z);
}

TEST_F(BuilderTest, SymbolicDivisors) {
  EXPECT_EQ(text(b.floor_div(b.add(b.mul(x, n), z), n)), "x + z // n");
  b.set_bound(vx, n);
  EXPECT_EQ(b.floor_div(b.add(b.mul(y, n), x), n), y);
  EXPECT_EQ(b.floor_mod(b.add(b.mul(y, n), x), n), x);
  EXPECT_EQ(b.less(x, n), b.boolean(true));
}

TEST_F(BuilderTest, MinimumMaximumAndComparison) {
  EXPECT_EQ(b.min(x, c(99)), x);
  EXPECT_EQ(b.max(y, c(8)), c(8));
  EXPECT_EQ(b.min(b.add(z, c(8)), b.add(z, c(3))), b.add(z, c(3)));
  EXPECT_EQ(b.min(x, y), b.min(y, x));
  EXPECT_EQ(text(b.min(b.min(z, c(5)), c(3))), "min(z, 3)");
  EXPECT_EQ(b.less(y, c(8)), b.boolean(true));
  EXPECT_EQ(b.less(c(8), y), b.boolean(false));
  EXPECT_EQ(b.logical_and(b.less(z, n), b.boolean(true)), b.less(z, n));
  EXPECT_EQ(b.max(n, c(0)), n);
}

TEST_F(BuilderTest, VectorsOfIndices) {
  EXPECT_EQ(b.add(b.ramp(x, 1, 8), b.broadcast(y, 8)), b.ramp(b.add(x, y), 1, 8));
  EXPECT_EQ(b.mul(b.ramp(x, 1, 8), b.broadcast(c(4), 8)), b.ramp(b.mul(x, c(4)), 4, 8));
  EXPECT_EQ(b.shuffle(b.ramp(x, 2, 8), none, {3}), b.add(x, c(6)));
  EXPECT_EQ(b.shuffle(b.broadcast(z, 8), none, {3, 4}), b.broadcast(z, 2));
  EXPECT_EQ(b.ramp(x, 1, 1), x);
}

TEST_F(BuilderTest, ConstantsFoldExactly) {
  const Type f = {DataType::float32, 1};
  EXPECT_EQ(b.apply(ScalarOp::add, f, b.floating(f, 0.1), b.floating(f, 0.2)),
            b.floating(f, static_cast<double>(0.1f + 0.2f)));
  EXPECT_NE(b.floating(f, 0.0), b.floating(f, -0.0));
  EXPECT_EQ(b.bitcast(f, b.constant({DataType::int32, 1}, 0x3f800000)), b.floating(f, 1));
  EXPECT_EQ(b.constant({DataType::int8, 1}, 255), b.constant({DataType::int8, 1}, -1));
  EXPECT_EQ(b.constant({DataType::uint8, 1}, -1), b.constant({DataType::uint8, 1}, 255));
  const ExprId large = b.integer(INT64_MAX);
  EXPECT_EQ(b.add(large, c(1)), b.integer(INT64_MIN));
}

TEST_F(BuilderTest, StatementsFold) {
  const StmtId one = b.barrier();
  const StmtId two = b.barrier();
  EXPECT_EQ(b.block({one}), one);
  const StmtId nested = b.block({b.block({one, two}), b.block({}), one});
  EXPECT_EQ(kernel.stmt(nested).children, (std::vector<StmtId>{one, two, one}));
  EXPECT_EQ(b.branch(b.boolean(true), one, two), one);
  EXPECT_EQ(b.branch(b.boolean(false), one, two), two);
  EXPECT_TRUE(kernel.stmt(b.branch(b.boolean(false), one)).children.empty());
}

TEST_F(BuilderTest, LongSumsShareTheirTerms) {
  ExprId sum = c(0);
  for (int i = 0; i < 20000; ++i) {
    const VariableId v = b.variable("v", index_type);
    sum = b.add(sum, b.mul(b.read(v), c(i % 7 + 1)));
  }
  EXPECT_LE(kernel.exprs.size(), 20000u * 3 + 10);  // the variable, its product, the sum so far
  EXPECT_EQ(b.add(sum, c(0)), sum);
}

// Random index expressions: the builder's result has the value that plain evaluation of the same operations has.
struct Sample {
  std::mt19937_64 random;
  Kernel kernel;
  Builder b{kernel};
  std::vector<ExprId> leaves;
  std::vector<std::pair<int64_t, int64_t>> ranges;  // of parameter, then variables
  struct Built {
    ExprId simple, raw;
  };

  explicit Sample(uint64_t seed) : random(seed) {
    kernel.parameters = {"n"};
    leaves.push_back(b.parameter(0));
    ranges.push_back({1, 12});
    for (int i = 0; i < 4; ++i) {
      const VariableId v = b.variable("v", index_type);
      const int64_t low = i == 0 ? 0 : below(20) - 10;
      const int64_t high = low + below(16);
      ranges.push_back({low, high});
      if (i != 3) b.set_range(v, low, high);
      leaves.push_back(b.read(v));
    }
  }
  int64_t below(uint64_t limit) { return static_cast<int64_t>(random() % limit); }
  ExprId raw(ExprKind kind, ScalarOp op, Native native, ExprId a, ExprId c) {
    Expr e;
    e.kind = kind;
    e.op = op;
    e.native = native;
    e.a = a;
    e.b = c;
    return b.share(e);
  }
  Built build(int depth) {
    if (depth == 0 || below(8) == 0) {
      if (below(3) == 0) {
        const ExprId e = b.integer(below(40) - 8);
        return {e, e};
      }
      const ExprId e = leaves[static_cast<size_t>(below(leaves.size()))];
      return {e, e};
    }
    const Built left = build(depth - 1);
    Built right = build(depth - 1);
    const int64_t choice = below(8);
    if (choice >= 6 && below(4) != 0) right = {b.integer(below(12) + 1), none};
    if (right.raw == none) right.raw = right.simple;
    switch (choice) {
      case 0:
      case 1:
        return {b.add(left.simple, right.simple),
                raw(ExprKind::apply, ScalarOp::add, {}, left.raw, right.raw)};
      case 2:
        return {b.sub(left.simple, right.simple),
                raw(ExprKind::apply, ScalarOp::sub, {}, left.raw, right.raw)};
      case 3:
        return {b.mul(left.simple, right.simple),
                raw(ExprKind::apply, ScalarOp::mul, {}, left.raw, right.raw)};
      case 4:
        return {b.min(left.simple, right.simple),
                raw(ExprKind::apply, ScalarOp::min, {}, left.raw, right.raw)};
      case 5:
        return {b.max(left.simple, right.simple),
                raw(ExprKind::apply, ScalarOp::max, {}, left.raw, right.raw)};
      case 6:
        return divide(left, right, Native::floor_div);
      default:
        return divide(left, right, Native::floor_mod);
    }
  }
  // A divisor that is no constant must not be 0: it is the parameter.
  Built divide(const Built& left, Built right, Native native) {
    if (!b.constant_value(right.simple)) right = {leaves[0], leaves[0]};
    const ExprId simple = native == Native::floor_div ? b.floor_div(left.simple, right.simple)
                                                      : b.floor_mod(left.simple, right.simple);
    return {simple, raw(ExprKind::native, {}, native, left.raw, right.raw)};
  }
  int64_t value(ExprId id, const std::vector<int64_t>& given) const {
    const Expr& e = kernel.exprs[id];
    switch (e.kind) {
      case ExprKind::constant:
        return e.value;
      case ExprKind::parameter:
        return given[0];
      case ExprKind::read:
        return given[static_cast<size_t>(e.value) + 1];
      default:
        break;
    }
    Scalar operands[2];
    operands[0] = scalar_of_bits(DataType::int64, value(e.a, given));
    operands[1] = scalar_of_bits(DataType::int64, value(e.b, given));
    if (e.kind == ExprKind::native) return evaluate(e.native, operands[0], operands[1]).i;
    return evaluate(e.op, operands, DataType::int64).i;
  }
};

TEST(BuilderProperty, SimplificationKeepsTheValue) {
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    Sample sample(seed);
    const Sample::Built built = sample.build(2 + static_cast<int>(seed % 4));
    const Range range = sample.b.range(built.simple);
    for (int trial = 0; trial < 20; ++trial) {
      std::vector<int64_t> given;
      for (const auto& [low, high] : sample.ranges)
        given.push_back(low + sample.below(static_cast<uint64_t>(high - low + 1)));
      const int64_t wanted = sample.value(built.raw, given);
      ASSERT_EQ(sample.value(built.simple, given), wanted)
          << "seed " << seed << ": " << expression_text(sample.kernel, built.raw) << " became "
          << expression_text(sample.kernel, built.simple);
      ASSERT_LE(range.low, wanted) << expression_text(sample.kernel, built.simple);
      ASSERT_GE(range.high, wanted) << expression_text(sample.kernel, built.simple);
    }
  }
}

TEST(Resume, SharesWhatIsThereAndLearnsRanges) {
  Kernel kernel = parse(R"(kernel k(n: int64; C: float32 out) {
  phase block b in 0..n {
    for serial i in 0..8 {
      let j: int64 = i + 8
      C[(b * 16 + j) // 16] = 0:float32
    }
  }
})");
  Builder builder = Builder::resume(kernel);
  const ExprId j = builder.read(2);
  EXPECT_EQ(builder.range(j), (Range{8, 15}));
  const ExprId b = builder.read(0);
  EXPECT_EQ(builder.floor_div(builder.add(builder.mul(b, builder.integer(16)), j), builder.integer(16)), b);
  EXPECT_EQ(builder.less(b, builder.parameter(0)), builder.boolean(true));
  const size_t count = kernel.exprs.size();
  builder.add(builder.read(1), builder.integer(8));
  EXPECT_EQ(kernel.exprs.size(), count);
}

TEST(Text, SharedExpressionsArePrintedOnce) {
  Kernel kernel;
  kernel.name = "shared";
  Builder b(kernel);
  const Type f = {DataType::float32, 1};
  const BufferId c = b.buffer({"C", DataType::float32, Scope::argument, true, none, true, false});
  const VariableId v = b.variable("b", index_type);
  ExprId e = b.load(c, b.read(v));
  for (int i = 0; i < 200; ++i) e = b.apply(ScalarOp::mul, f, e, e);
  kernel.phases = {b.loop(LoopKind::block, v, b.integer(0), b.integer(1), 1, b.store(c, b.read(v), e))};
  const std::string text = print(kernel);
  EXPECT_LT(text.size(), 20000u);
  const Kernel again = parse(text);
  EXPECT_EQ(print(again), text);
  EXPECT_EQ(count(again), count(kernel));
  EXPECT_EQ(count(again).loads, 1);
}

TEST(Text, TallExpressionsAndAnyNames) {
  Kernel kernel;
  kernel.name = "tall";
  kernel.parameters = {"batch size", "for"};
  kernel.scratch_bytes = Dim::symbol("for") * 4;
  Builder b(kernel);
  const Type f = {DataType::float32, 1};
  const BufferId c = b.buffer({"max", DataType::float32, Scope::argument, true, none, false, false});
  const VariableId v = b.variable("max", index_type);
  ExprId e = b.load(c, b.read(v));
  for (int i = 0; i < 3000; ++i) e = b.apply(ScalarOp::add, f, b.floating(f, i + 0.1), e);
  kernel.phases = {b.loop(LoopKind::block, v, b.integer(0), b.parameter(1), 1, b.store(c, b.read(v), e))};
  const std::string text = print(kernel);
  const Kernel again = parse(text);
  EXPECT_EQ(print(again), text);
  EXPECT_EQ(again.exprs.size(), kernel.exprs.size());
  EXPECT_FALSE(again.buffers[0].no_alias);
  verify(again);
}

TEST(Visit, SubstituteAndRename) {
  Kernel kernel = parse(R"(kernel k(n: int64; C: float32 out) {
  phase block b in 0..n {
    for serial i in 0..4 {
      let j: int64 = i + b
      allocate t: float32[1] scratch
      t[0] = cast<float32>(j)
      C[j] = t[0]
    }
  }
})");
  Builder b = Builder::resume(kernel);
  const StmtId phase = kernel.phases[0];
  const Stmt loop = kernel.stmts[kernel.stmts[phase].children[0]];
  const StmtId first = substitute(kernel, b, loop.children[0], loop.target, b.integer(0));
  const StmtId second = substitute(kernel, b, loop.children[0], loop.target, b.integer(1), true);
  kernel.phases = {b.loop(LoopKind::block, kernel.stmts[phase].target, b.integer(0), b.parameter(0), 2,
                          b.block({first, second}))};
  verify(kernel);
  float data[6] = {9, 9, 9, 9, 9, 9};
  const BufferArgument argument = {data, 6};
  const int64_t n = 6;
  interpret(kernel, {&argument, 1}, {&n, 1});
  for (int i = 0; i < 6; ++i) EXPECT_EQ(data[i], static_cast<float>(i));
}

TEST(Interpreter, ArgumentsThatOverlap) {
  const Kernel apart =
      parse("kernel k(; A: float32 in, C: float32 out) { phase block b in 0..2 { C[b] = A[b] + A[b] } }");
  const Kernel together = parse(
      "kernel k(; A: float32 in alias, C: float32 out alias) { phase block b in 0..2 { C[b] = A[b] + A[b] } "
      "}");
  const Kernel crossed = parse(
      "kernel k(; A: float32 in alias, C: float32 out alias) { phase block b in 0..2 { C[b] = A[1 - b] } }");
  float data[3] = {1, 2, 3};
  const BufferArgument same[2] = {{data, 2}, {data, 2}};
  const BufferArgument shifted[2] = {{data, 2}, {data + 1, 2}};
  const auto fault_of = [&](const Kernel& kernel, std::span<const BufferArgument> arguments) {
    try {
      interpret(kernel, arguments, {});
    } catch (const KernelFault& fault) {
      return std::optional<Fault>(fault.kind);
    }
    return std::optional<Fault>();
  };
  EXPECT_EQ(fault_of(apart, same), Fault::overlap);
  EXPECT_EQ(fault_of(apart, shifted), Fault::overlap);
  EXPECT_EQ(fault_of(together, same), std::nullopt);
  EXPECT_EQ(data[0], 2);
  EXPECT_EQ(data[1], 4);
  EXPECT_EQ(fault_of(crossed, same), Fault::race);
}

TEST(Interpreter, RefusesWrongArguments) {
  const Kernel kernel =
      parse("kernel k(n: int64; C: float32 out) { phase block b in 0..n { C[b] = 0:float32 } }");
  const int64_t n = 1;
  EXPECT_THROW(interpret(kernel, {}, {&n, 1}), InternalError);
  float data[1] = {};
  const BufferArgument argument = {data, 1};
  EXPECT_THROW(interpret(kernel, {&argument, 1}, {}), InternalError);
}

}  // namespace
}  // namespace fusewise::kernel

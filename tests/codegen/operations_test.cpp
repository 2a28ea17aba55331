// Every operation on every type it is defined on, scalar and as vectors, on awkward values, against numerics.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "codegen/codegen.h"
#include "kernel/evaluate.h"
#include "kernel/passes/pipeline.h"
#include "support/loaded_kernels.h"
#include "support/random_kernel.h"

namespace fusewise::test {
namespace {

constexpr DataType computable[] = {
    DataType::boolean, DataType::int8,    DataType::int16,  DataType::int32,  DataType::int64,
    DataType::uint8,   DataType::uint16,  DataType::uint32, DataType::uint64, DataType::bfloat16,
    DataType::float16, DataType::float32, DataType::float64};
constexpr size_t op_count = static_cast<size_t>(ScalarOp::xor_) + 1;

std::vector<Scalar> awkward_values(DataType type) {
  std::vector<Scalar> values;
  if (is_float(type)) {
    const double infinity = std::numeric_limits<double>::infinity();
    for (double f : {0.0,
                     -0.0,
                     1.0,
                     -1.0,
                     0.5,
                     1.5,
                     2.5,
                     -2.5,
                     3.0,
                     1e-3,
                     -7.25,
                     100.3,
                     255.9,
                     32768.5,
                     65504.0,
                     65520.0,
                     2147483648.0,
                     9.3e18,
                     1.8446744073709552e19,
                     -9.3e18,
                     1e30,
                     3.4e38,
                     -1e300,
                     infinity,
                     -infinity,
                     std::nan(""),
                     1e-40,
                     -1e-44,
                     6e-8,
                     5e-324,
                     1.0009765625,
                     1.00048828125,
                     1.001464843750001,
                     88.0})
      values.push_back(convert({DataType::float64, f, 0}, type));
    return values;
  }
  for (int64_t i : {int64_t{0},
                    int64_t{1},
                    int64_t{-1},
                    int64_t{2},
                    int64_t{3},
                    int64_t{-3},
                    int64_t{7},
                    int64_t{100},
                    int64_t{127},
                    int64_t{-128},
                    int64_t{255},
                    int64_t{32767},
                    int64_t{-32768},
                    int64_t{65535},
                    int64_t{2147483647},
                    int64_t{-2147483648},
                    int64_t{4294967295},
                    int64_t{16777217},
                    int64_t{9007199254740993},
                    std::numeric_limits<int64_t>::max(),
                    std::numeric_limits<int64_t>::min()})
    values.push_back(convert({DataType::int64, 0, i}, type));
  return values;
}

// out[i] = operation(a[i], b[i], c[i]), all pairs of values in a and b.
struct Problem {
  Kernel kernel;
  std::vector<DataType> operand_types;
  DataType result;
  std::function<Scalar(std::span<const Scalar>)> expected;
};

template <class Make>
Problem problem(std::string name, std::vector<DataType> operands, DataType result, bool vector, Make&& make) {
  Problem p;
  p.operand_types = operands;
  p.result = result;
  p.kernel.name = std::move(name);
  p.kernel.parameters = {"n"};
  Builder b(p.kernel);
  std::vector<BufferId> buffers;
  for (size_t i = 0; i < operands.size(); ++i) {
    Buffer buffer;
    buffer.name = fmt::format("in{}", i);
    buffer.element = operands[i];
    buffers.push_back(b.buffer(buffer));
  }
  Buffer out;
  out.name = "out";
  out.element = result;
  out.written = true;
  const BufferId target = b.buffer(out);
  constexpr int64_t width = 40;
  const VariableId block = b.variable("block", {}), v = b.variable("v", {});
  const ExprId at = b.add(b.mul(b.read(block), b.integer(width)), b.read(v));
  std::vector<ExprId> loads;
  for (BufferId buffer : buffers) loads.push_back(b.load(buffer, at));
  loads.resize(3, none);
  const StmtId store = b.store(target, at, make(b, loads));
  const StmtId inner =
      b.loop(vector ? LoopKind::vector : LoopKind::serial, v, b.integer(0), b.integer(width), 1, store);
  p.kernel.phases = {
      b.loop(LoopKind::block, block, b.integer(0), b.floor_div(b.parameter(0), b.integer(width)), 1, inner)};
  return p;
}

std::vector<Problem> all_problems(bool vector) {
  std::vector<Problem> problems;
  const char* form = vector ? "vector" : "scalar";
  for (DataType type : computable) {
    for (size_t i = 0; i < op_count; ++i) {
      const ScalarOp op = static_cast<ScalarOp>(i);
      if (op == ScalarOp::cast) continue;
      std::vector<DataType> operands(static_cast<size_t>(arity_of(op)), type);
      if (op == ScalarOp::select) operands[0] = DataType::boolean;
      const auto result = result_type_of(op, operands);
      if (!result) continue;
      problems.push_back(problem(fmt::format("{}_{}_{}", form, name_of(op), name_of(type)), operands, *result,
                                 vector, [&](Builder& b, const std::vector<ExprId>& x) {
                                   return b.apply(op, {*result, 1}, x[0], x[1], x[2]);
                                 }));
      problems.back().expected = [op, to = *result](std::span<const Scalar> x) {
        return evaluate(op, x, to);
      };
    }
    for (const Scalar& constant : is_float(type) ? awkward_values(type) : std::vector<Scalar>{}) {
      for (ScalarOp op : {ScalarOp::max, ScalarOp::min}) {
        for (bool constant_first : {false, true}) {
          problems.push_back(problem(fmt::format("{}_{}_constant{}_{}_{}", form, name_of(op), problems.size(),
                                                 constant_first, name_of(type)),
                                     {type}, type, vector, [&](Builder& b, const std::vector<ExprId>& x) {
                                       const ExprId c = b.constant({type, 1}, bits_of_scalar(constant));
                                       return constant_first ? b.apply(op, {type, 1}, c, x[0])
                                                             : b.apply(op, {type, 1}, x[0], c);
                                     }));
          problems.back().expected = [op, constant, type](std::span<const Scalar> x) {
            const Scalar operands[] = {x[0], constant};
            return evaluate(op, operands, type);
          };
        }
      }
    }
    for (DataType to : computable) {
      problems.push_back(problem(
          fmt::format("{}_cast_{}_{}", form, name_of(type), name_of(to)), {type}, to, vector,
          [&](Builder& b, const std::vector<ExprId>& x) { return b.apply(ScalarOp::cast, {to, 1}, x[0]); }));
      problems.back().expected = [to](std::span<const Scalar> x) { return convert(x[0], to); };
    }
    if (type == DataType::boolean) continue;
    problems.push_back(
        problem(fmt::format("{}_fma_{}", form, name_of(type)), {type, type, type}, type, vector,
                [&](Builder& b, const std::vector<ExprId>& x) { return b.fma(x[0], x[1], x[2]); }));
    problems.back().expected = [](std::span<const Scalar> x) { return evaluate_fma(x[0], x[1], x[2]); };
    for (Native op :
         {Native::copysign, Native::floor_div, Native::floor_mod, Native::shift_left, Native::shift_right}) {
      if ((op == Native::copysign) != is_float(type)) continue;
      problems.push_back(problem(fmt::format("{}_native{}_{}", form, static_cast<int>(op), name_of(type)),
                                 {type, type}, type, vector, [&](Builder& b, const std::vector<ExprId>& x) {
                                   return b.native(op, {type, 1}, x[0], x[1]);
                                 }));
      problems.back().expected = [op](std::span<const Scalar> x) { return evaluate(op, x[0], x[1]); };
    }
  }
  return problems;
}

void check_problem(const Problem& p, const LoadedKernels& library, const std::string& cpu) {
  std::vector<std::vector<Scalar>> values;
  for (DataType type : p.operand_types) values.push_back(awkward_values(type));
  values.resize(3, {Scalar{}});
  std::vector<std::array<Scalar, 3>> rows;
  for (const Scalar& a : values[0])
    for (const Scalar& b : values[1])
      for (size_t c = 0; c < values[2].size(); c += 5) rows.push_back({a, b, values[2][c]});
  while (rows.size() % 40 != 0) rows.push_back(rows.back());
  std::vector<std::vector<std::byte>> bytes;
  std::vector<void*> buffers;
  for (size_t i = 0; i <= p.operand_types.size(); ++i) {
    const DataType type = i < p.operand_types.size() ? p.operand_types[i] : p.result;
    const size_t size = static_cast<size_t>(bytes_of(type));
    bytes.emplace_back(size * rows.size());
    for (size_t row = 0; i < p.operand_types.size() && row < rows.size(); ++row)
      store_scalar(bytes[i].data() + row * size, rows[row][i]);
  }
  for (auto& buffer : bytes) buffers.push_back(buffer.data());
  const int64_t parameters[] = {static_cast<int64_t>(rows.size())};
  library.run(p.kernel, buffers, parameters);
  for (size_t row = 0; row < rows.size(); ++row) {
    const Scalar expected = p.expected(std::span(rows[row]).first(p.operand_types.size()));
    const Scalar actual =
        load_scalar(bytes.back().data() + row * static_cast<size_t>(bytes_of(p.result)), p.result);
    const bool both_nan = is_float(p.result) && std::isnan(expected.f) && std::isnan(actual.f);
    const bool same = both_nan || (expected.i == actual.i && expected.f == actual.f &&
                                   std::signbit(expected.f) == std::signbit(actual.f));
    ASSERT_TRUE(same) << p.kernel.name << " on " << cpu << " of " << rows[row][0].f << "/" << rows[row][0].i
                      << ", " << rows[row][1].f << "/" << rows[row][1].i << ", " << rows[row][2].f << "/"
                      << rows[row][2].i << " is " << actual.f << "/" << actual.i << ", not " << expected.f
                      << "/" << expected.i;
  }
}

class Operations : public testing::TestWithParam<std::string> {};

TEST_P(Operations, AreWhatNumericsSays) {
  if (!codegen::host_runs(GetParam())) GTEST_SKIP() << "this processor does not run code for " << GetParam();
  const codegen::CpuTarget target = codegen::target_named(GetParam());
  for (bool vector : {false, true}) {
    std::vector<Problem> problems = all_problems(vector);
    std::vector<Kernel> kernels;
    for (Problem& p : problems) {
      PassOptions options;
      options.vector_bits = target.vector_bits;
      p.kernel = run_passes(p.kernel, options);
      kernels.push_back(p.kernel);
    }
    const LoadedKernels library(kernels, target);
    for (const Problem& p : problems) EXPECT_NO_FATAL_FAILURE(check_problem(p, library, GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Operations, testing::Values("x86-64-v3", "x86-64-v4"),
                         [](const auto& given) { return given.param == "x86-64-v3" ? "avx2" : "avx512"; });

}  // namespace
}  // namespace fusewise::test

// Random small kernels with data that fits them: what the tests of kernel passes and of code generation compare the
// interpreter with. Every kernel is valid, stays inside its buffers, and stores each output element once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "kernel/kernel.h"
#include "numerics/scalar_op.h"

namespace fusewise::test {

using namespace fusewise::kernel;

class RandomKernel {
 public:
  struct Argument {
    DataType type;
    int64_t elements;
    std::vector<std::byte> bytes;
  };

  Kernel kernel;
  std::vector<Argument> arguments;
  std::vector<int64_t> parameters;

  // `with_functions`: exp and the like occur too.
  RandomKernel(uint64_t seed, bool with_functions)
      : builder_(kernel), random_(seed), functions_(with_functions) {
    kernel.name = fmt::format("random_{}", seed);
    build();
    fill();
  }

 private:
  struct LoopVariable {
    VariableId variable;
    int64_t extent;
  };

  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  bool chance(int percent) { return pick(100) < percent; }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return *(list.begin() + pick(static_cast<int>(list.size())));
  }

  DataType any_type() {
    return one_of({DataType::boolean, DataType::int8, DataType::int16, DataType::int32, DataType::int64,
                   DataType::uint8, DataType::uint16, DataType::uint32, DataType::uint64, DataType::bfloat16,
                   DataType::float16, DataType::float32, DataType::float32, DataType::float32,
                   DataType::float64});
  }

  // The extent of a loop as a constant or, where the kind of loop allows it, as a parameter of that value.
  ExprId extent_expr(LoopKind kind, int64_t extent) {
    if (kind == LoopKind::vector || kind == LoopKind::unrolled || chance(60)) return builder_.integer(extent);
    for (size_t i = 0; i < parameters.size(); ++i)
      if (parameters[i] == extent) return builder_.parameter(static_cast<int>(i));
    return builder_.integer(extent);
  }

  // Arguments come before all other buffers, so they are made at once.
  void declare() {
    for (int64_t value : {int64_t{0}, int64_t{1}, int64_t{3}, int64_t{5}, int64_t{17}, int64_t{40}}) {
      kernel.parameters.push_back(fmt::format("p{}", value));
      parameters.push_back(value);
    }
    for (int i = 0; i < 5; ++i)
      add_argument(fmt::format("in{}", i), i == 0 ? DataType::float32 : any_type(), false);
    add_argument("indices", DataType::int64, false);
    for (int i = 0; i < 2; ++i) add_argument(fmt::format("out{}", i), any_type(), true);
  }

  void add_argument(const std::string& name, DataType type, bool written) {
    Buffer buffer;
    buffer.name = name;
    buffer.element = type;
    buffer.written = written;
    builder_.buffer(buffer);
    arguments.push_back({type, 1, {}});
  }

  void build() {
    declare();
    const int64_t blocks = one_of<int64_t>({1, 2, 3});
    const VariableId grid = builder_.variable("block", {});
    loops_ = {{grid, blocks}};
    const int outer = pick(3);
    for (int i = 0; i < outer; ++i) {
      const VariableId variable = builder_.variable(fmt::format("i{}", i), {});
      loops_.push_back({variable, one_of<int64_t>({1, 2, 3, 5})});
      builder_.set_range(variable, 0, loops_.back().extent - 1);
    }
    std::vector<StmtId> statements = chance(50) ? accumulation() : std::vector<StmtId>{};
    const VariableId lane = builder_.variable("v", {});
    loops_.push_back({lane, one_of<int64_t>({1, 3, 5, 7, 8, 16, 17, 20, 33, 40, 300})});
    builder_.set_range(lane, 0, loops_.back().extent - 1);
    if (chance(50)) {
      Buffer buffer;
      buffer.name = "memo";
      buffer.element = arguments[static_cast<size_t>(pick(5))].type;
      buffer.scope = Scope::scratch;
      buffer.size = builder_.integer(loops_.back().extent);
      memo_ = builder_.buffer(buffer);
      statements.push_back(builder_.allocate(memo_));
    }
    const StmtId inner = builder_.block(body(true));
    const LoopKind kind = chance(80) ? LoopKind::vector : LoopKind::serial;
    statements.push_back(
        builder_.loop(kind, lane, builder_.integer(0), extent_expr(kind, loops_.back().extent), 1, inner));
    StmtId nest = builder_.block(std::move(statements));
    for (int i = outer; i > 0; --i) {
      const LoopVariable& loop = loops_[static_cast<size_t>(i)];
      const LoopKind outer_kind = chance(50) ? LoopKind::unrolled : LoopKind::serial;
      nest = builder_.loop(outer_kind, loop.variable, builder_.integer(0),
                           extent_expr(outer_kind, loop.extent), 1, nest);
    }
    kernel.phases = {builder_.loop(LoopKind::block, grid, builder_.integer(0),
                                   extent_expr(LoopKind::block, blocks), 1, nest)};
  }

  // A register tile that sums products over a serial loop, and a copy of it in scratch that bodies may read.
  std::vector<StmtId> accumulation() {
    const int64_t rows = one_of<int64_t>({1, 2, 3}), columns = one_of<int64_t>({1, 4, 16, 20});
    const int64_t depth = one_of<int64_t>({0, 1, 3, 5, 17});
    const DataType type = one_of({DataType::float32, DataType::float64, DataType::int32});
    Buffer buffer;
    buffer.name = "acc";
    buffer.element = type;
    buffer.scope = Scope::registers;
    buffer.size = builder_.integer(rows * columns);
    const BufferId acc = builder_.buffer(buffer);
    buffer.name = "tile";
    buffer.scope = Scope::scratch;
    const BufferId tile = builder_.buffer(buffer);
    const VariableId k = builder_.variable("k", {});
    const auto tile_loop = [&](auto&& statement) {
      const VariableId u = builder_.variable("u", {}), v = builder_.variable("w", {});
      const size_t depth_before = loops_.size();
      loops_.push_back({u, rows});
      loops_.push_back({v, columns});
      builder_.set_range(u, 0, rows - 1);
      builder_.set_range(v, 0, columns - 1);
      const ExprId at =
          builder_.add(builder_.mul(builder_.read(u), builder_.integer(columns)), builder_.read(v));
      const StmtId inner = statement(at);
      loops_.resize(depth_before);
      return builder_.loop(
          LoopKind::unrolled, u, builder_.integer(0), builder_.integer(rows), 1,
          builder_.loop(LoopKind::vector, v, builder_.integer(0), builder_.integer(columns), 1, inner));
    };
    const StmtId clear =
        tile_loop([&](ExprId at) { return builder_.store(acc, at, builder_.constant({type, 1}, 0)); });
    loops_.push_back({k, std::max<int64_t>(depth, 1)});
    builder_.set_range(k, 0, std::max<int64_t>(depth - 1, 0));
    const StmtId update = tile_loop([&](ExprId at) {
      return builder_.store(acc, at, builder_.fma(value(type, 0), value(type, 0), builder_.load(acc, at)));
    });
    loops_.pop_back();
    const StmtId sum = builder_.loop(LoopKind::serial, k, builder_.integer(0),
                                     extent_expr(LoopKind::serial, depth), 1, update);
    const StmtId copy =
        tile_loop([&](ExprId at) { return builder_.store(tile, at, builder_.load(acc, at)); });
    tiles_.push_back({tile, rows * columns});
    return {builder_.allocate(acc), builder_.allocate(tile), clear, sum, copy};
  }

  std::vector<StmtId> body(bool may_branch) {
    std::vector<StmtId> statements;
    if (chance(40)) {
      const DataType type = any_type();
      const VariableId variable = builder_.variable("t", {type, 1});
      statements.push_back(builder_.let(variable, value(type, 2)));
      lets_.push_back(variable);
    }
    if (chance(40)) {
      const DataType type = any_type();
      changing_ = builder_.variable("m", {type, 1}, true);
      statements.push_back(builder_.assign(changing_, value(type, 2)));
      is_assigned_ = true;
    }
    for (BufferId i = 0; i < arguments.size(); ++i) {
      if (!kernel.buffers[i].written) continue;
      if (memo_ != none) {
        // Written again and again, and read between.
        const DataType type = kernel.buffers[memo_].element;
        statements.push_back(builder_.store(memo_, builder_.read(loops_.back().variable), value(type, 2)));
        is_stored_ = true;
      }
      if (is_assigned_ && chance(60)) {
        const StmtId assign = builder_.assign(changing_, value(kernel.variables[changing_].type.element, 2));
        statements.push_back(chance(50) ? builder_.branch(value(DataType::boolean, 1), assign) : assign);
      }
      const ExprId index = output_index(i);
      const ExprId mask = chance(25) ? value(DataType::boolean, 2) : none;
      const StmtId store = builder_.store(i, index, value(kernel.buffers[i].element, 3), mask);
      const bool branches = may_branch && chance(25);
      statements.push_back(branches ? builder_.branch(value(DataType::boolean, 1), store) : store);
    }
    return statements;
  }

  // Row-major over all loops, or with a gap between neighbours.
  ExprId output_index(BufferId buffer) {
    const int64_t stride = chance(80) ? 1 : 2;
    ExprId index = builder_.integer(pick(3));
    int64_t size = 1;
    ExprId position = builder_.integer(0);
    for (const LoopVariable& loop : loops_) {
      position =
          builder_.add(builder_.mul(position, builder_.integer(loop.extent)), builder_.read(loop.variable));
      size *= loop.extent;
    }
    index = builder_.add(index, builder_.mul(position, builder_.integer(stride)));
    need(buffer, size * stride + 2);
    return index;
  }

  void need(BufferId buffer, int64_t elements) {
    arguments[buffer].elements = std::max(arguments[buffer].elements, elements);
  }

  ExprId input_index(BufferId buffer) {
    if (chance(12)) {
      const BufferId indices = 5;
      need(buffer, gather_range);
      return builder_.load(indices, affine_index(indices));
    }
    return affine_index(buffer);
  }

  ExprId affine_index(BufferId buffer) {
    int64_t greatest = pick(4);
    ExprId index = builder_.integer(greatest);
    for (const LoopVariable& loop : loops_) {
      const int64_t coefficient = one_of<int64_t>({0, 1, 1, 1, 2, 7});
      ExprId term = builder_.read(loop.variable);
      int64_t top = loop.extent - 1;
      if (chance(10)) {
        const int64_t divisor = one_of<int64_t>({2, 3, 8, 16});
        if (chance(50)) {
          term = builder_.floor_div(term, builder_.integer(divisor));
          top /= divisor;
        } else {
          term = builder_.floor_mod(term, builder_.integer(divisor));
          top = std::min(top, divisor - 1);
        }
      } else if (chance(10)) {
        term = builder_.sub(builder_.integer(top), term);
      }
      index = builder_.add(index, builder_.mul(term, builder_.integer(coefficient)));
      greatest += coefficient * top;
    }
    need(buffer, greatest + 1);
    return index;
  }

  // A scalar expression of the type, of at most this depth.
  ExprId value(DataType type, int depth) {
    if (depth <= 0 || chance(15)) return leaf(type);
    if (chance(15)) return builder_.apply(ScalarOp::cast, {type, 1}, value(any_type(), depth - 1));
    if (chance(10))
      return builder_.apply(ScalarOp::select, {type, 1}, value(DataType::boolean, depth - 1),
                            value(type, depth - 1), value(type, depth - 1));
    if (type == DataType::boolean) return condition(depth);
    if (is_float(type) && functions_ && chance(35)) return function(type, depth);
    if (chance(12))
      return builder_.fma(value(type, depth - 1), value(type, depth - 1), value(type, depth - 1));
    if (!is_float(type) && chance(15)) {
      const Native op =
          one_of({Native::floor_div, Native::floor_mod, Native::shift_left, Native::shift_right});
      return builder_.native(op, {type, 1}, value(type, depth - 1), value(type, depth - 1));
    }
    ScalarOp op =
        one_of({ScalarOp::abs, ScalarOp::add, ScalarOp::ceil, ScalarOp::div, ScalarOp::floor, ScalarOp::max,
                ScalarOp::min, ScalarOp::mod, ScalarOp::mul, ScalarOp::neg, ScalarOp::remainder,
                ScalarOp::round, ScalarOp::sign, ScalarOp::sub, ScalarOp::trunc});
    if (is_float(type) && chance(8)) op = ScalarOp::sqrt;
    if (!is_float(type) && chance(20))
      op = one_of({ScalarOp::and_, ScalarOp::or_, ScalarOp::xor_, ScalarOp::not_});
    const ExprId a = value(type, depth - 1);
    return builder_.apply(op, {type, 1}, a, arity_of(op) > 1 ? value(type, depth - 1) : none);
  }

  ExprId function(DataType type, int depth) {
    const ScalarOp op = one_of({ScalarOp::atan, ScalarOp::cos, ScalarOp::erf, ScalarOp::exp, ScalarOp::log,
                                ScalarOp::pow, ScalarOp::sin, ScalarOp::tan, ScalarOp::tanh});
    const ExprId a = value(type, depth - 1);
    return builder_.apply(op, {type, 1}, a, arity_of(op) > 1 ? value(type, depth - 1) : none);
  }

  ExprId condition(int depth) {
    const Type boolean = {DataType::boolean, 1};
    if (chance(25)) {
      const ScalarOp op = one_of({ScalarOp::and_, ScalarOp::or_, ScalarOp::xor_, ScalarOp::equal});
      return builder_.apply(op, boolean, value(DataType::boolean, depth - 1),
                            value(DataType::boolean, depth - 1));
    }
    if (chance(30)) {
      const LoopVariable& loop = loops_[static_cast<size_t>(pick(static_cast<int>(loops_.size())))];
      return builder_.apply(ScalarOp::less, boolean, builder_.read(loop.variable),
                            builder_.integer(pick(20)));
    }
    const DataType type = any_type();
    const ScalarOp op = one_of({ScalarOp::equal, ScalarOp::not_equal, ScalarOp::less, ScalarOp::less_equal,
                                ScalarOp::greater, ScalarOp::greater_equal});
    if (is_float(type) && chance(30))
      return builder_.apply(one_of({ScalarOp::is_nan, ScalarOp::is_inf}), boolean, value(type, depth - 1));
    return builder_.apply(op, boolean, value(type, depth - 1), value(type, depth - 1));
  }

  ExprId leaf(DataType type) {
    if (chance(10)) return constant(type);
    if (type == DataType::int64 && chance(30)) return builder_.read(loops_.back().variable);
    if (is_stored_ && kernel.buffers[memo_].element == type && chance(60))
      return builder_.load(memo_, builder_.read(loops_.back().variable));
    if (is_assigned_ && kernel.variables[changing_].type.element == type && chance(50))
      return builder_.read(changing_);
    std::vector<VariableId> fitting;
    for (VariableId variable : lets_)
      if (kernel.variables[variable].type.element == type) fitting.push_back(variable);
    if (!fitting.empty() && chance(50))
      return builder_.read(fitting[static_cast<size_t>(pick(static_cast<int>(fitting.size())))]);
    for (const auto& [tile, size] : tiles_)
      if (kernel.buffers[tile].element == type && chance(50))
        return builder_.load(
            tile, builder_.floor_mod(builder_.read(loops_.back().variable), builder_.integer(size)));
    std::vector<BufferId> inputs;
    for (BufferId i = 0; i < 5; ++i)
      if (kernel.buffers[i].element == type) inputs.push_back(i);
    if (inputs.empty()) {
      const BufferId any = static_cast<BufferId>(pick(5));
      return builder_.apply(ScalarOp::cast, {type, 1}, builder_.load(any, input_index(any)));
    }
    const BufferId input = inputs[static_cast<size_t>(pick(static_cast<int>(inputs.size())))];
    const ExprId index = input_index(input);
    if (!chance(15)) return builder_.load(input, index);
    const ExprId mask = builder_.apply(ScalarOp::less, {DataType::boolean, 1},
                                       builder_.read(loops_.back().variable), builder_.integer(pick(20)));
    return builder_.load(input, index, mask);
  }

  ExprId constant(DataType type) {
    if (is_float(type)) {
      const double infinity = std::numeric_limits<double>::infinity();
      return builder_.floating(
          {type, 1}, one_of({0.0, -0.0, 1.0, -2.5, 1e-3, 88.0, 3e38, infinity, -infinity, std::nan("")}));
    }
    return builder_.constant({type, 1},
                             one_of<int64_t>({0, 1, -1, 2, 3, 7, 100, std::numeric_limits<int64_t>::min()}));
  }

  double random_float() {
    if (chance(6)) {
      const double infinity = std::numeric_limits<double>::infinity();
      return one_of({0.0, -0.0, infinity, -infinity, std::nan(""), 1e-40, -3e-39, 1e-310, 6e-8, 65504.0,
                     1e300, 3.4e38});
    }
    const double scale = one_of({0.01, 1.0, 1.0, 10.0, 1e5});
    return std::uniform_real_distribution<double>(-scale, scale)(random_);
  }

  void fill() {
    for (size_t i = 0; i < arguments.size(); ++i) {
      Argument& argument = arguments[i];
      const size_t size = static_cast<size_t>(bytes_of(argument.type));
      argument.bytes.resize(size * static_cast<size_t>(argument.elements));
      for (int64_t e = 0; e < argument.elements; ++e) {
        Scalar number;
        number.type = DataType::float64;
        number.f = random_float();
        if (!is_float(argument.type)) {
          number.type = DataType::int64;
          number.i = chance(50) ? pick(200) - 100 : static_cast<int64_t>(random_());
          if (i == 5) number.i = pick(gather_range);
        }
        store_scalar(argument.bytes.data() + static_cast<size_t>(e) * size, convert(number, argument.type));
      }
    }
  }

  static constexpr int gather_range = 37;
  Builder builder_;
  std::mt19937_64 random_;
  bool functions_;
  std::vector<LoopVariable> loops_;
  std::vector<VariableId> lets_;
  BufferId memo_ = none;  // scratch of one element per iteration of the innermost loop
  bool is_stored_ = false;
  VariableId changing_ = none;  // a mutable variable of the innermost body
  bool is_assigned_ = false;
  std::vector<std::pair<BufferId, int64_t>> tiles_;
};

// The first element in which two results of one type differ, bit by bit but for NaN; -1 when none.
inline int64_t first_difference(DataType type, const std::vector<std::byte>& a,
                                const std::vector<std::byte>& b) {
  const size_t size = static_cast<size_t>(bytes_of(type));
  for (size_t e = 0; e * size < a.size(); ++e) {
    if (std::memcmp(a.data() + e * size, b.data() + e * size, size) == 0) continue;
    const Scalar left = load_scalar(a.data() + e * size, type),
                 right = load_scalar(b.data() + e * size, type);
    if (is_float(type) && std::isnan(left.f) && std::isnan(right.f)) continue;
    return static_cast<int64_t>(e);
  }
  return -1;
}

}  // namespace fusewise::test

// Constructors of expressions and statements; index arithmetic is in builder_index.cpp.
#include <algorithm>

#include "base/error.h"
#include "kernel/evaluate.h"
#include "kernel/kernel.h"

namespace fusewise::kernel {

int Kernel::argument_count() const {
  return static_cast<int>(std::count_if(buffers.begin(), buffers.end(), [](const Buffer& buffer) {
    return buffer.scope == Scope::argument && !buffer.is_alias;
  }));
}

size_t Builder::ExprHash::operator()(const Expr& e) const {
  uint64_t hash = static_cast<uint64_t>(e.kind) | static_cast<uint64_t>(e.op) << 8 |
                  static_cast<uint64_t>(e.native) << 16 | static_cast<uint64_t>(e.type.element) << 24 |
                  static_cast<uint64_t>(e.type.lanes) << 32;
  const auto mix = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 29;
  };
  mix(static_cast<uint64_t>(e.a) | static_cast<uint64_t>(e.b) << 32);
  mix(e.c);
  mix(static_cast<uint64_t>(e.value));
  return static_cast<size_t>(hash);
}

Builder Builder::resume(Kernel& kernel) {
  Builder builder(kernel);
  builder.known_.reserve(kernel.exprs.size() * 2);
  for (ExprId id = 0; id < kernel.exprs.size(); ++id) builder.known_.emplace(kernel.exprs[id], id);
  for (size_t i = 0; i < kernel.patterns.size(); ++i)
    builder.patterns_.emplace(kernel.patterns[i], static_cast<int64_t>(i));
  for (const StmtId phase : kernel.phases) builder.learn(phase);
  return builder;
}

ExprId Builder::intern(const Expr& expr) {
  const auto [entry, is_new] = known_.try_emplace(expr, static_cast<ExprId>(kernel_.exprs.size()));
  if (!is_new) return entry->second;
  kernel_.exprs.push_back(expr);
  if (expr.kind == ExprKind::read) {
    Known& variable = known(static_cast<VariableId>(expr.value));
    if (variable.read == none) variable.read = entry->second;
  }
  return entry->second;
}

StmtId Builder::intern(Stmt stmt) {
  kernel_.stmts.push_back(std::move(stmt));
  return static_cast<StmtId>(kernel_.stmts.size() - 1);
}

ExprId Builder::constant(Type type, int64_t bits) {
  Expr e;
  e.kind = ExprKind::constant;
  e.type = type;
  e.value = canonical_bits(type.element, bits);
  return intern(e);
}

ExprId Builder::floating(Type type, double value) {
  Scalar number;
  number.type = DataType::float64;
  number.f = value;
  return constant(type, bits_of_scalar(convert(number, type.element)));
}

ExprId Builder::parameter(int index) {
  check(index >= 0 && static_cast<size_t>(index) < kernel_.parameters.size(), "no such parameter");
  Expr e;
  e.kind = ExprKind::parameter;
  e.value = index;
  return intern(e);
}

ExprId Builder::read(VariableId variable) {
  Expr e;
  e.kind = ExprKind::read;
  e.type = kernel_.variables.at(variable).type;
  e.value = variable;
  return intern(e);
}

namespace {

bool is_constant(const Expr& e) { return e.kind == ExprKind::constant; }

}  // namespace

// The constant that the operation gives, or none when an operand is no constant.
ExprId Builder::fold(ScalarOp op, Type result, ExprId a, ExprId b, ExprId c) {
  Scalar operands[3];
  size_t count = 0;
  for (const ExprId id : {a, b, c}) {
    if (id == none) break;
    const Expr& e = kernel_.exprs[id];
    if (!is_constant(e) || !is_computable(e.type.element)) return none;
    operands[count++] = scalar_of_bits(e.type.element, e.value);
  }
  if (!is_computable(result.element)) return none;
  return constant(result, bits_of_scalar(evaluate(op, {operands, count}, result.element)));
}

ExprId Builder::apply(ScalarOp op, Type result, ExprId a, ExprId b, ExprId c) {
  if (const ExprId folded = fold(op, result, a, b, c); folded != none) return folded;
  const Type type = kernel_.exprs[a].type;
  if (type.element == DataType::int64 && result == type) {
    // Sums and products wrap alike in any order.
    if (op == ScalarOp::add) return add(a, b);
    if (op == ScalarOp::sub) return sub(a, b);
    if (op == ScalarOp::mul) return mul(a, b);
  }
  // Of what has a known range and loads nothing it is safe to assume that it does not leave 64 bits.
  if ((op == ScalarOp::min || op == ScalarOp::max || op == ScalarOp::less) && is_index(a) && is_bounded(a) &&
      is_bounded(b)) {
    if (op == ScalarOp::less) return less(a, b);
    return op == ScalarOp::min ? min(a, b) : max(a, b);
  }
  if (op == ScalarOp::cast && type == result) return a;
  // Times or by 1 is exact for every number; NaN stays NaN.
  const auto is_one = [&](ExprId id) {
    const Expr& x = kernel_.exprs[id];
    return is_constant(x) && scalar_of_bits(x.type.element, x.value).f == 1;
  };
  if ((op == ScalarOp::mul || op == ScalarOp::div) && is_float(result.element)) {
    if (is_one(b)) return a;
    if (op == ScalarOp::mul && is_one(a)) return b;
  }
  if (op == ScalarOp::select) {
    if (b == c) return b;
    if (is_constant(kernel_.exprs[a])) return kernel_.exprs[a].value != 0 ? b : c;
  }
  Expr e;
  e.kind = ExprKind::apply;
  e.op = op;
  e.type = result;
  e.a = a;
  e.b = b;
  e.c = c;
  return intern(e);
}

ExprId Builder::native(Native op, Type result, ExprId a, ExprId b) {
  const Expr& left = kernel_.exprs[a];
  const Expr& right = kernel_.exprs[b];
  if (is_constant(left) && is_constant(right) && is_computable(left.type.element)) {
    return constant(result, bits_of_scalar(evaluate(op, scalar_of_bits(left.type.element, left.value),
                                                    scalar_of_bits(right.type.element, right.value))));
  }
  Expr e;
  e.kind = ExprKind::native;
  e.native = op;
  e.type = result;
  e.a = a;
  e.b = b;
  return intern(e);
}

ExprId Builder::fma(ExprId a, ExprId b, ExprId c) {
  const Expr operands[3] = {kernel_.exprs[a], kernel_.exprs[b], kernel_.exprs[c]};
  const Type type = operands[2].type;
  if (is_constant(operands[0]) && is_constant(operands[1]) && is_constant(operands[2]) &&
      is_computable(type.element)) {
    Scalar numbers[3];
    for (size_t i = 0; i < 3; ++i) numbers[i] = scalar_of_bits(type.element, operands[i].value);
    return constant(type, bits_of_scalar(evaluate_fma(numbers[0], numbers[1], numbers[2])));
  }
  Expr e;
  e.kind = ExprKind::fma;
  e.type = type;
  e.a = a;
  e.b = b;
  e.c = c;
  return intern(e);
}

ExprId Builder::bitcast(Type type, ExprId a) {
  const Expr source = kernel_.exprs[a];
  if (source.type == type) return a;
  if (source.type.lanes == type.lanes) {
    if (is_constant(source)) return constant(type, source.value);
    if (source.kind == ExprKind::bitcast) return bitcast(type, source.a);
  }
  Expr e;
  e.kind = ExprKind::bitcast;
  e.type = type;
  e.a = a;
  return intern(e);
}

ExprId Builder::load(BufferId buffer, ExprId index, ExprId mask) {
  Expr e;
  e.kind = ExprKind::load;
  e.type = {kernel_.buffers.at(buffer).element, kernel_.exprs[index].type.lanes};
  if (mask != none && is_constant(kernel_.exprs[mask])) {
    if (kernel_.exprs[mask].value == 0) return constant(e.type, 0);
    mask = none;
  }
  e.a = index;
  e.b = mask;
  e.value = buffer;
  return intern(e);
}

ExprId Builder::ramp(ExprId base, int64_t stride, int lanes) {
  if (lanes == 1) return base;
  if (stride == 0) return broadcast(base, lanes);
  Expr e;
  e.kind = ExprKind::ramp;
  e.type = {DataType::int64, static_cast<uint16_t>(lanes)};
  e.a = base;
  e.value = stride;
  return intern(e);
}

ExprId Builder::broadcast(ExprId scalar, int lanes) {
  const Expr source = kernel_.exprs[scalar];
  check(source.type.lanes == 1, "only a scalar can be broadcast");
  if (lanes == 1) return scalar;
  const Type type = {source.type.element, static_cast<uint16_t>(lanes)};
  if (is_constant(source)) return constant(type, source.value);
  Expr e;
  e.kind = ExprKind::broadcast;
  e.type = type;
  e.a = scalar;
  return intern(e);
}

ExprId Builder::shuffle(ExprId a, ExprId b, std::vector<int> lanes) {
  const Expr first = kernel_.exprs[a];
  const int width = first.type.lanes;
  const int count = static_cast<int>(lanes.size());
  check(count > 0, "a shuffle without lanes");
  const auto same = [&](int lane) { return lane == lanes[0]; };
  const bool one_lane = std::all_of(lanes.begin(), lanes.end(), same);
  if (b != none && std::all_of(lanes.begin(), lanes.end(), [&](int lane) { return lane < width; })) b = none;
  if (b == none) {
    bool identity = count == width;
    for (int i = 0; identity && i < count; ++i) identity = lanes[static_cast<size_t>(i)] == i;
    if (identity) return a;
    if (is_constant(first)) return constant({first.type.element, static_cast<uint16_t>(count)}, first.value);
    if (first.kind == ExprKind::broadcast) return broadcast(first.a, count);
    if (first.kind == ExprKind::ramp && one_lane)
      return broadcast(add(first.a, mul(integer(lanes[0]), integer(first.value))), count);
    if (width == 1) return broadcast(a, count);
  }
  const auto [pattern, is_new] = patterns_.try_emplace(lanes, static_cast<int64_t>(kernel_.patterns.size()));
  if (is_new) kernel_.patterns.push_back(std::move(lanes));
  Expr e;
  e.kind = ExprKind::shuffle;
  e.type = {first.type.element, static_cast<uint16_t>(count)};
  e.a = a;
  e.b = b;
  e.value = pattern->second;
  return intern(e);
}

std::optional<int64_t> Builder::constant_value(ExprId a) const {
  const Expr& e = kernel_.exprs[a];
  if (!is_constant(e) || is_float(e.type.element)) return std::nullopt;
  return e.value;
}

VariableId Builder::variable(std::string name, Type type, bool is_mutable) {
  kernel_.variables.push_back({std::move(name), type, is_mutable});
  return static_cast<VariableId>(kernel_.variables.size() - 1);
}

BufferId Builder::buffer(Buffer buffer) {
  kernel_.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(kernel_.buffers.size() - 1);
}

StmtId Builder::block(std::vector<StmtId> statements) {
  const auto is_block = [&](StmtId id) { return kernel_.stmts[id].kind == StmtKind::block; };
  if (statements.size() == 1) return statements[0];
  if (std::any_of(statements.begin(), statements.end(), is_block)) {
    std::vector<StmtId> flat;
    for (const StmtId id : statements) {
      if (is_block(id)) {
        const std::vector<StmtId>& inner = kernel_.stmts[id].children;
        flat.insert(flat.end(), inner.begin(), inner.end());
      } else {
        flat.push_back(id);
      }
    }
    return block(std::move(flat));
  }
  Stmt stmt;
  stmt.kind = StmtKind::block;
  stmt.children = std::move(statements);
  return intern(std::move(stmt));
}

StmtId Builder::loop(LoopKind kind, VariableId variable, ExprId begin, ExprId end, int64_t step,
                     StmtId body) {
  check(step > 0, "the step of a loop must be positive");
  Stmt stmt;
  stmt.kind = StmtKind::loop;
  stmt.loop = kind;
  stmt.target = variable;
  stmt.a = begin;
  stmt.b = end;
  stmt.value = step;
  stmt.children = {body};
  return intern(std::move(stmt));
}

StmtId Builder::branch(ExprId condition, StmtId then, StmtId otherwise) {
  if (const auto value = constant_value(condition)) {
    if (*value != 0) return then;
    return otherwise != none ? otherwise : block({});
  }
  Stmt stmt;
  stmt.kind = StmtKind::branch;
  stmt.a = condition;
  stmt.children = {then};
  if (otherwise != none) stmt.children.push_back(otherwise);
  return intern(std::move(stmt));
}

StmtId Builder::let(VariableId variable, ExprId value) {
  if (is_index(value)) {
    const Range r = range(value);
    if (is_bounded(value) && known(variable).range == Range{}) set_range(variable, r.low, r.high);
  }
  Stmt stmt;
  stmt.kind = StmtKind::let;
  stmt.target = variable;
  stmt.a = value;
  return intern(std::move(stmt));
}

StmtId Builder::assign(VariableId variable, ExprId value) {
  Stmt stmt;
  stmt.kind = StmtKind::assign;
  stmt.target = variable;
  stmt.a = value;
  return intern(std::move(stmt));
}

StmtId Builder::allocate(BufferId buffer) {
  Stmt stmt;
  stmt.kind = StmtKind::allocate;
  stmt.target = buffer;
  return intern(std::move(stmt));
}

StmtId Builder::alias(BufferId target, BufferId source, ExprId offset) {
  Buffer& buffer = kernel_.buffers.at(target);
  buffer.is_alias = true;
  buffer.scope = kernel_.buffers.at(source).scope;
  buffer.written = kernel_.buffers[source].written;
  Stmt stmt;
  stmt.kind = StmtKind::alias;
  stmt.target = target;
  stmt.a = offset;
  stmt.value = source;
  return intern(std::move(stmt));
}

StmtId Builder::store(BufferId buffer, ExprId index, ExprId value, ExprId mask) {
  if (mask != none && is_constant(kernel_.exprs[mask])) {
    if (kernel_.exprs[mask].value == 0) return block({});
    mask = none;
  }
  Stmt stmt;
  stmt.kind = StmtKind::store;
  stmt.target = buffer;
  stmt.a = index;
  stmt.b = value;
  stmt.c = mask;
  return intern(std::move(stmt));
}

StmtId Builder::barrier() {
  Stmt stmt;
  stmt.kind = StmtKind::barrier;
  return intern(std::move(stmt));
}

StmtId Builder::prefetch(BufferId buffer, ExprId index, int level) {
  Stmt stmt;
  stmt.kind = StmtKind::prefetch;
  stmt.target = buffer;
  stmt.a = index;
  stmt.value = level;
  return intern(std::move(stmt));
}

}  // namespace fusewise::kernel

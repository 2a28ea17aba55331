// Elementwise operations: typed loops for floats (the half types in pieces of float32), a number at a time
// for the rest.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "graph/interpreter/arithmetic.h"
#include "graph/interpreter/convert.h"
#include "graph/interpreter/evaluate.h"
#include "numerics/functions.h"

namespace fusewise::graph {

namespace {

template <class T, class F>
void unary(std::span<const T* const> x, T* to, int64_t count, F f) {
  const T* a = x[0];
  for (int64_t i = 0; i < count; ++i) to[i] = f(a[i]);
}
template <class T, class R, class F>
void binary(std::span<const T* const> x, R* to, int64_t count, F f) {
  const T *a = x[0], *b = x[1];
  for (int64_t i = 0; i < count; ++i) to[i] = f(a[i], b[i]);
}

// False when this operation has no loop of its own.
template <class T>
bool float_loop(ScalarOp op, std::span<const T* const> x, T* to, int64_t n) {
  switch (op) {
    case ScalarOp::abs:
      unary(x, to, n, [](T a) { return std::abs(a); });
      return true;
    case ScalarOp::add:
      binary(x, to, n, [](T a, T b) { return a + b; });
      return true;
    case ScalarOp::ceil:
      unary(x, to, n, [](T a) { return std::ceil(a); });
      return true;
    case ScalarOp::div:
      binary(x, to, n, [](T a, T b) { return a / b; });
      return true;
    case ScalarOp::floor:
      unary(x, to, n, [](T a) { return std::floor(a); });
      return true;
    case ScalarOp::max:
      binary(x, to, n, greater_of<T>);
      return true;
    case ScalarOp::min:
      binary(x, to, n, lesser_of<T>);
      return true;
    case ScalarOp::mul:
      binary(x, to, n, [](T a, T b) { return a * b; });
      return true;
    case ScalarOp::neg:
      unary(x, to, n, [](T a) { return -a; });
      return true;
    case ScalarOp::round:
      unary(x, to, n, [](T a) { return std::nearbyint(a); });
      return true;
    case ScalarOp::sqrt:
      unary(x, to, n, [](T a) { return std::sqrt(a); });
      return true;
    case ScalarOp::sub:
      binary(x, to, n, [](T a, T b) { return a - b; });
      return true;
    case ScalarOp::trunc:
      unary(x, to, n, [](T a) { return std::trunc(a); });
      return true;
    default:
      break;
  }
  if (class_of(op) != ScalarClass::function) return false;
  if (arity_of(op) == 1) {
    unary(x, to, n, [op](T a) { return evaluate_function(op, a, a); });
  } else {
    binary(x, to, n, [op](T a, T b) { return evaluate_function(op, a, b); });
  }
  return true;
}

template <class T>
bool compare_loop(ScalarOp op, std::span<const T* const> x, uint8_t* to, int64_t n) {
  switch (op) {
    case ScalarOp::equal:
      binary(x, to, n, [](T a, T b) { return uint8_t{a == b}; });
      return true;
    case ScalarOp::greater:
      binary(x, to, n, [](T a, T b) { return uint8_t{a > b}; });
      return true;
    case ScalarOp::greater_equal:
      binary(x, to, n, [](T a, T b) { return uint8_t{a >= b}; });
      return true;
    case ScalarOp::less:
      binary(x, to, n, [](T a, T b) { return uint8_t{a < b}; });
      return true;
    case ScalarOp::less_equal:
      binary(x, to, n, [](T a, T b) { return uint8_t{a <= b}; });
      return true;
    case ScalarOp::not_equal:
      binary(x, to, n, [](T a, T b) { return uint8_t{a != b}; });
      return true;
    default:
      return false;
  }
}

struct Piece {
  const Evaluation& evaluation;
  ScalarOp op;
  std::byte* target;
  int64_t begin, end;
  const std::byte* operand(size_t i) const {
    const Tensor& x = evaluation.operands[i];
    return x.bytes().data() + begin * bytes_of(x.element);
  }
  std::byte* result() const { return target + begin * bytes_of(evaluation.element); }
};

// float32 and float64 operands where they are.
template <class T>
bool evaluate_in_place(const Piece& piece) {
  std::array<const T*, 3> x{};
  const size_t arity = piece.evaluation.operands.size();
  for (size_t i = 0; i < arity; ++i) x[i] = reinterpret_cast<const T*>(piece.operand(i));
  const std::span<const T* const> operands(x.data(), arity);
  const int64_t count = piece.end - piece.begin;
  if (class_of(piece.op) == ScalarClass::compare)
    return compare_loop<T>(piece.op, operands, reinterpret_cast<uint8_t*>(piece.result()), count);
  return float_loop<T>(piece.op, operands, reinterpret_cast<T*>(piece.result()), count);
}

// The half types are evaluated in float32, then rounded.
bool evaluate_halves(const Piece& piece) {
  constexpr int64_t chunk = 512;
  std::array<std::array<float, chunk>, 2> values;
  std::array<float, chunk> results;
  const DataType type = piece.evaluation.operands[0].element;
  const bool compares = class_of(piece.op) == ScalarClass::compare;
  const std::array<const float*, 2> pointers{values[0].data(), values[1].data()};
  const std::span<const float* const> x(pointers.data(), piece.evaluation.operands.size());
  for (int64_t done = 0; done < piece.end - piece.begin; done += chunk) {
    const int64_t count = std::min(chunk, piece.end - piece.begin - done);
    for (size_t i = 0; i < x.size(); ++i)
      load_floats(piece.operand(i) + done * 2, type, count, values[i].data());
    if (compares) {
      if (!compare_loop<float>(piece.op, x, reinterpret_cast<uint8_t*>(piece.result()) + done, count))
        return false;
    } else {
      if (!float_loop<float>(piece.op, x, results.data(), count)) return false;
      store_floats(results.data(), count, type, piece.result() + done * 2);
    }
  }
  return true;
}

template <class T>
void select_loop(const Piece& piece) {
  const uint8_t* condition = reinterpret_cast<const uint8_t*>(piece.operand(0));
  const T* a = reinterpret_cast<const T*>(piece.operand(1));
  const T* b = reinterpret_cast<const T*>(piece.operand(2));
  T* to = reinterpret_cast<T*>(piece.result());
  for (int64_t i = 0; i < piece.end - piece.begin; ++i) to[i] = condition[i] != 0 ? a[i] : b[i];
}

void evaluate_select(const Piece& piece) {
  switch (bytes_of(piece.evaluation.element)) {
    case 1:
      return select_loop<uint8_t>(piece);
    case 2:
      return select_loop<uint16_t>(piece);
    case 4:
      return select_loop<uint32_t>(piece);
    default:
      return select_loop<uint64_t>(piece);
  }
}

void evaluate_each(const Piece& piece) {
  const std::span<const Tensor> operands = piece.evaluation.operands;
  std::array<Scalar, 3> x;
  const std::span<const Scalar> scalars(x.data(), operands.size());
  const DataType element = piece.evaluation.element;
  for (int64_t i = 0; i < piece.end - piece.begin; ++i) {
    for (size_t k = 0; k < operands.size(); ++k)
      x[k] = load_scalar(piece.operand(k) + i * bytes_of(operands[k].element), operands[k].element);
    store_scalar(piece.result() + i * bytes_of(element), evaluate(piece.op, scalars, element));
  }
}

void evaluate_piece(const Piece& piece) {
  if (piece.op == ScalarOp::select) return evaluate_select(piece);
  bool done = false;
  if (piece.op != ScalarOp::cast) {
    switch (piece.evaluation.operands[0].element) {
      case DataType::float32:
        done = evaluate_in_place<float>(piece);
        break;
      case DataType::float64:
        done = evaluate_in_place<double>(piece);
        break;
      case DataType::float16:
      case DataType::bfloat16:
        done = evaluate_halves(piece);
        break;
      default:
        break;
    }
  }
  if (!done) evaluate_each(piece);
}

}  // namespace

Tensor evaluate_map(const Evaluation& e) {
  const ScalarOp op = attributes<MapAttributes>(e.node).op;
  check(static_cast<int>(e.operands.size()) == arity_of(op),
        "a scalar operation has the wrong number of operands");
  for (const Tensor& x : e.operands) {
    if (x.shape != e.shape)
      throw UserError("the operands' shapes differ: " + to_string(x.shape) + " and " + to_string(e.shape));
  }
  Tensor result(e.element, e.shape);
  const int64_t count = result.count();
  std::byte* target = result.mutable_bytes().data();
  run_in_pieces(e.pool, count, 16384,
                [&](int64_t begin, int64_t end) { evaluate_piece({e, op, target, begin, end}); });
  return result;
}

}  // namespace fusewise::graph

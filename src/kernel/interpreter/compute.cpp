// What instructions compute: fast versions for the common types, `evaluate` for all others.
#include <bit>
#include <cmath>

#include "base/error.h"
#include "kernel/evaluate.h"
#include "kernel/interpreter/program.h"
#include "numerics/functions.h"

namespace fusewise::kernel {

namespace {

template <class T>
T value_of(int64_t bits) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(bits);
  else
    return bits;
}

int64_t bits_from(float value) { return static_cast<int64_t>(std::bit_cast<uint32_t>(value)); }
int64_t bits_from(double value) { return std::bit_cast<int64_t>(value); }
int64_t bits_from(int64_t value) { return value; }
int64_t bits_from(bool value) { return value ? 1 : 0; }

template <class T, class Function>
void unary(int64_t* registers, const Instruction& in) {
  for (uint32_t i = 0; i < in.lanes; ++i)
    registers[in.dst + i] = bits_from(Function()(value_of<T>(registers[in.a + i])));
}

template <class T, class Function>
void binary(int64_t* registers, const Instruction& in) {
  for (uint32_t i = 0; i < in.lanes; ++i)
    registers[in.dst + i] =
        bits_from(Function()(value_of<T>(registers[in.a + i]), value_of<T>(registers[in.b + i])));
}

// Integers wrap.
struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
  int64_t operator()(int64_t a, int64_t b) const {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return a - b;
  }
  int64_t operator()(int64_t a, int64_t b) const {
    return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
};
struct Mul {
  template <class T>
  T operator()(T a, T b) const {
    return a * b;
  }
  int64_t operator()(int64_t a, int64_t b) const {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    return a / b;
  }
};
struct Negate {
  template <class T>
  T operator()(T a) const {
    return -a;
  }
};
struct Magnitude {
  template <class T>
  T operator()(T a) const {
    return std::fabs(a);
  }
};
struct Root {
  template <class T>
  T operator()(T a) const {
    return std::sqrt(a);
  }
};
struct Less {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Equal {
  template <class T>
  bool operator()(T a, T b) const {
    return a == b;
  }
};
struct Least {
  int64_t operator()(int64_t a, int64_t b) const { return a < b ? a : b; }
};
struct Greatest {
  int64_t operator()(int64_t a, int64_t b) const { return a < b ? b : a; }
};
struct And {
  int64_t operator()(int64_t a, int64_t b) const { return a & b; }
};
struct Or {
  int64_t operator()(int64_t a, int64_t b) const { return a | b; }
};

template <ScalarOp op, class T>
struct Function1 {
  T operator()(T a) const { return evaluate_function(op, a, T(0)); }
};

template <class T>
Compute float_apply(ScalarOp op) {
  switch (op) {
    case ScalarOp::add:
      return binary<T, Add>;
    case ScalarOp::sub:
      return binary<T, Sub>;
    case ScalarOp::mul:
      return binary<T, Mul>;
    case ScalarOp::div:
      return binary<T, Div>;
    case ScalarOp::neg:
      return unary<T, Negate>;
    case ScalarOp::abs:
      return unary<T, Magnitude>;
    case ScalarOp::sqrt:
      return unary<T, Root>;
    case ScalarOp::less:
      return binary<T, Less>;
    case ScalarOp::less_equal:
      return binary<T, LessEqual>;
    case ScalarOp::equal:
      return binary<T, Equal>;
    case ScalarOp::exp:
      return unary<T, Function1<ScalarOp::exp, T>>;
    case ScalarOp::tanh:
      return unary<T, Function1<ScalarOp::tanh, T>>;
    case ScalarOp::erf:
      return unary<T, Function1<ScalarOp::erf, T>>;
    default:
      return nullptr;
  }
}

Compute integer_apply(ScalarOp op) {
  switch (op) {
    case ScalarOp::add:
      return binary<int64_t, Add>;
    case ScalarOp::sub:
      return binary<int64_t, Sub>;
    case ScalarOp::mul:
      return binary<int64_t, Mul>;
    case ScalarOp::min:
      return binary<int64_t, Least>;
    case ScalarOp::max:
      return binary<int64_t, Greatest>;
    case ScalarOp::less:
      return binary<int64_t, Less>;
    case ScalarOp::less_equal:
      return binary<int64_t, LessEqual>;
    case ScalarOp::equal:
      return binary<int64_t, Equal>;
    default:
      return nullptr;
  }
}

void select(int64_t* registers, const Instruction& in) {
  for (uint32_t i = 0; i < in.lanes; ++i)
    registers[in.dst + i] = registers[(registers[in.a + i] != 0 ? in.b : in.c) + i];
}

void any_apply(int64_t* registers, const Instruction& in) {
  const uint32_t operands[3] = {in.a, in.b, in.c};
  Scalar values[3];
  for (uint32_t i = 0; i < in.lanes; ++i) {
    for (size_t j = 0; j < in.arity; ++j) values[j] = scalar_of_bits(in.type, registers[operands[j] + i]);
    registers[in.dst + i] = bits_of_scalar(evaluate(in.op, {values, in.arity}, in.result));
  }
}

struct FloorDiv {
  int64_t operator()(int64_t a, int64_t b) const { return floor_divide(a, b); }
};
struct FloorMod {
  int64_t operator()(int64_t a, int64_t b) const { return floor_modulo(a, b); }
};

void any_native(int64_t* registers, const Instruction& in) {
  for (uint32_t i = 0; i < in.lanes; ++i)
    registers[in.dst + i] = bits_of_scalar(evaluate(in.native, scalar_of_bits(in.type, registers[in.a + i]),
                                                    scalar_of_bits(in.type, registers[in.b + i])));
}

template <class T>
void float_fma(int64_t* registers, const Instruction& in) {
  for (uint32_t i = 0; i < in.lanes; ++i)
    registers[in.dst + i] =
        bits_from(std::fma(value_of<T>(registers[in.a + i]), value_of<T>(registers[in.b + i]),
                           value_of<T>(registers[in.c + i])));
}

void any_fma(int64_t* registers, const Instruction& in) {
  for (uint32_t i = 0; i < in.lanes; ++i)
    registers[in.dst + i] = bits_of_scalar(evaluate_fma(scalar_of_bits(in.type, registers[in.a + i]),
                                                        scalar_of_bits(in.type, registers[in.b + i]),
                                                        scalar_of_bits(in.type, registers[in.c + i])));
}

}  // namespace

Compute compute_apply(const Instruction& in) {
  Compute fast = nullptr;
  if (in.op == ScalarOp::select) return select;
  if (in.type == DataType::float32) fast = float_apply<float>(in.op);
  if (in.type == DataType::float64) fast = float_apply<double>(in.op);
  if (in.type == DataType::int64) fast = integer_apply(in.op);
  if (in.type == DataType::boolean && in.op == ScalarOp::and_) fast = binary<int64_t, And>;
  if (in.type == DataType::boolean && in.op == ScalarOp::or_) fast = binary<int64_t, Or>;
  return fast ? fast : any_apply;
}

Compute compute_native(const Instruction& in) {
  if (in.type == DataType::int64 && in.native == Native::floor_div) return binary<int64_t, FloorDiv>;
  if (in.type == DataType::int64 && in.native == Native::floor_mod) return binary<int64_t, FloorMod>;
  return any_native;
}

Compute compute_fma(const Instruction& in) {
  if (in.type == DataType::float32) return float_fma<float>;
  if (in.type == DataType::float64) return float_fma<double>;
  return any_fma;
}

Compute compute_copy() {
  return [](int64_t* registers, const Instruction& in) {
    for (uint32_t i = 0; i < in.lanes; ++i) registers[in.dst + i] = registers[in.a + i];
  };
}

Compute compute_bitcast(const Instruction&) {
  return [](int64_t* registers, const Instruction& in) {
    for (uint32_t i = 0; i < in.lanes; ++i)
      registers[in.dst + i] = canonical_bits(in.result, registers[in.a + i]);
  };
}

Compute compute_ramp() {
  return [](int64_t* registers, const Instruction& in) {
    uint64_t value = static_cast<uint64_t>(registers[in.a]);
    for (uint32_t i = 0; i < in.lanes; ++i, value += static_cast<uint64_t>(in.immediate))
      registers[in.dst + i] = static_cast<int64_t>(value);
  };
}

Compute compute_broadcast() {
  return [](int64_t* registers, const Instruction& in) {
    for (uint32_t i = 0; i < in.lanes; ++i) registers[in.dst + i] = registers[in.a];
  };
}

Compute compute_shuffle() {
  return [](int64_t* registers, const Instruction& in) {
    for (uint32_t i = 0; i < in.lanes; ++i) {
      const uint32_t lane = static_cast<uint32_t>(in.pattern[i]);
      registers[in.dst + i] =
          lane < in.lanes_a ? registers[in.a + lane] : registers[in.b + lane - in.lanes_a];
    }
  };
}

}  // namespace fusewise::kernel

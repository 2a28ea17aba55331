#include "schedule/lower/emitter.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "numerics/reduction.h"

namespace fusewise::schedule {

using kernel::Type;

namespace {

template <class T>
Scalar identity_scalar(Combine combine, DataType type) {
  const T value = fusewise::identity_of<T>(combine);
  return is_float(type) ? Scalar{type, static_cast<double>(value), 0}
                        : Scalar{type, 0, static_cast<int64_t>(value)};
}

Scalar reduction_identity(Combine combine, DataType type) {
  switch (type) {
    case DataType::boolean:
      return identity_scalar<bool>(combine, type);
    case DataType::int8:
      return identity_scalar<int8_t>(combine, type);
    case DataType::int16:
      return identity_scalar<int16_t>(combine, type);
    case DataType::int32:
      return identity_scalar<int32_t>(combine, type);
    case DataType::int64:
      return identity_scalar<int64_t>(combine, type);
    case DataType::uint8:
      return identity_scalar<uint8_t>(combine, type);
    case DataType::uint16:
      return identity_scalar<uint16_t>(combine, type);
    case DataType::uint32:
      return identity_scalar<uint32_t>(combine, type);
    case DataType::uint64:
      return identity_scalar<uint64_t>(combine, type);
    case DataType::float32:
      return identity_scalar<float>(combine, type);
    case DataType::float64:
      return identity_scalar<double>(combine, type);
    default:
      throw InternalError("no reduction accumulates in this type");
  }
}

}  // namespace

void Emitter::add_argument(const Graph& graph, Value value, bool written) {
  if (arguments_.count(value)) return;
  kernel::Buffer buffer;
  buffer.name = "a" + std::to_string(arguments_.size());
  buffer.element = graph.type(value).element;
  buffer.written = written;
  arguments_[value] = builder_.buffer(buffer);
  result_.arguments.push_back(value);
}

ExprId Emitter::dim_expr(const Dim& dim) {
  ExprId sum = builder_.integer(dim.constant_part());
  for (const Dim::Term& term : dim.terms()) {
    ExprId product = builder_.integer(term.coefficient);
    for (const Dim::AtomPtr& atom : term.factors) {
      ExprId value = kernel::none;
      if (atom->kind == Dim::Atom::Kind::symbol) {
        const auto [it, added] = parameters_.emplace(atom->name, static_cast<int>(parameters_.size()));
        if (added) {
          result_.kernel.parameters.push_back("p" + std::to_string(it->second));
          result_.parameters.push_back(Dim::symbol(atom->name));
        }
        value = builder_.parameter(it->second);
      } else {
        const ExprId a = dim_expr(atom->a), b = dim_expr(atom->b);
        switch (atom->kind) {
          case Dim::Atom::Kind::floor_div:
            value = builder_.floor_div(a, b);
            break;
          case Dim::Atom::Kind::ceil_div:
            value = builder_.floor_div(builder_.sub(builder_.add(a, b), builder_.integer(1)), b);
            break;
          case Dim::Atom::Kind::modulo:
            value = builder_.floor_mod(a, b);
            break;
          case Dim::Atom::Kind::min:
            value = builder_.min(a, b);
            break;
          default:
            value = builder_.max(a, b);
            break;
        }
      }
      product = builder_.mul(product, value);
    }
    sum = builder_.add(sum, product);
  }
  return sum;
}

ExprId Emitter::convert(ExprId value, DataType to) {
  const Type type = result_.kernel.expr(value).type;
  if (type.element == to) return value;
  return builder_.apply(ScalarOp::cast, {to, type.lanes}, value);
}

StmtId Emitter::serial_loop(const char* name, ExprId count, const std::function<StmtId(ExprId)>& body,
                            LoopKind kind) {
  const auto constant = builder_.constant_value(count);
  if (kind != LoopKind::block) {
    if (constant && *constant <= 0) return builder_.block({});
    if (constant == 1) return body(zero());
  }
  const VariableId variable = builder_.variable(name, {DataType::int64, 1});
  builder_.set_range(variable, 0,
                     constant ? std::max<int64_t>(*constant - 1, 0) : std::numeric_limits<int64_t>::max());
  builder_.set_bound(variable, count);
  return builder_.loop(kind, variable, zero(), count, 1, body(builder_.read(variable)));
}

ExprId Emitter::identity_of(Combine combine, DataType type) {
  const Scalar identity = reduction_identity(combine, type);
  return is_float(type) ? builder_.floating({type, 1}, identity.f) : builder_.constant({type, 1}, identity.i);
}

ExprId Emitter::combined(Combine combine, DataType type, ExprId a, ExprId b) {
  static constexpr ScalarOp ops[] = {ScalarOp::add, ScalarOp::mul, ScalarOp::max, ScalarOp::min};
  return builder_.apply(ops[static_cast<size_t>(combine)], {type, 1}, a, b);
}

ExprId Emitter::signed_index(ExprId index) {
  const Type type = result_.kernel.expr(index).type;
  if (type.element == DataType::uint64)
    index = builder_.apply(ScalarOp::min, type, index,
                           builder_.constant(type, std::numeric_limits<int64_t>::max()));
  return convert(index, DataType::int64);
}

}  // namespace fusewise::schedule

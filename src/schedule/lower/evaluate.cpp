// The value of a member, or of a value at the border, at given coordinates, as a kernel expression: loads of what
// is stored, the body of what is not.
#include <algorithm>
#include <bit>

#include "base/error.h"
#include "schedule/lower/lowering.h"

namespace fusewise::schedule {

using kernel::ExprKind;
using kernel::Native;
using kernel::Type;

ExprId Lowering::linear_expr(const LinearIndex& index, const Coordinates& axes) {
  ExprId sum = dim_expr(index.constant);
  for (const graph::AxisTerm& term : index.terms)
    sum = builder_.add(sum, builder_.mul(dim_expr(term.coefficient), axes[static_cast<size_t>(term.axis)]));
  return sum;
}

ExprId Lowering::index_expr(NodeId node, const IndexExpr& index, const Coordinates& axes, ExprId mask) {
  ExprId sum = linear_expr(index.linear, axes);
  for (const graph::QuasiTerm& term : index.quasi) {
    ExprId value = linear_expr(term.inner, axes);
    if (!term.divisor.is(1)) value = builder_.floor_div(value, dim_expr(term.divisor));
    if (!term.modulus.is(0)) value = builder_.floor_mod(value, dim_expr(term.modulus));
    sum = builder_.add(sum, builder_.mul(dim_expr(term.coefficient), value));
  }
  if (index.gathered) {
    const Read& read = forms_.form(node).reads[static_cast<size_t>(*index.gathered)];
    const ExprId raw = signed_index(read_value(node, read, axes, mask));
    const ExprId extent = dim_expr(index.gathered_extent);
    const ExprId wrapped = builder_.apply(ScalarOp::select, {DataType::int64, 1}, builder_.less(raw, zero()),
                                          builder_.add(raw, extent), raw);
    const ExprId last = builder_.sub(extent, builder_.integer(1));
    sum = builder_.add(sum, builder_.max(builder_.min(wrapped, last), zero()));
  }
  return sum;
}

ExprId Lowering::guard_expr(NodeId node, const Guard& guard, const Coordinates& axes, ExprId mask) {
  const ExprId value = index_expr(node, guard.expr, axes, mask);
  const ExprId low = dim_expr(guard.low);
  // low <= value, written as not (value < low), so that ranges can decide it.
  const ExprId above = builder_.less(builder_.sub(low, builder_.integer(1)), value);
  return builder_.logical_and(above, builder_.less(value, dim_expr(guard.high)));
}

ExprId Lowering::both(ExprId a, ExprId b) {
  if (a == kernel::none) return b;
  if (b == kernel::none) return a;
  const ExprId result = builder_.logical_and(a, b);
  return builder_.constant_value(result) == 1 ? kernel::none : result;
}

bool Lowering::varies(Edge& edge, ExprId expr) {
  if (expr == kernel::none) return false;
  if (const auto it = edge.varies.find(expr); it != edge.varies.end()) return it->second;
  const kernel::Expr e = result_.kernel.expr(expr);
  bool answer = e.kind == ExprKind::read && e.value == static_cast<int64_t>(edge.variable);
  for (ExprId operand : {e.a, e.b, e.c}) answer = answer || varies(edge, operand);
  edge.varies.emplace(expr, answer);
  return answer;
}

ExprId Lowering::masked_load(BufferId buffer, ExprId address, ExprId mask) {
  // A mask that differs between lanes may hold in lanes beyond the tail, where nothing was stored.
  const ExprId given = mask;
  for (Edge& edge : edges_)
    if (varies(edge, address) || varies(edge, given)) mask = both(mask, edge.mask);
  return builder_.load(buffer, address, mask);
}

ExprId Lowering::argument_address(Value value, const Coordinates& coordinates) {
  const Shape& shape = forms_.graph->type(value).shape;
  const auto it = tree_.layouts.find(value);
  const Layout layout = it != tree_.layouts.end() ? it->second : row_major(static_cast<int>(shape.size()));
  ExprId address = zero();
  if (!layout.strides.empty()) {
    for (size_t d = 0; d < shape.size(); ++d)
      address = builder_.add(address, builder_.mul(coordinates[d], dim_expr(layout.strides[d])));
    return address;
  }
  std::vector<int64_t> block_of(shape.size(), 1);
  for (const Layout::Block& b : layout.blocks) block_of[static_cast<size_t>(b.dim)] = b.block;
  for (int d : layout.order) {
    const auto dim = static_cast<size_t>(d);
    const Dim extent = block_of[dim] == 1 ? shape[dim] : ceil_div(shape[dim], block_of[dim]);
    const ExprId index = block_of[dim] == 1
                             ? coordinates[dim]
                             : builder_.floor_div(coordinates[dim], builder_.integer(block_of[dim]));
    address = builder_.add(builder_.mul(address, dim_expr(extent)), index);
  }
  for (const Layout::Block& b : layout.blocks) {
    const ExprId size = builder_.integer(b.block);
    const ExprId inner = builder_.floor_mod(coordinates[static_cast<size_t>(b.dim)], size);
    address = builder_.add(builder_.mul(address, size), inner);
  }
  return address;
}

ExprId Lowering::stage_address(int index, const Coordinates& coordinates) {
  const Storage& storage = *storage_[static_cast<size_t>(index)];
  // One element has one place: a coordinate beyond it, behind the border of a pad, is not to be read from elsewhere.
  Coordinates within = coordinates;
  for (size_t d = 0; d < within.size(); ++d)
    if (static_cast<int>(d) != storage.ring_dim && forms_.form(stage(index).node).axes[d].extent.is(1))
      within[d] = storage.low[d];
  return address_in(storage, within);
}

ExprId Lowering::address_in(const Storage& storage, const Coordinates& coordinates) {
  ExprId address = zero();
  for (size_t d = 0; d < coordinates.size(); ++d) {
    const bool ring = static_cast<int>(d) == storage.ring_dim;
    const ExprId place = ring ? builder_.floor_mod(coordinates[d], storage.ring)
                              : builder_.sub(coordinates[d], storage.low[d]);
    address = builder_.add(address, builder_.mul(place, storage.stride[d]));
  }
  return address;
}

ExprId Lowering::value_at(Value value, const Coordinates& coordinates, ExprId mask) {
  if (const ExprId running = overridden(value, coordinates, mask); running != kernel::none) return running;
  // What is empty has no element to load, not even in lanes whose result is thrown away.
  const graph::TensorType& stored = forms_.graph->type(value);
  const Type one{stored.element, 1};
  if (std::any_of(stored.shape.begin(), stored.shape.end(), [](const Dim& extent) { return extent.is(0); }))
    return is_float(stored.element) ? builder_.floating(one, 0) : builder_.constant(one, 0);
  if (const auto argument = arguments_.find(value); argument != arguments_.end())
    return masked_load(argument->second, argument_address(value, coordinates), mask);
  if (forms_.is_member(value.node)) {
    const int index = tree_.stage_index(forms_, value.node);
    if (index < 0) return evaluate(value.node, coordinates, mask);
    check(storage_[static_cast<size_t>(index)].has_value(), "a stage is read before it is placed");
    // A thread computes its whole tile, also where it sticks out.
    if (tree_.threads > 1 && stage(index).placement == Placement::registers)
      return builder_.load(storage_[static_cast<size_t>(index)]->buffer, stage_address(index, coordinates));
    return masked_load(storage_[static_cast<size_t>(index)]->buffer, stage_address(index, coordinates), mask);
  }
  const auto literal = literal_of(*forms_.graph, value);
  check(literal.has_value(), "a value of the region's border is no argument");
  const Type type{literal->type, 1};
  return is_float(literal->type) ? builder_.floating(type, literal->f) : builder_.constant(type, literal->i);
}

ExprId Lowering::read_value(NodeId node, const Read& read, const Coordinates& axes, ExprId mask) {
  Coordinates coordinates;
  coordinates.reserve(read.index.size());
  for (const IndexExpr& index : read.index) coordinates.push_back(index_expr(node, index, axes, mask));
  return value_at(forms_.operand(node, read), coordinates, mask);
}

ExprId Lowering::body_value(NodeId node, int position, const Coordinates& axes, ExprId mask,
                            std::map<int, ExprId>& done) {
  if (const auto it = done.find(position); it != done.end()) return it->second;
  const Form& form = forms_.form(node);
  const graph::BodyNode& body = form.body[static_cast<size_t>(position)];
  ExprId value = kernel::none;
  switch (body.kind) {
    case graph::BodyNode::Kind::read:
      value = read_value(node, form.reads[static_cast<size_t>(body.read)], axes, mask);
      break;
    case graph::BodyNode::Kind::index:
      value = convert(index_expr(node, body.index, axes, mask), body.type);
      break;
    case graph::BodyNode::Kind::constant:
      value = is_float(body.type) ? builder_.floating({body.type, 1}, body.constant.f)
                                  : builder_.constant({body.type, 1}, body.constant.i);
      break;
    case graph::BodyNode::Kind::apply: {
      ExprId arguments[3] = {kernel::none, kernel::none, kernel::none};
      for (size_t i = 0; i < body.arguments.size(); ++i)
        arguments[i] = body_value(node, body.arguments[i], axes, mask, done);
      value = builder_.apply(body.op, {body.type, 1}, arguments[0], arguments[1], arguments[2]);
      break;
    }
    case graph::BodyNode::Kind::piece: {
      const Read& read = form.reads[static_cast<size_t>(body.read)];
      ExprId inside = kernel::none;
      for (const Guard& guard : read.guards) inside = both(inside, guard_expr(node, guard, axes, mask));
      if (inside == kernel::none) {
        value = read_value(node, read, axes, mask);
        break;
      }
      if (builder_.constant_value(inside) == 0) {
        value = body_value(node, body.arguments[0], axes, mask, done);
        break;
      }
      const ExprId read_here = read_value(node, read, axes, both(mask, inside));
      const ExprId otherwise = body_value(node, body.arguments[0], axes, mask, done);
      value = builder_.apply(ScalarOp::select, {body.type, 1}, inside, read_here, otherwise);
      break;
    }
  }
  done.emplace(position, value);
  return value;
}

ExprId Lowering::evaluate(NodeId node, const Coordinates& axes, ExprId mask) {
  const auto key = std::make_tuple(node, axes, mask);
  if (const auto it = evaluated_.find(key); it != evaluated_.end()) return it->second;
  const Form& form = forms_.form(node);
  check(!form.accumulation, "a reduction without a stage");
  std::map<int, ExprId> done;
  const ExprId value = body_value(node, static_cast<int>(form.body.size()) - 1, axes, mask, done);
  evaluated_.emplace(key, value);
  return value;
}

}  // namespace fusewise::schedule

// Reductions over blocks of their axis: the running state of a chain, its update, the parts of a split one and how
// they are combined. The algebra is numerics/cascade.h; here are its places.
#include <algorithm>

#include "base/error.h"
#include "numerics/cascade.h"
#include "schedule/lower/lowering.h"

namespace fusewise::schedule {

using kernel::Scope;
using kernel::Type;

namespace {

// The arithmetic of numerics/cascade.h that builds expressions.
struct StateArithmetic {
  using Value = ExprId;
  kernel::Builder& builder;
  Type type;

  ExprId constant(double value) { return builder.floating(type, value); }
  ExprId add(ExprId a, ExprId b) { return builder.apply(ScalarOp::add, type, a, b); }
  ExprId sub(ExprId a, ExprId b) { return builder.apply(ScalarOp::sub, type, a, b); }
  ExprId mul(ExprId a, ExprId b) { return builder.apply(ScalarOp::mul, type, a, b); }
  ExprId div(ExprId a, ExprId b) { return builder.apply(ScalarOp::div, type, a, b); }
  ExprId exp(ExprId a) { return builder.apply(ScalarOp::exp, type, a); }
  ExprId equal(ExprId a, ExprId b) { return builder.apply(ScalarOp::equal, {DataType::boolean, 1}, a, b); }
  ExprId select(ExprId condition, ExprId a, ExprId b) {
    return builder.apply(ScalarOp::select, type, condition, a, b);
  }
};

using State = CascadeState<StateArithmetic>;

// The first member that is reckoned against this one; its identity says what the reference is.
const CascadeMember* dependent_of(const Cascade& cascade, int member) {
  for (const CascadeMember& m : cascade.members)
    if (m.reference == member) return &m;
  return nullptr;
}

}  // namespace

bool Lowering::finishes_parts(int index) const {
  const int chain = stage(index).chain;
  if (chain < 0) return false;
  const Chain& c = tree_.chains[static_cast<size_t>(chain)];
  return c.split() && c.finisher == index;
}

// True while a block of the stage's reduction is computed.
bool Lowering::runs(int index) const { return block_of_.count(stage(index).node) != 0; }

int Lowering::member_at(int index) const {
  return tree_.chains[static_cast<size_t>(stage(index).chain)].cascade.member_of(stage(index).node);
}

Dim Lowering::elements_per_index(const Form& form) const {
  Dim elements = 1;
  for (size_t a = static_cast<size_t>(block_axis(form)) + 1; a < form.axes.size(); ++a)
    elements = elements * form.axes[a].extent;
  return elements;
}

ExprId Lowering::as_count(DataType type, ExprId elements) {
  return builder_.apply(ScalarOp::cast, {type, 1}, elements);
}

Lowering::Coordinates Lowering::mapped(const ConstantCoordinates& at, const Coordinates& coordinates) {
  Coordinates result;
  for (int axis : at) result.push_back(axis < 0 ? zero() : coordinates[static_cast<size_t>(axis)]);
  return result;
}

// ---------------------------------------------------------------- the loop over blocks

StmtId Lowering::run_pass(Pass pass, int index, const Box& box) {
  const Pass outer = std::exchange(pass_, pass);
  const Shape& shape = shape_of(stage(index).node);
  Box inside;
  for (size_t d = 0; d < box.size(); ++d) inside.push_back(clamp_to(builder_, box[d], dim_expr(shape[d])));
  const StmtId result = emit_innermost(index, inside, {});
  pass_ = outer;
  return result;
}

StmtId Lowering::emit_blocks(int index, int depth, const Box& box) {
  const int number = stage(index).chain;
  const Chain& chain = tree_.chains[static_cast<size_t>(number)];
  const Form& form = forms_.form(stage(index).node);
  const auto axis = static_cast<size_t>(block_axis(form));
  const std::map<NodeId, Box> needed = needed_boxes(index, box);
  std::vector<Box> boxes;
  std::vector<int> stages;
  for (size_t m = 0; m < chain.stages.size(); ++m) {
    boxes.push_back(needed.at(chain.cascade.members[m].node));
    stages.push_back(m + 1 == chain.stages.size() ? index : chain.stages[m]);
  }
  std::vector<StmtId> statements;
  running_[number] = {};
  running_[number].range = {zero(), domain_extent(form.axes[axis].extent), true};
  if (const auto part = part_of_.find(index); part != part_of_.end())
    running_[number].range = part->second.first;
  place_states(number, boxes, statements);
  if (!chain.split() && stage(index).parent < 0) begin_finish(index, needed, statements);
  for (size_t m = 0; m < boxes.size(); ++m) statements.push_back(run_pass(Pass::clear, stages[m], boxes[m]));

  const Box line = {running_[number].range};
  const int64_t tile = stage(index).loops[static_cast<size_t>(depth)].tile;
  statements.push_back(loop_over(line, 0, tile, line[0].extent.exact.has_value(), false, {},
                                 [&](const Box& block, const KnownGuards&) {
                                   running_[number].block = block[0];
                                   running_[number].active = true;
                                   for (const CascadeMember& m : chain.cascade.members)
                                     block_of_[m.node] = block[0];
                                   const StmtId body = emit_depth(index, depth + 1, box, {});
                                   for (const CascadeMember& m : chain.cascade.members)
                                     block_of_.erase(m.node);
                                   running_[number].active = false;
                                   return body;
                                 }));
  const Pass last = chain.split() ? Pass::store_part : Pass::finish;
  for (size_t m = 0; m < boxes.size(); ++m) statements.push_back(run_pass(last, stages[m], boxes[m]));
  return builder_.block(std::move(statements));
}

void Lowering::place_states(int number, const std::vector<Box>& boxes, std::vector<StmtId>& statements) {
  const Chain& chain = tree_.chains[static_cast<size_t>(number)];
  Running& running = running_[number];
  for (size_t m = 0; m < boxes.size(); ++m) {
    const CascadeMember& member = chain.cascade.members[m];
    MemberState state;
    ExprId size = kernel::none;
    state.box = dense(chain.stages[m], boxes[m], size);
    const auto buffer = [&](const char* name, ExprId elements) {
      kernel::Buffer b;
      b.name = name + std::to_string(chain.stages[m]);
      b.element = forms_.form(member.node).accumulation->accumulator;
      b.scope = Scope::scratch;
      b.written = true;
      b.size = elements;
      const BufferId id = builder_.buffer(b);
      statements.push_back(builder_.allocate(id));
      return id;
    };
    state.state = buffer("state", size);
    if (dependent_of(chain.cascade, static_cast<int>(m))) state.reference = buffer("reference", size);
    if (member.reference >= 0) {
      // Members that move alike share a step.
      for (size_t other = 0; other < m && state.step == kernel::none; ++other) {
        const CascadeMember& o = chain.cascade.members[other];
        if (o.reference == member.reference && o.identity == member.identity && o.scale == member.scale)
          state.step = running.members[other].step;
      }
      const auto reference = static_cast<size_t>(member.reference);
      ExprId steps = kernel::none;
      dense(chain.stages[reference], boxes[reference], steps);
      if (state.step == kernel::none) state.step = buffer("step", steps);
    }
    running.members.push_back(std::move(state));
  }
}

// ---------------------------------------------------------------- reading and updating

ExprId Lowering::running_value(int index, const Coordinates& coordinates) {
  const Chain& chain = tree_.chains[static_cast<size_t>(stage(index).chain)];
  const Running& running = running_.at(stage(index).chain);
  const int m = member_at(index);
  const CascadeMember& member = chain.cascade.members[static_cast<size_t>(m)];
  const MemberState& state = running.members[static_cast<size_t>(m)];
  const ExprId value = masked_load(state.state, address_in(state.box, coordinates), kernel::none);
  if (member.reference < 0) return value;
  const Storage& box = running.members[static_cast<size_t>(member.reference)].box;
  const ExprId step =
      masked_load(state.step, address_in(box, mapped(member.reference_at, coordinates)), kernel::none);
  StateArithmetic arithmetic{builder_, {forms_.form(member.node).accumulation->accumulator, 1}};
  return State(arithmetic, member.identity, member.scale).moved(value, step);
}

// Steps first: they need the raw value from before.
void Lowering::update_state(int index, const Coordinates& coordinates, ExprId value, ExprId mask,
                            std::vector<StmtId>& statements) {
  const Chain& chain = tree_.chains[static_cast<size_t>(stage(index).chain)];
  const Running& running = running_.at(stage(index).chain);
  const int m = member_at(index);
  const MemberState& state = running.members[static_cast<size_t>(m)];
  const ExprId address = address_in(state.box, coordinates);
  if (const CascadeMember* first = dependent_of(chain.cascade, m)) {
    const Form& form = forms_.form(stage(index).node);
    const DataType type = form.accumulation->accumulator;
    const ExprId inner = dim_expr(elements_per_index(form));
    const ExprId before = builder_.sub(running.block.low, running.range.low);
    const ExprId after = builder_.add(before, running.block.extent.value);
    const ExprId seen = as_count(type, builder_.mul(before, inner));
    StateArithmetic arithmetic{builder_, {type, 1}};
    const ExprId reference = State(arithmetic, first->identity, first->scale)
                                 .reference(value, as_count(type, builder_.mul(after, inner)));
    const ExprId old = masked_load(state.state, address, kernel::none);
    std::set<BufferId> done;
    for (size_t d = 0; d < running.members.size(); ++d) {
      const CascadeMember& dependent = chain.cascade.members[d];
      const BufferId step = running.members[d].step;
      if (dependent.reference != m || !done.insert(step).second) continue;
      const ExprId by = State(arithmetic, dependent.identity, dependent.scale).step(old, seen, reference);
      statements.push_back(builder_.store(step, address, by, mask));
    }
    statements.push_back(builder_.store(state.reference, address, reference, mask));
  }
  statements.push_back(builder_.store(state.state, address, value, mask));
}

ExprId Lowering::overridden(Value value, const Coordinates& coordinates, ExprId mask) {
  for (const auto& [number, running] : running_) {
    if (!running.active) continue;
    const Chain& chain = tree_.chains[static_cast<size_t>(number)];
    for (const CascadeMember& m : chain.cascade.members)
      for (const CascadeMember::Factor& f : m.factors)
        if (f.node == value.node) return builder_.floating({element_of(value.node), 1}, 1.0);
    const auto reference = chain.cascade.reference_nodes.find(value.node);
    if (reference == chain.cascade.reference_nodes.end()) continue;
    const MemberState& state = running.members[static_cast<size_t>(reference->second)];
    const NodeId reduction = chain.cascade.members[static_cast<size_t>(reference->second)].node;
    const auto at = coordinates_at(value.node, coordinates, reduction, mask);
    check(at.has_value(), "a reference does not lead to its reduction");
    return masked_load(state.reference, address_in(state.box, *at), mask);
  }
  return kernel::none;
}

// Through nodes that scale a value or only pass it on.
std::optional<Lowering::Coordinates> Lowering::coordinates_at(NodeId from, const Coordinates& coordinates,
                                                              NodeId to, ExprId mask) {
  if (from == to) return coordinates;
  const Form& form = forms_.form(from);
  if (form.accumulation) return std::nullopt;
  for (const Read& read : form.reads) {
    const NodeId producer = forms_.operand(from, read).node;
    if (!forms_.is_member(producer) || producer < to) continue;
    Coordinates next;
    for (const IndexExpr& index : read.index) next.push_back(index_expr(from, index, coordinates, mask));
    if (auto found = coordinates_at(producer, next, to, mask)) return found;
  }
  return std::nullopt;
}

// ---------------------------------------------------------------- beginning and end

// The state of no elements, or the state as it goes to memory.
StmtId Lowering::emit_state_pass(int index, const Box& box) {
  const int number = stage(index).chain;
  const Chain& chain = tree_.chains[static_cast<size_t>(number)];
  const Running& running = running_.at(number);
  const auto m = static_cast<size_t>(member_at(index));
  const MemberState& state = running.members[m];
  const graph::Accumulation& accumulation = *forms_.form(stage(index).node).accumulation;
  const Tile tile = tile_of(index, box);
  const ExprId address = address_in(state.box, tile.coordinates);
  if (pass_ == Pass::clear) {
    const ExprId identity = identity_of(accumulation.combine, accumulation.accumulator);
    return over_tile(tile, builder_.store(state.state, address, identity, tile.mask));
  }
  const ExprId value = masked_load(state.state, address, kernel::none);
  ExprId place = part_of_.at(chain.runner).second;
  const Shape& shape = shape_of(stage(index).node);
  for (size_t d = 0; d < shape.size(); ++d)
    place = builder_.add(builder_.mul(place, dim_expr(shape[d])), tile.coordinates[d]);
  return over_tile(tile, builder_.store(partials_[static_cast<size_t>(number)][m], place, value, tile.mask));
}

void Lowering::begin_finish(int finisher, const std::map<NodeId, Box>& needed,
                            std::vector<StmtId>& statements) {
  const int number = stage(finisher).chain;
  const Chain& chain = tree_.chains[static_cast<size_t>(number)];
  if (chain.finisher != finisher) return;
  for (size_t m = 0; m + 1 < chain.stages.size(); ++m) {
    const int s = chain.stages[m];
    const Box& box = needed.at(stage(s).node);
    place(s, box, statements);
    if (chain.split()) statements.push_back(run_pass(Pass::finish, s, box));
  }
}

// A member's value in one part, brought to the reference of the whole.
ExprId Lowering::part_value(int number, int m, ExprId part, const Coordinates& coordinates) {
  const Chain& chain = tree_.chains[static_cast<size_t>(number)];
  const auto load = [&](int member, const Coordinates& at) {
    const Shape& shape = shape_of(chain.cascade.members[static_cast<size_t>(member)].node);
    ExprId place = part;
    for (size_t d = 0; d < shape.size(); ++d)
      place = builder_.add(builder_.mul(place, dim_expr(shape[d])), at[d]);
    return masked_load(partials_[static_cast<size_t>(number)][static_cast<size_t>(member)], place,
                       kernel::none);
  };
  const CascadeMember& member = chain.cascade.members[static_cast<size_t>(m)];
  const ExprId value = load(m, coordinates);
  if (member.reference < 0) return value;
  const Form& form = forms_.form(member.node);
  const DataType type = form.accumulation->accumulator;
  const Coordinates at = mapped(member.reference_at, coordinates);
  const NodeId reference = chain.cascade.members[static_cast<size_t>(member.reference)].node;
  const ExprId whole = dim_expr(form.axes[static_cast<size_t>(block_axis(form))].extent);
  const ExprId tile = builder_.integer(stage(chain.runner).loops[static_cast<size_t>(chain.part_loop)].tile);
  const ExprId inner = dim_expr(elements_per_index(form));
  const ExprId elements = builder_.min(tile, builder_.sub(whole, builder_.mul(part, tile)));
  StateArithmetic arithmetic{builder_, {type, 1}};
  State state(arithmetic, member.identity, member.scale);
  const ExprId to =
      state.reference(value_at({reference, 0}, at, kernel::none), as_count(type, builder_.mul(whole, inner)));
  const ExprId by = state.step(load(member.reference, at), as_count(type, builder_.mul(elements, inner)), to);
  return state.moved(value, by);
}

// What the accumulator stands for, times what was left out of the sum.
ExprId Lowering::finished(int number, int m, const Coordinates& coordinates, ExprId value) {
  const Cascade& cascade = tree_.chains[static_cast<size_t>(number)].cascade;
  const CascadeMember& member = cascade.members[static_cast<size_t>(m)];
  const Form& form = forms_.form(member.node);
  StateArithmetic arithmetic{builder_, {form.accumulation->accumulator, 1}};
  if (member.reference >= 0) {
    const NodeId reference = cascade.members[static_cast<size_t>(member.reference)].node;
    const ExprId raw = value_at({reference, 0}, mapped(member.reference_at, coordinates), kernel::none);
    const ExprId settled = State(arithmetic, member.identity, member.scale).settled(value, raw);
    ExprId elements = builder_.integer(1);
    for (const graph::Axis& a : form.axes)
      if (a.reduction) elements = builder_.mul(elements, dim_expr(a.extent));
    const ExprId any = builder_.less(zero(), elements);
    const auto known = builder_.constant_value(any);
    value = known == 1 ? settled : known == 0 ? value : arithmetic.select(any, settled, value);
  }
  for (const CascadeMember::Factor& f : member.factors) {
    const ExprId factor = convert(value_at({f.node, 0}, mapped(f.at, coordinates), kernel::none),
                                  form.accumulation->accumulator);
    value = f.divides ? arithmetic.div(value, factor) : arithmetic.mul(value, factor);
  }
  return value;
}

// Parts are combined one after the other, whoever computed them.
StmtId Lowering::emit_finish(int index, const Box& box) {
  const int number = stage(index).chain;
  const Chain& chain = tree_.chains[static_cast<size_t>(number)];
  const int m = member_at(index);
  std::vector<StmtId> statements;
  if (!chain.split()) {
    const Tile tile = tile_of(index, box);
    const MemberState& state = running_.at(number).members[static_cast<size_t>(m)];
    const ExprId value = masked_load(state.state, address_in(state.box, tile.coordinates), kernel::none);
    store_element(index, tile.coordinates, finished(number, m, tile.coordinates, value), tile.mask,
                  statements);
    return over_tile(tile, builder_.block(std::move(statements)));
  }
  const Form& form = forms_.form(stage(index).node);
  const graph::Accumulation& accumulation = *form.accumulation;
  const Tile first = tile_of(index, box);
  const BufferId acc = register_buffer("acc", accumulation.accumulator, first.elements, statements);
  statements.push_back(over_tile(
      first,
      builder_.store(acc, first.position, identity_of(accumulation.combine, accumulation.accumulator))));
  const ExprId tile_of_part =
      builder_.integer(stage(chain.runner).loops[static_cast<size_t>(chain.part_loop)].tile);
  const ExprId whole = dim_expr(form.axes[static_cast<size_t>(block_axis(form))].extent);
  const ExprId parts =
      builder_.floor_div(builder_.sub(builder_.add(whole, tile_of_part), builder_.integer(1)), tile_of_part);
  statements.push_back(serial_loop("part", parts, [&](ExprId part) {
    const Tile tile = tile_of(index, box);
    const ExprId value = part_value(number, m, part, tile.coordinates);
    const ExprId old = builder_.load(acc, tile.position);
    return over_tile(tile,
                     builder_.store(acc, tile.position,
                                    combined(accumulation.combine, accumulation.accumulator, old, value)));
  }));
  const Tile last = tile_of(index, box);
  std::vector<StmtId> stores;
  const ExprId value = finished(number, m, last.coordinates, builder_.load(acc, last.position));
  store_element(index, last.coordinates, value, last.mask, stores);
  statements.push_back(over_tile(last, builder_.block(std::move(stores))));
  return builder_.block(std::move(statements));
}

}  // namespace fusewise::schedule

// Loops and branches. A body is composed like a graph of its own, of its inputs and of what it captures; all inputs that
// its operations want are inputs of the whole.
#include <algorithm>

#include "base/error.h"
#include "support/random_graphs/composer.h"

namespace fusewise::test {

using graph::Op;
using graph::TensorType;

namespace {

constexpr int64_t most_trips = 9;
constexpr int64_t most_state = 200;  // elements

}  // namespace

std::unique_ptr<Composer> Composer::begin_body() {
  GraphOptions options = options_;
  options.most_elements = std::min<int64_t>(options.most_elements, 400);
  options.most_work = std::min<int64_t>(options.most_work, 3000);
  options.blocks = options.blocks && random_.chance(40);
  options.promises = options.odd_borders = false;
  --options.control_depth;
  auto body = std::make_unique<Composer>(static_cast<uint64_t>(random_.between(0, INT64_MAX)), options);
  body->outer_ = this;
  body->case_.symbols = case_.symbols;
  body->late_ = late_;
  body->next_source();
  return body;
}

Composer::Value Composer::capture(Value outer) {
  if (const auto known = inside_.find(outer); known != inside_.end()) return known->second;
  Value inside;
  if (const graph::ConstantData* data = graph::constant_of(outer_->case_.graph, outer)) {
    inside = builder_.constant(data->type, data->bytes, data->owner, data->name);
  } else {  // listed as an input at the end only
    inside = builder_.append(Op::input, {}, graph::InputAttributes{}, outer_->case_.graph.type(outer));
    captures_.push_back(outer);
  }
  return inside_[outer] = inside;
}

void Composer::grow_body(Composer& body) {
  for (int64_t k = random_.below(3); k > 0; --k)
    if (const Value v = pick(); count(sizes(v)) <= body.options_.most_elements)
      body.pool_.push_back(body.capture(v));
  if (body.pool_.empty()) body.pool_.push_back(body.new_input(random_float_type(), {3}));
  const auto operations = body.random_.between(1, 5);
  int64_t done = 0;
  for (int64_t attempt = 0; done < operations && attempt < 20 + 8 * operations; ++attempt)
    done += body.try_operation() ? 1 : 0;
}

// A value of the body of this type: a computed one, or `otherwise` as it is or with something done to it.
Composer::Value Composer::result_of_type(const TensorType& wanted, std::optional<Value> otherwise) {
  const auto found = pick_where([&](Value v) { return case_.graph.type(v) == wanted && v != otherwise; });
  if (found && random_.chance(80)) return *found;
  if (!otherwise) otherwise = add_input(wanted.element, wanted.shape);
  if (wanted.element == DataType::boolean || random_.chance(15)) return *otherwise;
  try {
    return builder_.map_broadcast(random_.one_of({ScalarOp::add, ScalarOp::max, ScalarOp::sub}),
                                  {*otherwise, scalar(wanted.element)});
  } catch (const UserError&) {
    return *otherwise;
  }
}

graph::Body Composer::finish_body(const std::vector<Value>& outputs, const std::vector<Value>& captures) {
  for (const Value& outer : captures) {
    auto known = inside_.find(outer);
    if (known == inside_.end())
      known = inside_
                  .emplace(outer, builder_.append(Op::input, {}, graph::InputAttributes{},
                                                  outer_->case_.graph.type(outer)))
                  .first;
    case_.graph.inputs.push_back({known->second.node, "captured " + std::to_string(outer.node)});
  }
  for (size_t i = 0; i < outputs.size(); ++i) builder_.output(outputs[i], "r" + std::to_string(i));
  outer_->case_.symbols = case_.symbols;
  return std::make_shared<const graph::Graph>(std::move(case_.graph));
}

// A boolean scalar.
Composer::Value Composer::condition() {
  const TensorType wanted{DataType::boolean, {}};
  if (const auto found = pick_where([&](Value v) { return case_.graph.type(v) == wanted; });
      found && random_.chance(70))
    return *found;
  if (random_.chance(50)) return add_input(DataType::boolean, {}, 0, 30);
  return builder_.map(ScalarOp::less,
                      {add_input(DataType::int64, {}, 10), builder_.scalar(DataType::int64, 4)});
}

std::optional<Composer::Value> Composer::loop() {
  graph::LoopAttributes a;
  const bool bounded = random_.chance(70);
  std::vector<Value> limits, carried, scanned;
  if (bounded) {
    a.trips = dim_of(random_.chance(10) ? 0 : random_.between(1, most_trips));
    const auto suited = pick_where([&](Value v) {
      return rank(v) > 0 && size_of(shape(v)[0]) <= most_trips && count(sizes(v)) <= 10 * most_state;
    });
    if (suited && random_.chance(70)) {
      a.trips = shape(*suited)[0];
      scanned.push_back(*suited);
    }
    if (random_.chance(40))
      scanned.push_back(add_input(random_type(), {*a.trips, dim_of(random_.between(1, 9))}));
  }
  a.counted = random_.chance(bounded ? 10 : 70);
  a.conditional = random_.chance(bounded ? 15 : 40);
  if (!bounded && !a.counted) a.counted = true;
  if (a.counted) {
    const Value number = add_input(DataType::int64, {}, 10);
    limits.push_back(builder_.map(ScalarOp::min, {number, builder_.scalar(DataType::int64, 6)}));
  }
  if (a.conditional) limits.push_back(condition());
  for (int64_t k = random_.between(bounded ? 0 : 1, 3); k > 0; --k) {
    const auto state = pick_where([&](Value v) { return count(sizes(v)) <= most_state; });
    carried.push_back(state ? *state : add_input(random_type(), {dim_of(random_.between(1, 20))}));
  }
  const bool stacks = bounded && !a.counted && !a.conditional;
  if (carried.empty() && !stacks) carried.push_back(add_input(DataType::float32, {dim_of(5)}));
  a.carried = static_cast<int>(carried.size());

  const auto body = begin_body();
  const auto own = [&](const char* name, TensorType own_type) {
    const Value v = body->builder_.input(name, std::move(own_type));
    body->pool_.push_back(v);
    return v;
  };
  own("i", {DataType::int64, {}});
  std::vector<Value> states;
  for (Value v : carried) states.push_back(own("state", case_.graph.type(v)));
  for (Value v : scanned) {
    TensorType slice = case_.graph.type(v);
    slice.shape.erase(slice.shape.begin());
    own("slice", std::move(slice));
    a.scanned.push_back(random_.chance(70) ? 1 : -1);
  }
  grow_body(*body);
  std::vector<Value> outputs;
  if (a.conditional) outputs.push_back(body->condition());
  for (size_t s = 0; s < states.size(); ++s)
    outputs.push_back(body->result_of_type(case_.graph.type(carried[s]), states[s]));
  for (int64_t k = stacks ? random_.between(carried.empty() ? 1 : 0, 2) : 0; k > 0; --k) {
    const auto found = body->pick_where([&](Value v) { return count(body->sizes(v)) <= 2 * most_state; });
    outputs.push_back(!states.empty() && random_.chance(40) ? random_.one_of(outputs)
                      : found                               ? *found
                                                            : body->pool_.front());
    a.stacked.push_back(random_.chance(70) ? 1 : -1);
  }
  const std::vector<Value> captures = body->captures_;
  std::vector<Value> operands = limits;
  for (const std::vector<Value>* group :
       std::initializer_list<const std::vector<Value>*>{&carried, &scanned, &captures})
    operands.insert(operands.end(), group->begin(), group->end());
  const std::vector<Value> results =
      builder_.control(Op::loop, std::move(operands), std::move(a), {body->finish_body(outputs, captures)});
  pool_.insert(pool_.end(), results.begin(), results.end() - 1);
  return results.back();
}

std::optional<Composer::Value> Composer::branch() {
  const Value chosen = condition();
  const auto first = begin_body();
  grow_body(*first);
  std::vector<TensorType> types;
  std::vector<Value> outputs[2];
  for (int64_t k = random_.between(1, 3); k > 0; --k) {
    outputs[0].push_back(first->pick());
    types.push_back(first->case_.graph.type(outputs[0].back()));
  }
  case_.symbols = first->case_.symbols;
  const auto second = begin_body();
  grow_body(*second);
  for (const TensorType& wanted : types) outputs[1].push_back(second->result_of_type(wanted, std::nullopt));
  std::vector<Value> captures = first->captures_;
  for (Value v : second->captures_)
    if (std::ranges::find(captures, v) == captures.end()) captures.push_back(v);
  std::vector<Value> operands = {chosen};
  operands.insert(operands.end(), captures.begin(), captures.end());
  first->case_.symbols = second->case_.symbols;
  const graph::Body bodies[] = {first->finish_body(outputs[0], captures),
                                second->finish_body(outputs[1], captures)};
  const std::vector<Value> results =
      builder_.control(Op::branch, std::move(operands), graph::BranchAttributes{}, {bodies[0], bodies[1]});
  pool_.insert(pool_.end(), results.begin(), results.end() - 1);
  return results.back();
}

}  // namespace fusewise::test

#include "support/random_graphs/composer.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "base/error.h"
#include "graph/form.h"
#include "graph/shape_rules.h"

namespace fusewise::test {

GraphCase Composer::compose() {
  const auto inputs = random_.between(1, 2);
  for (int64_t i = 0; i < inputs; ++i) pool_.push_back(new_input(random_type(), random_sizes()));
  const auto operations = random_.between(options_.least_operations, options_.most_operations);
  int64_t done = 0;
  for (int64_t attempt = 0; done < operations && attempt < 20 + 8 * operations; ++attempt)
    done += try_operation() ? 1 : 0;
  if (options_.promises) add_promises();
  add_outputs();
  if (options_.odd_borders) add_odd_outputs();
  check_symbols();
  return std::move(case_);
}

bool Composer::try_operation() {
  static constexpr std::pair<Maker, int> makers[] = {
      {&Composer::unary, 16},         {&Composer::binary, 22},
      {&Composer::select, 3},         {&Composer::cast, 5},
      {&Composer::reduce, 13},        {&Composer::broadcast, 5},
      {&Composer::reshape, 8},        {&Composer::transpose, 6},
      {&Composer::slice, 6},          {&Composer::pad, 5},
      {&Composer::concat, 5},         {&Composer::dot, 11},
      {&Composer::convolution, 7},    {&Composer::window, 6},
      {&Composer::gather, 5},         {&Composer::iota, 3},
      {&Composer::dims, 1},           {&Composer::split, 2},
      {&Composer::same_again, 2},     {&Composer::transposed_convolution, 1},
      {&Composer::pad_from_inside, 1}};
  static constexpr std::pair<Maker, int> blocks[] = {
      {&Composer::softmax, 4},   {&Composer::norm, 4},     {&Composer::layers, 4},
      {&Composer::attention, 2}, {&Composer::repeated, 2}, {&Composer::convolution_block, 3}};
  static constexpr std::pair<Maker, int> alone[] = {
      {&Composer::prefix, 5},   {&Composer::scatter, 6}, {&Composer::top_k, 3},
      {&Composer::non_zero, 2}, {&Composer::unique, 2},  {&Composer::non_max_suppression, 1},
      {&Composer::read_size, 2}};
  // Bodies bind no sizes.
  static constexpr std::pair<Maker, int> alone_in_bodies[] = {
      {&Composer::prefix, 5}, {&Composer::scatter, 6}, {&Composer::top_k, 3}};
  static constexpr std::pair<Maker, int> control[] = {{&Composer::loop, 9}, {&Composer::branch, 5}};
  std::vector<Maker> choices;
  const auto offer = [&](std::span<const std::pair<Maker, int>> offered) {
    for (const auto& [maker, weight] : offered)
      choices.insert(choices.end(), static_cast<size_t>(weight), maker);
  };
  offer(makers);
  if (options_.blocks) offer(blocks);
  if (options_.alone && outer_) offer(alone_in_bodies);
  if (options_.alone && !outer_) offer(alone);
  if (options_.control_depth > 0) offer(control);
  return try_maker(random_.one_of(choices));
}

bool Composer::try_maker(Maker maker) {
  next_source();
  const size_t before = case_.graph.size();
  Value made;
  try {
    made = (this->*maker)().value_or(Value{});
  } catch (const UserError&) {
    made = {};
  }
  // What was appended before a refusal stays: it is dead, or becomes an output.
  for (size_t n = before; n < case_.graph.size(); ++n) check_node(static_cast<graph::NodeId>(n));
  if (made.node == graph::no_node || made.node < before) return false;
  pool_.push_back(made);
  return true;
}

// Neighbours are one model operator now and then.
void Composer::next_source() {
  auto& nodes = case_.graph.model_nodes;
  if (nodes.empty() || random_.chance(65))
    nodes.push_back({"n" + std::to_string(nodes.size()), "Op", "t" + std::to_string(nodes.size())});
  builder_.set_source(static_cast<uint32_t>(nodes.size() - 1));
}

// Throws Unfit when the symbols' values do not satisfy what a node requires, or when it is too large.
void Composer::check_node(graph::NodeId node) const {
  for (const graph::Requirement& r : graph::requirements_of(case_.graph, node))
    if (!graph::holds(r, case_.symbols)) throw Unfit{};
  // Also what is empty has no huge dimensions beside the 0.
  for (uint32_t r = 0; r < case_.graph.node(node).results.size(); ++r) {
    int64_t extent = 1;
    for (int64_t s : sizes({node, r})) {
      if (s < 0) throw Unfit{};
      extent *= std::max<int64_t>(s, 1);
      if (extent > 4 * options_.most_elements) throw Unfit{};
    }
  }
}

// Every symbol has to follow from the shape of an input, or a node binds it.
void Composer::check_symbols() const {
  std::set<std::string> bound = late_;
  for (const graph::GraphInput& input : case_.graph.inputs)
    for (const Dim& d : shape({input.node, 0}))
      if (const auto symbol = d.as_symbol()) bound.insert(*symbol);
  for (graph::NodeId n = 0; n < case_.graph.size(); ++n)
    for (const std::string& symbol : graph::symbols_of(case_.graph.node(n)))
      if (!bound.contains(symbol)) throw Unfit{};
}

// Every value that nothing reads, and now and then one that is read.
void Composer::add_outputs() {
  std::set<Value> read, named;
  for (graph::NodeId n = 0; n < case_.graph.size(); ++n)
    read.insert(case_.graph.node(n).operands.begin(), case_.graph.node(n).operands.end());
  for (const graph::GraphOutput& o : case_.graph.outputs) named.insert(o.value);
  for (graph::NodeId n = 0; n < case_.graph.size(); ++n) {
    const graph::Op op = case_.graph.node(n).op;
    if (graph::kind_of(op) == graph::Kind::control) continue;  // its `result` nodes do
    if (!graph::has_form(case_.graph, n) && !graph::stands_alone(case_.graph, n) && op != graph::Op::result)
      continue;
    for (uint32_t r = 0; r < case_.graph.node(n).results.size(); ++r)
      if ((!read.contains({n, r}) || random_.chance(8)) && !named.contains({n, r}))
        case_.graph.outputs.push_back({{n, r}, "y" + std::to_string(case_.graph.outputs.size())});
  }
  if (case_.graph.outputs.empty()) throw Unfit{};
}

void Composer::add_odd_outputs() {
  const auto add = [&](Value v) {
    case_.graph.outputs.push_back({v, "y" + std::to_string(case_.graph.outputs.size())});
  };
  if (random_.chance(15)) add(random_.one_of(case_.graph.outputs).value);
  if (random_.chance(15)) {
    const auto any = static_cast<graph::NodeId>(random_.below(static_cast<int64_t>(case_.graph.size())));
    if (graph::kind_of(case_.graph.node(any).op) != graph::Kind::control) add({any, 0});
  }
  if (random_.chance(5) && !case_.graph.inputs.empty()) add({random_.one_of(case_.graph.inputs).node, 0});
  random_.shuffle(case_.graph.outputs);
}

GraphCase random_graph(uint64_t seed, const GraphOptions& options) {
  for (uint64_t again = 0;; ++again) try {
      return Composer(seed + again * 0x100000001ULL, options).compose();
    } catch (const Composer::Unfit&) {
    }
}

}  // namespace fusewise::test

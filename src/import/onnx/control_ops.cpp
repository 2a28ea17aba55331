// Control flow: loops and branches of the graph, as far as import cannot take them away.
#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "graph/body_builder.h"
#include "import/onnx/compose.h"
#include "import/onnx/importer.h"
#include "import/onnx/loop_end.h"
#include "import/onnx/op_table.h"

namespace fusewise::onnx {

namespace {

using graph::BodyBuilder;
using graph::LoopAttributes;
using graph::TensorType;
using graph::Value;

// What many models give as the number of iterations of a loop that its condition ends.
constexpr int64_t endless = INT32_MAX;

const Graph& body_of(Call& c, std::string_view name) {
  const Attribute* a = c.attribute(name);
  if (!a || a->graphs.size() != 1) c.fail(fmt::format("attribute '{}' holds no graph", name));
  return *a->graphs[0];
}

ItemPtr known_item(DataType type, int64_t value, const ValueInfo& info) {
  auto item = std::make_shared<Item>();
  const std::vector<int64_t> shape(info.shape ? info.shape->size() : 0, 1);
  item->known = KnownTensor{type, shape, {Dim(value)}};
  return item;
}

// Where a part of the body is not imported, the whole is not.
bool hand_on_unsupported(Call& c, const std::vector<ItemPtr>& results) {
  const auto found = std::ranges::find_if(results, [](const ItemPtr& item) { return item->is_unsupported; });
  if (found == results.end()) return false;
  for (size_t i = 0; i < c.outputs(); ++i) c.set_item(i, *found);
  return true;
}

// A body with these results, or null where some are not imported.
std::unique_ptr<BodyBuilder> branch_body(Call& c, const Graph& source, std::vector<TensorType>& types) {
  const Importer::InBody in_body(c.importer(), source);
  const std::vector<ItemPtr> results = c.importer().import_body(source, c.scope(), {});
  if (hand_on_unsupported(c, results)) return nullptr;
  BodyBuilder& body = c.importer().body();
  for (size_t i = 0; i < results.size(); ++i) {
    const Value value = c.importer().materialize(*results[i]);
    types.push_back(body.builder().type(value));
    body.output(value, std::string(source.outputs[i].name));
  }
  return c.importer().take_body();
}

// A condition that is known takes its branch.
void if_then_else(Call& c) {
  const Graph& then_graph = body_of(c, "then_branch");
  const Graph& else_graph = body_of(c, "else_branch");
  if (then_graph.outputs.size() != c.outputs() || else_graph.outputs.size() != c.outputs())
    c.fail("a branch has another number of results than the node");
  const KnownTensor* known = c.known(0);
  if (known && known->values.size() == 1 && known->values[0].is_constant()) {
    const Graph& taken = known->values[0].is(0) ? else_graph : then_graph;
    const std::vector<ItemPtr> results = c.importer().import_body(taken, c.scope(), {});
    for (size_t i = 0; i < results.size(); ++i) c.set_item(i, results[i]);
    return;
  }
  std::vector<TensorType> then_types, else_types;
  const std::unique_ptr<BodyBuilder> then_body = branch_body(c, then_graph, then_types);
  const std::unique_ptr<BodyBuilder> else_body = branch_body(c, else_graph, else_types);
  if (!then_body || !else_body) return;
  for (size_t i = 0; i < then_types.size(); ++i) {
    if (then_types[i].element != else_types[i].element)
      c.fail("its branches give results of different types");
    if (then_types[i].shape != else_types[i].shape)
      c.unsupported(fmt::format("branches with results of shapes {} and {}", to_string(then_types[i].shape),
                                to_string(else_types[i].shape)));
  }
  const Value condition = c.builder().reshape(c.value(0), {});
  const std::vector<Value> results = graph::append_branch(c.builder(), condition, *then_body, *else_body);
  for (size_t i = 0; i < results.size(); ++i) c.set_output(i, results[i]);
}

void check_state(Call& c, const TensorType& before, const TensorType& after) {
  if (before.element != after.element) c.fail("a carried value changes its type");
  if (before.shape != after.shape)
    c.unsupported(fmt::format("a carried value that begins with shape {} and goes on with {}",
                              to_string(before.shape), to_string(after.shape)));
}

class LoopImport {
 public:
  explicit LoopImport(Call& c) : c_(c), importer_(c.importer()), source_(body_of(c, "body")) {
    if (c.inputs() < 2 || source_.inputs.size() != c.inputs())
      c.fail("its body has another number of inputs than the node gives");
    if (source_.outputs.size() != c.outputs() + 1 || c.outputs() + 2 < c.inputs())
      c.fail("its body has another number of results than the node");
    states_ = c.inputs() - 2;
  }

  void import() {
    read_limits();
    for (size_t s = 0; s < states_; ++s) carried_.push_back(c_.value(2 + s));
    const std::unique_ptr<BodyBuilder> body = import_body();
    if (!body) return;
    const size_t stacks = c_.outputs() - states_;
    if (stacks > 0 && (loop_.counted || loop_.conditional))
      c_.unsupported("what is gathered over a number of iterations that depends on data");
    loop_.stacked.assign(stacks, 1);
    loop_.carried = static_cast<int>(states_);
    std::vector<Value> operands;
    if (loop_.counted) operands.push_back(*count_);
    if (loop_.conditional) operands.push_back(start_ ? *start_ : c_.builder().scalar(DataType::boolean, 1));
    operands.insert(operands.end(), carried_.begin(), carried_.end());
    const std::vector<Value> results = graph::append_loop(c_.builder(), loop_, std::move(operands), *body);
    for (size_t i = 0; i < results.size(); ++i) c_.set_output(i, results[i]);
  }

 private:
  void read_limits() {
    if (c_.has(0)) {
      const KnownTensor* known = c_.known(0);
      if (!known)
        count_ = c_.builder().cast(c_.builder().reshape(c_.value(0), {}), DataType::int64);
      else if (known->values.size() != 1)
        c_.fail("the number of iterations is not one number");
      else if (!known->values[0].is_constant() || known->values[0].value() < endless)
        loop_.trips = max(known->values[0], 0);
      loop_.counted = count_.has_value();
    }
    if (!c_.has(1)) return;
    const KnownTensor* known = c_.known(1);
    if (!known || !known->values.at(0).is_constant())
      start_ = c_.builder().reshape(c_.value(1), {});
    else if (known->values[0].is(0))
      loop_.trips = 0;
    loop_.conditional = start_.has_value();
  }

  // Where the body runs, its condition holds.
  std::unique_ptr<BodyBuilder> import_body() {
    const Importer::InBody in_body(importer_, source_);
    BodyBuilder& body = importer_.body();
    Value counter = body.input(std::string(source_.inputs[0].name), {DataType::int64, {}});
    const auto& shape = source_.inputs[0].shape;
    if (shape && shape->size() == 1) counter = body.builder().reshape(counter, {1});
    std::vector<ItemPtr> arguments = {importer_.item_of(counter),
                                      known_item(DataType::boolean, 1, source_.inputs[1])};
    std::vector<TensorType> types;
    for (size_t s = 0; s < states_; ++s) {
      types.push_back(c_.type(2 + s));
      arguments.push_back(importer_.item_of(body.input(std::string(source_.inputs[2 + s].name), types[s])));
    }
    const std::vector<ItemPtr> results = importer_.import_body(source_, c_.scope(), arguments);
    if (hand_on_unsupported(c_, results)) return nullptr;
    std::vector<Value> values;
    for (size_t i = 1; i < results.size(); ++i) values.push_back(importer_.materialize(*results[i]));
    for (size_t s = 0; s < states_; ++s) check_state(c_, types[s], body.builder().type(values[s]));
    add_condition(body, *results[0], values);
    for (size_t i = 0; i < values.size(); ++i)
      body.output(values[i], std::string(source_.outputs[1 + i].name));
    return importer_.take_body();
  }

  void add_condition(BodyBuilder& body, Item& item, const std::vector<Value>& after) {
    const KnownTensor* known = importer_.known_of(item);
    const bool is_known = known && known->values.size() == 1 && known->values[0].is_constant();
    if (is_known && known->values[0].is(0)) loop_.trips = loop_.trips ? min(*loop_.trips, 1) : Dim(1);
    const bool always = is_known && (!known->values[0].is(0) || !loop_.counted);
    if (!always) loop_.conditional = true;
    if (always && !loop_.trips && !loop_.counted) c_.fail("nothing ends the loop");
    if (!loop_.conditional) return;
    const Value go_on = body.builder().reshape(importer_.materialize(item), {});
    if (loop_.trips && !loop_.counted && is_idle(body, go_on, after))
      loop_.conditional = false;
    else
      body.output(go_on, "goes on");
  }

  bool is_idle(BodyBuilder& body, Value go_on, const std::vector<Value>& after) {
    const graph::Graph& inside = body.builder().graph();
    const auto input = [&](size_t i) { return Value{inside.inputs[i].node, 0}; };
    LoopEnd end{c_.builder().graph(), inside, *loop_.trips, start_, carried_, input(0), go_on, {}, {}};
    for (size_t s = 0; s < states_; ++s) end.before.push_back(input(1 + s));
    end.after.assign(after.begin(), after.begin() + static_cast<std::ptrdiff_t>(states_));
    return condition_is_idle(end);
  }

  Call& c_;
  Importer& importer_;
  const Graph& source_;
  size_t states_ = 0;
  LoopAttributes loop_;
  std::optional<Value> count_, start_;
  std::vector<Value> carried_;
};

void loop(Call& c) { LoopImport(c).import(); }

class ScanImport {
 public:
  explicit ScanImport(Call& c) : c_(c), importer_(c.importer()), source_(body_of(c, "body")) {
    const int64_t scanned = c.required_integer("num_scan_inputs");
    if (scanned < 1 || scanned > static_cast<int64_t>(c.inputs()))
      c.fail("attribute 'num_scan_inputs' does not fit its operands");
    states_ = c.inputs() - static_cast<size_t>(scanned);
    if (source_.inputs.size() != c.inputs()) c.fail("its body has another number of inputs than the node");
    if (source_.outputs.size() != c.outputs() || c.outputs() < states_)
      c.fail("its body has another number of results than the node");
  }

  void import() {
    std::vector<Value> operands;
    for (size_t s = 0; s < states_; ++s) operands.push_back(c_.value(s));
    scan(operands);
    const std::unique_ptr<BodyBuilder> body = import_body(operands);
    if (!body) return;
    loop_.carried = static_cast<int>(states_);
    loop_.stacked = directions("scan_output_directions", c_.outputs() - states_);
    const std::vector<Value> results = graph::append_loop(c_.builder(), loop_, operands, *body);
    const std::vector<int64_t> axes = c_.integer_list("scan_output_axes").value_or(std::vector<int64_t>());
    for (size_t i = 0; i < results.size(); ++i) {
      Value value = results[i];
      if (i >= states_ && i - states_ < axes.size()) {
        // The iterations go from the first place to their own.
        const int rank = c_.builder().type(value).rank(), axis = c_.axis(axes[i - states_], rank);
        std::vector<int> permutation = counting(1, rank);
        permutation.insert(permutation.begin() + axis, 0);
        value = c_.builder().transpose(value, std::move(permutation));
      }
      c_.set_output(i, value);
    }
  }

 private:
  std::vector<int> directions(std::string_view name, size_t count) {
    const std::vector<int64_t> given = c_.integer_list(name).value_or(std::vector<int64_t>(count, 0));
    if (given.size() != count) c_.fail(fmt::format("attribute '{}' has a wrong number of entries", name));
    std::vector<int> result;
    for (int64_t direction : given) result.push_back(direction == 0 ? 1 : -1);
    return result;
  }

  // The scanned values with the iterations in front.
  void scan(std::vector<Value>& operands) {
    const size_t count = c_.inputs() - states_;
    loop_.scanned = directions("scan_input_directions", count);
    const std::vector<int64_t> axes =
        c_.integer_list("scan_input_axes").value_or(std::vector<int64_t>(count, 0));
    if (axes.size() != count) c_.fail("attribute 'scan_input_axes' has a wrong number of entries");
    graph::GraphBuilder& b = c_.builder();
    for (size_t i = 0; i < count; ++i) {
      Value value = c_.value(states_ + i);
      const int rank = b.type(value).rank(), axis = c_.axis(axes[i], rank);
      std::vector<int> permutation = {axis};
      for (int d = 0; d < rank; ++d)
        if (d != axis) permutation.push_back(d);
      value = b.transpose(value, std::move(permutation));
      Shape shape = b.shape(value);
      if (!loop_.trips) loop_.trips = shape[0];
      shape[0] = *loop_.trips;
      operands.push_back(b.reshape(value, std::move(shape)));  // where it is not known: all are of one length
    }
  }

  std::unique_ptr<BodyBuilder> import_body(const std::vector<Value>& operands) {
    const Importer::InBody in_body(importer_, source_);
    BodyBuilder& body = importer_.body();
    body.input("iteration", {DataType::int64, {}});
    std::vector<ItemPtr> arguments;
    std::vector<TensorType> types;
    for (size_t i = 0; i < operands.size(); ++i) {
      TensorType type = c_.builder().type(operands[i]);
      if (i >= states_) type.shape.erase(type.shape.begin());
      arguments.push_back(importer_.item_of(body.input(std::string(source_.inputs[i].name), type)));
      types.push_back(std::move(type));
    }
    const std::vector<ItemPtr> results = importer_.import_body(source_, c_.scope(), arguments);
    if (hand_on_unsupported(c_, results)) return nullptr;
    for (size_t i = 0; i < results.size(); ++i) {
      const Value value = importer_.materialize(*results[i]);
      if (i < states_) check_state(c_, types[i], body.builder().type(value));
      body.output(value, std::string(source_.outputs[i].name));
    }
    return importer_.take_body();
  }

  Call& c_;
  Importer& importer_;
  const Graph& source_;
  size_t states_ = 0;
  LoopAttributes loop_;
};

void scan(Call& c) { ScanImport(c).import(); }

constexpr OpRow rows[] = {
    {"If", 1, newest, if_then_else},
    {"Loop", 1, newest, loop},
    {"Scan", 9, newest, scan},
};

}  // namespace

std::span<const OpRow> control_ops() { return rows; }

}  // namespace fusewise::onnx

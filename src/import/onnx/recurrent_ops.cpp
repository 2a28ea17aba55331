// Recurrent layers are loops. The products of all inputs with the weights, and the biases, are one matrix product before
// the first step.
#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "import/onnx/compose.h"
#include "import/onnx/dynamic_quantization.h"
#include "import/onnx/importer.h"
#include "import/onnx/op_table.h"

namespace fusewise::onnx {

namespace {

using graph::GraphBuilder;
using graph::Value;

// Gates [first, first + count) along a dimension, of `width` elements each.
Value gates_of(GraphBuilder& b, Value x, size_t dimension, const Dim& width, int64_t first, int64_t count) {
  Shape shape = b.shape(x);
  std::vector<Dim> starts(shape.size(), Dim(0));
  starts[dimension] = Dim(first) * width;
  shape[dimension] = Dim(count) * width;
  return b.slice(x, starts, std::vector<int64_t>(shape.size(), 1), shape);
}

// A matrix of weights of one direction, [gates * hidden, size]. Quantised ones are [size, gates * hidden], and their
// elements stand for (value - zero) * scale.
struct Weights {
  Value values;
  std::optional<Value> scale, zero;
};

// x W', where the last dimension of x is W's. What quantised weights are multiplied by is quantised for each product.
Value times(GraphBuilder& b, Value x, const Weights& w) {
  const int last = b.type(x).rank() - 1;
  if (!w.scale) return b.dot(x, w.values, {{}, {}, {last}, {1}});
  Compose m(b);
  const auto centred = [&](Value v, Value zero) {
    return m.sub(b.cast(v, DataType::int32), b.cast(zero, DataType::int32));
  };
  const DynamicallyQuantized q = dynamically_quantized(b, x);
  const Value product = b.dot(centred(q.values, q.zero), centred(w.values, *w.zero), {{}, {}, {last}, {0}});
  return m.mul(b.cast(product, DataType::float32), m.mul(q.scale, *w.scale));
}

// What one direction of the layer carries from step to step, inside the body.
struct State {
  Value hidden;
  std::optional<Value> cell;
};

// A step's own arithmetic, inside the body.
class Step {
 public:
  Step(Call& c, GraphBuilder& builder, Dim hidden, const std::string_view* activations, float clip)
      : b(builder), m(builder), c_(c), hidden_(std::move(hidden)), activations_(activations), clip_(clip) {}

  GraphBuilder& b;
  Compose m;

  Value gate(Value x, int64_t first, int64_t count = 1) {
    return gates_of(b, x, b.shape(x).size() - 1, hidden_, first, count);
  }
  // h R' for all gates, or for the rows of these, which are not quantised.
  Value times(Value h, const Weights& w) { return onnx::times(b, h, w); }
  Value times(Value h, const Weights& w, int64_t first, int64_t count) {
    return times(h, {gates_of(b, w.values, 0, hidden_, first, count), {}, {}});
  }
  // The activation of a gate, whose input is clipped where the layer says so.
  Value activate(size_t which, Value x) {
    return activate_plain(which, clip_ > 0 ? m.min(m.max(x, -double{clip_}), double{clip_}) : x);
  }
  Value activate_plain(size_t which, Value x) {
    const std::string_view name = activations_[which];
    if (name == "Sigmoid") return m.sigmoid(x);
    if (name == "Tanh") return m.tanh(x);
    if (name == "Relu") return m.max(x, 0.0);
    if (name == "Softsign") return m.div(x, m.add(m.map(ScalarOp::abs, x), 1.0));
    if (name == "Softplus") return m.softplus(x);
    c_.unsupported(fmt::format("activation '{}'", name));
  }

 private:
  Call& c_;
  Dim hidden_;
  const std::string_view* activations_;
  float clip_;
};

class Recurrent {
 public:
  Recurrent(Call& c, int64_t gates, std::vector<std::string_view> default_activations)
      : c_(c), b_(c.builder()), gates_(gates), defaults_(std::move(default_activations)) {}
  virtual ~Recurrent() = default;
  Recurrent(const Recurrent&) = delete;
  Recurrent& operator=(const Recurrent&) = delete;

  void import(bool has_cell) {
    read_shapes();
    read_activations();
    std::vector<Value> outputs, last_hidden, last_cell;
    for (int64_t d = 0; d < directions_; ++d) {
      const std::vector<Value> results = run_direction(d, has_cell);
      last_hidden.push_back(b_.reshape(results[0], {1, batch_, hidden_}));
      if (has_cell) last_cell.push_back(b_.reshape(results[1], {1, batch_, hidden_}));
      outputs.push_back(b_.reshape(results.back(), {steps_, 1, batch_, hidden_}));
    }
    // The other layout has the batch first.
    const Value y = b_.concat(outputs, 1);
    c_.set_output(0, batch_first_ ? b_.transpose(y, {2, 0, 1, 3}) : y);
    c_.set_output(1, in_layout(b_.concat(last_hidden, 0)));
    if (has_cell) c_.set_output(2, in_layout(b_.concat(last_cell, 0)));
  }

 protected:
  // The parameters of one direction, inside the body. Biases are in the inputs' products already but for what `step`
  // adds itself.
  struct Parameters {
    Weights recurrence;
    std::optional<Value> recurrence_bias, peepholes;
  };
  // `x`: the step's input times the input weights, all gates.
  virtual State step(Step& s, Value x, const State& before, const Parameters& p) = 0;
  // Gates from this one on have their recurrent bias added by `step`.
  virtual int64_t gates_with_bias_outside() const { return gates_; }

  bool couples_gates() const { return c_.integer("input_forget", 0) != 0; }

  // Operand 1 or 2.
  virtual Weights weights(size_t input, int64_t direction) {
    return {of_direction(input, direction), {}, {}};
  }
  virtual Dim hidden_size() const { return c_.type(2).shape[2]; }

  // The part of an operand that belongs to a direction, without that dimension.
  Value of_direction(size_t input, int64_t direction, size_t least_rank = 2) {
    Shape shape = c_.type(input).shape;
    if (shape.size() < least_rank)
      c_.fail(fmt::format("operand {} has less than {} dimensions", input, least_rank));
    std::vector<Dim> starts(shape.size(), Dim(0));
    starts[0] = direction;
    shape[0] = 1;
    const Value part = b_.slice(c_.value(input), starts, std::vector<int64_t>(shape.size(), 1), shape);
    return b_.reshape(part, Shape(shape.begin() + 1, shape.end()));
  }

  Call& c_;
  GraphBuilder& b_;

 private:
  void read_shapes() {
    if (c_.rank(0) != 3 || c_.rank(1) != 3 || c_.rank(2) != 3) c_.fail("an operand has not three dimensions");
    batch_first_ = c_.integer("layout", 0) != 0;
    x_ = batch_first_ ? b_.transpose(c_.value(0), {1, 0, 2}) : c_.value(0);
    steps_ = b_.shape(x_)[0];
    batch_ = b_.shape(x_)[1];
    hidden_ = hidden_size();
    clip_ = c_.number("clip", 0);
    direction_ = c_.string("direction", "forward");
    if (direction_ != "forward" && direction_ != "reverse" && direction_ != "bidirectional")
      c_.fail("attribute 'direction' is unknown");
    directions_ = direction_ == "bidirectional" ? 2 : 1;
    if (!c_.type(2).shape[0].is(directions_)) c_.fail("the weights are not for this number of directions");
  }

  void read_activations() {
    for (int64_t d = 0; d < directions_; ++d)
      activations_.insert(activations_.end(), defaults_.begin(), defaults_.end());
    const Attribute* given = c_.attribute("activations");
    if (!given || given->strings.empty()) return;
    if (given->strings.size() != activations_.size()) c_.fail("there is a wrong number of activations");
    activations_ = given->strings;
  }

  Value in_layout(Value last) { return batch_first_ ? b_.transpose(last, {1, 0, 2}) : last; }

  Value initial(size_t input, int64_t direction) {
    if (!c_.has(input)) return b_.broadcast(b_.scalar(c_.element(0), 0), {batch_, hidden_}, {});
    if (!batch_first_) return b_.reshape(of_direction(input, direction), {batch_, hidden_});
    const Shape shape{batch_, 1, hidden_};
    const Value part = b_.slice(c_.value(input), {0, direction, 0}, {1, 1, 1}, shape);
    return b_.reshape(part, {batch_, hidden_});
  }

  // [steps, batch, gates * hidden]
  Value products(int64_t direction) {
    Compose m(b_);
    const Value x = times(b_, x_, weights(1, direction));
    if (!c_.has(3)) return x;
    const Value both = of_direction(3, direction);
    const Value of_input = gates_of(b_, both, 0, hidden_, 0, gates_);
    const Value of_state = gates_of(b_, both, 0, hidden_, gates_, gates_);
    const int64_t outside = gates_with_bias_outside();
    Value bias =
        m.add(gates_of(b_, of_input, 0, hidden_, 0, outside), gates_of(b_, of_state, 0, hidden_, 0, outside));
    if (outside < gates_)
      bias = b_.concat({bias, gates_of(b_, of_input, 0, hidden_, outside, gates_ - outside)}, 0);
    return m.add(x, bias);
  }

  // The state after the last step, then the outputs of all steps: [steps, batch, hidden].
  std::vector<Value> run_direction(int64_t direction, bool has_cell) {
    graph::LoopAttributes loop;
    loop.trips = steps_;
    const bool backwards = direction_ == "reverse" || direction == 1;
    loop.scanned = loop.stacked = {backwards ? -1 : 1};
    std::vector<Value> operands = {initial(5, direction)};
    if (has_cell) operands.push_back(initial(6, direction));
    loop.carried = static_cast<int>(operands.size());
    operands.push_back(products(direction));
    Parameters outside{weights(2, direction), {}, {}};
    if (c_.has(3) && gates_with_bias_outside() < gates_)
      outside.recurrence_bias = gates_of(b_, of_direction(3, direction), 0, hidden_, gates_, gates_);
    if (c_.has(7)) outside.peepholes = of_direction(7, direction);
    std::optional<Value> lengths;
    if (c_.has(4)) lengths = c_.value(4);

    const Importer::InBody in_body(c_.importer(), c_.node());
    graph::BodyBuilder& body = c_.importer().body();
    const DataType element = c_.element(0);
    const Value counter = body.input("step", {DataType::int64, {}});
    State before{body.input("hidden", {element, {batch_, hidden_}}), {}};
    if (has_cell) before.cell = body.input("cell", {element, {batch_, hidden_}});
    const Value x = body.input("x", {element, {batch_, Dim(gates_) * hidden_}});
    const auto inside = [&](std::optional<Value> v) { return v ? std::optional(body.capture(*v)) : v; };
    const Weights& r = outside.recurrence;
    const Parameters p{{body.capture(r.values), inside(r.scale), inside(r.zero)},
                       inside(outside.recurrence_bias),
                       inside(outside.peepholes)};
    Step s(c_, body.builder(), hidden_,
           activations_.data() + static_cast<size_t>(direction) * defaults_.size(), clip_);
    State next = step(s, x, before, p);
    Value output = next.hidden;
    if (lengths) output = keep_within_length(s, {counter, body.capture(*lengths), backwards}, next, before);
    body.output(next.hidden, "hidden");
    if (has_cell) body.output(*next.cell, "cell");
    body.output(output, "y");
    return graph::append_loop(b_, std::move(loop), std::move(operands), body);
  }

  struct Place {
    Value counter, lengths;
    bool backwards;
  };
  // A sequence that is over by this step keeps its state, and its output is 0.
  Value keep_within_length(Step& s, const Place& place, State& next, const State& before) {
    Value t = place.counter;
    if (place.backwards) t = s.m.sub(s.b.dim(steps_ - 1), t);
    t = s.b.cast(t, s.b.type(place.lengths).element);
    const Value is_inside = s.m.map(ScalarOp::greater, place.lengths, t);
    const Value runs = s.b.broadcast(is_inside, {batch_, hidden_}, {0});
    const Value output = s.m.select(runs, next.hidden, s.m.like(next.hidden, 0));
    next.hidden = s.m.select(runs, next.hidden, before.hidden);
    if (next.cell) next.cell = s.m.select(runs, *next.cell, *before.cell);
    return output;
  }

  Dim hidden_;
  int64_t gates_;
  std::vector<std::string_view> defaults_, activations_;
  Value x_;
  Dim steps_, batch_;
  int64_t directions_ = 1;
  bool batch_first_ = false;
  float clip_ = 0;
  std::string_view direction_;
};

class Lstm : public Recurrent {
 public:
  explicit Lstm(Call& c) : Recurrent(c, 4, {"Sigmoid", "Tanh", "Tanh"}) {}

 protected:
  // Gates in the order input, output, forget, cell.
  State step(Step& s, Value x, const State& before, const Parameters& p) override {
    const Value sum = s.m.add(x, s.times(before.hidden, p.recurrence));
    const auto peep = [&](Value v, int64_t which, Value cell) {
      return p.peepholes ? s.m.add(v, s.m.mul(s.gate(*p.peepholes, which), cell)) : v;
    };
    const Value in = s.activate(0, peep(s.gate(sum, 0), 0, *before.cell));
    const Value forget =
        couples_gates() ? s.m.sub(s.m.like(in, 1), in) : s.activate(0, peep(s.gate(sum, 2), 2, *before.cell));
    const Value fresh = s.activate(1, s.gate(sum, 3));
    const Value cell = s.m.add(s.m.mul(forget, *before.cell), s.m.mul(in, fresh));
    const Value out = s.activate(0, peep(s.gate(sum, 1), 1, cell));
    return {s.m.mul(out, s.activate_plain(2, cell)), cell};
  }
};

// Weights are integers with a scale and a zero point, of the matrix or of each of its columns. The inputs of all steps are
// quantised together, and the state before each step.
class QuantizedLstm : public Lstm {
 public:
  explicit QuantizedLstm(Call& c) : Lstm(c) {
    if (c.has(4)) c.unsupported("lengths of the sequences");
  }

 protected:
  Weights weights(size_t input, int64_t direction) override {
    const size_t scale = input == 1 ? 8 : 10;
    if (!is_integer(c_.element(input))) c_.fail(fmt::format("operand {} is not quantised", input));
    return {of_direction(input, direction), of_direction(scale, direction, 1),
            of_direction(scale + 1, direction, 1)};
  }
  Dim hidden_size() const override { return c_.type(2).shape[1]; }
};

class Gru : public Recurrent {
 public:
  explicit Gru(Call& c)
      : Recurrent(c, 3, {"Sigmoid", "Tanh"}), late_(c.integer("linear_before_reset", 0) != 0) {}

 protected:
  // Where the reset comes late it multiplies the hidden gate's recurrent bias, too.
  int64_t gates_with_bias_outside() const override { return late_ ? 2 : 3; }

  // Gates in the order update, reset, hidden.
  State step(Step& s, Value x, const State& before, const Parameters& p) override {
    const Value of_state =
        late_ ? s.times(before.hidden, p.recurrence) : s.times(before.hidden, p.recurrence, 0, 2);
    const Value both = s.m.add(s.gate(x, 0, 2), s.gate(of_state, 0, 2));
    const Value update = s.activate(0, s.gate(both, 0)), reset = s.activate(0, s.gate(both, 1));
    Value from_state;
    if (late_) {
      from_state = s.gate(of_state, 2);
      if (p.recurrence_bias) from_state = s.m.add(from_state, s.gate(*p.recurrence_bias, 2));
      from_state = s.m.mul(reset, from_state);
    } else {
      from_state = s.times(s.m.mul(reset, before.hidden), p.recurrence, 2, 1);
    }
    const Value fresh = s.activate(1, s.m.add(s.gate(x, 2), from_state));
    const Value kept = s.m.mul(update, before.hidden);
    return {s.m.add(s.m.mul(s.m.sub(s.m.like(update, 1), update), fresh), kept), {}};
  }

 private:
  bool late_;
};

class Rnn : public Recurrent {
 public:
  explicit Rnn(Call& c) : Recurrent(c, 1, {"Tanh"}) {}

 protected:
  State step(Step& s, Value x, const State& before, const Parameters& p) override {
    return {s.activate(0, s.m.add(x, s.times(before.hidden, p.recurrence))), {}};
  }
};

void lstm(Call& c) { Lstm(c).import(true); }
void quantized_lstm(Call& c) { QuantizedLstm(c).import(true); }
void gru(Call& c) { Gru(c).import(false); }
void rnn(Call& c) { Rnn(c).import(false); }

constexpr OpRow rows[] = {
    {"DynamicQuantizeLSTM", 1, newest, quantized_lstm, "com.microsoft"},
    {"GRU", 3, newest, gru},
    {"LSTM", 1, newest, lstm},
    {"RNN", 1, newest, rnn},
};

}  // namespace

std::span<const OpRow> recurrent_ops() { return rows; }

}  // namespace fusewise::onnx

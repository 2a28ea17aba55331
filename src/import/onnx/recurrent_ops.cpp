// Recurrent layers over a constant number of steps, step by step. The products of all inputs with the weights
// are one matrix product before the first step.
#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "import/onnx/compose.h"
#include "import/onnx/dynamic_quantization.h"
#include "import/onnx/op_table.h"

namespace fusewise::onnx {

namespace {

using graph::Value;

constexpr int64_t most_steps = 2048;

Value activated(Call& c, Compose& m, std::string_view name, Value x) {
  if (name == "Sigmoid") return m.sigmoid(x);
  if (name == "Tanh") return m.tanh(x);
  if (name == "Relu") return m.max(x, 0.0);
  if (name == "Softsign") return m.div(x, m.add(m.map(ScalarOp::abs, x), 1.0));
  if (name == "Softplus") return m.softplus(x);
  c.unsupported(fmt::format("activation '{}'", name));
}

// What one direction of the layer carries from step to step.
struct State {
  Value hidden;
  std::optional<Value> cell;
};

class Recurrent {
 public:
  Recurrent(Call& c, int64_t gates, std::vector<std::string_view> default_activations)
      : c_(c), m_(c.builder()), b_(c.builder()), gates_(gates), defaults_(std::move(default_activations)) {}
  virtual ~Recurrent() = default;
  Recurrent(const Recurrent&) = delete;
  Recurrent& operator=(const Recurrent&) = delete;

  void import(bool has_cell) {
    read_shapes();
    read_activations();
    std::vector<Value> outputs, last_hidden, last_cell;
    for (int64_t d = 0; d < directions_; ++d) {
      const State last = run_direction(d, has_cell, outputs);
      last_hidden.push_back(b_.reshape(last.hidden, {1, batch_, hidden_}));
      if (last.cell) last_cell.push_back(b_.reshape(*last.cell, {1, batch_, hidden_}));
    }
    // Each direction's outputs are [steps, 1, batch, hidden]; the other layout has the batch first.
    Value y = b_.concat(outputs, 1), y_h = b_.concat(last_hidden, 0);
    if (batch_first_) {
      y = b_.transpose(y, {2, 0, 1, 3});
      y_h = b_.transpose(y_h, {1, 0, 2});
    }
    c_.set_output(0, y);
    c_.set_output(1, y_h);
    if (!last_cell.empty() && c_.wants(2)) {
      const Value y_c = b_.concat(last_cell, 0);
      c_.set_output(2, batch_first_ ? b_.transpose(y_c, {1, 0, 2}) : y_c);
    }
  }

 protected:
  // A matrix of weights of one direction; of quantised ones the elements stand for (value - zero) * scale.
  struct Weights {
    Value values;
    std::optional<Value> scale, zero;
  };
  // `x`: the step's input times the input weights, all gates; the parameters of this direction.
  struct Parameters {
    Weights recurrence;
    std::optional<Value> input_bias, recurrence_bias, peepholes;
    const std::string_view* activations;
  };
  virtual State step(Value x, const State& before, const Parameters& p) = 0;
  // Operand 1 or 2, [gates * hidden, size].
  virtual Weights weights(size_t input, int64_t direction) {
    return {of_direction(input, direction), {}, {}};
  }
  // x W', where the last dimension of x is W's.
  virtual Value times(Value x, const Weights& w) {
    return b_.dot(x, w.values, {{}, {}, {b_.type(x).rank() - 1}, {1}});
  }
  virtual Dim hidden_size() { return c_.type(2).shape[2]; }

  // Gates [first, first + count) of the last (or only) dimension.
  Value gate(Value x, int64_t first, int64_t count = 1) {
    Shape shape = b_.shape(x);
    std::vector<Dim> starts(shape.size(), Dim(0));
    starts.back() = Dim(first) * hidden_;
    shape.back() = Dim(count) * hidden_;
    return b_.slice(x, starts, std::vector<int64_t>(shape.size(), 1), shape);
  }
  Weights gate_rows(const Weights& w, int64_t first, int64_t count) {
    return {b_.slice(w.values, {Dim(first) * hidden_, 0}, {1, 1}, {Dim(count) * hidden_, hidden_}), {}, {}};
  }
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
  Value activate(const Parameters& p, size_t which, Value x) {
    return activated(c_, m_, p.activations[which], x);
  }

  Call& c_;
  Compose m_;
  graph::GraphBuilder& b_;
  Dim hidden_;

 private:
  void read_shapes() {
    if (c_.rank(0) != 3 || c_.rank(1) != 3 || c_.rank(2) != 3) c_.fail("an operand has not three dimensions");
    batch_first_ = c_.integer("layout", 0) != 0;
    x_ = batch_first_ ? b_.transpose(c_.value(0), {1, 0, 2}) : c_.value(0);
    const Dim steps = b_.shape(x_)[0];
    if (!steps.is_constant()) c_.unsupported("a number of steps that depends on the shapes");
    steps_ = steps.value();
    if (steps_ < 1 || steps_ > most_steps) c_.unsupported(fmt::format("{} steps", steps_));
    batch_ = b_.shape(x_)[1];
    hidden_ = hidden_size();
    direction_ = c_.string("direction", "forward");
    if (direction_ != "forward" && direction_ != "reverse" && direction_ != "bidirectional")
      c_.fail("attribute 'direction' is unknown");
    directions_ = direction_ == "bidirectional" ? 2 : 1;
    if (!c_.type(2).shape[0].is(directions_)) c_.fail("the weights are not for this number of directions");
    if (c_.attribute("clip")) c_.unsupported("clipping");
    if (c_.integer("input_forget", 0) != 0) c_.unsupported("coupled gates");
  }

  void read_activations() {
    for (int64_t d = 0; d < directions_; ++d)
      activations_.insert(activations_.end(), defaults_.begin(), defaults_.end());
    const Attribute* given = c_.attribute("activations");
    if (!given || given->strings.empty()) return;
    if (given->strings.size() != activations_.size()) c_.fail("there is a wrong number of activations");
    activations_ = given->strings;
  }

  Value initial(size_t input, int64_t direction) {
    if (!c_.has(input)) return b_.broadcast(b_.scalar(c_.element(0), 0), {batch_, hidden_}, {});
    if (!batch_first_) return of_direction(input, direction);
    const Shape shape{batch_, 1, hidden_};
    const Value part = b_.slice(c_.value(input), {0, direction, 0}, {1, 1, 1}, shape);
    return b_.reshape(part, {batch_, hidden_});
  }

  Parameters parameters(int64_t direction) {
    Parameters p{weights(2, direction), {}, {}, {}, nullptr};
    if (c_.has(3)) {
      const Value both = of_direction(3, direction);
      p.input_bias = gate(both, 0, gates_);
      p.recurrence_bias = gate(both, gates_, gates_);
    }
    if (c_.has(7)) p.peepholes = of_direction(7, direction);
    p.activations = activations_.data() + static_cast<size_t>(direction) * defaults_.size();
    return p;
  }

  State run_direction(int64_t direction, bool has_cell, std::vector<Value>& outputs) {
    const Parameters p = parameters(direction);
    // [steps, batch, gates * hidden]
    const Value products = times(x_, weights(1, direction));
    const Dim width = Dim(gates_) * hidden_;
    State state{initial(5, direction), {}};
    if (has_cell) state.cell = initial(6, direction);
    std::vector<Value> steps(static_cast<size_t>(steps_));
    const bool backwards = direction_ == "reverse" || direction == 1;
    for (int64_t i = 0; i < steps_; ++i) {
      const int64_t t = backwards ? steps_ - 1 - i : i;
      const Value x =
          b_.reshape(b_.slice(products, {t, 0, 0}, {1, 1, 1}, {1, batch_, width}), {batch_, width});
      State next = step(x, state, p);
      Value output = next.hidden;
      if (c_.has(4)) output = keep_within_length(t, next, state);
      state = next;
      steps[static_cast<size_t>(t)] = b_.reshape(output, {1, 1, batch_, hidden_});
    }
    outputs.push_back(b_.concat(steps, 0));
    return state;
  }

  // A sequence that is over by step t keeps its state, and its output is 0.
  Value keep_within_length(int64_t t, State& next, const State& before) {
    const Value lengths = b_.broadcast(c_.value(4), {batch_, hidden_}, {0});
    const Value runs = m_.greater(lengths, static_cast<double>(t));
    const Value output = m_.select(runs, next.hidden, m_.like(next.hidden, 0));
    next.hidden = m_.select(runs, next.hidden, before.hidden);
    if (next.cell) next.cell = m_.select(runs, *next.cell, *before.cell);
    return output;
  }

  int64_t gates_;
  std::vector<std::string_view> defaults_, activations_;
  Value x_;
  Dim batch_;
  int64_t steps_ = 0, directions_ = 1;
  bool batch_first_ = false;
  std::string_view direction_;
};

class Lstm : public Recurrent {
 public:
  explicit Lstm(Call& c) : Recurrent(c, 4, {"Sigmoid", "Tanh", "Tanh"}) {}

 protected:
  // Gates in the order input, output, forget, cell.
  State step(Value x, const State& before, const Parameters& p) override {
    Value sum = m_.add(x, times(before.hidden, p.recurrence));
    if (p.input_bias) sum = m_.add(m_.add(sum, *p.input_bias), *p.recurrence_bias);
    const auto part = [&](int64_t which) { return gate(sum, which); };
    const auto peep = [&](Value v, int64_t which, Value cell) {
      return p.peepholes ? m_.add(v, m_.mul(gate(*p.peepholes, which), cell)) : v;
    };
    const Value in = activate(p, 0, peep(part(0), 0, *before.cell));
    const Value forget = activate(p, 0, peep(part(2), 2, *before.cell));
    const Value cell = m_.add(m_.mul(forget, *before.cell), m_.mul(in, activate(p, 1, part(3))));
    const Value out = activate(p, 0, peep(part(1), 1, cell));
    return {m_.mul(out, activate(p, 2, cell)), cell};
  }
};

// Weights are integers with a scale and a zero point, of the matrix or of each of its columns. What they are multiplied
// by is quantised for each product: the inputs of all steps together, and the state before each step.
class QuantizedLstm : public Lstm {
 public:
  explicit QuantizedLstm(Call& c) : Lstm(c) {
    if (c.has(4)) c.unsupported("lengths of the sequences");
  }

 protected:
  // [size, gates * hidden]
  Weights weights(size_t input, int64_t direction) override {
    const size_t scale = input == 1 ? 8 : 10;
    if (!is_integer(c_.element(input))) c_.fail(fmt::format("operand {} is not quantised", input));
    return {of_direction(input, direction), of_direction(scale, direction, 1),
            of_direction(scale + 1, direction, 1)};
  }
  Value times(Value x, const Weights& w) override {
    const DynamicallyQuantized q = dynamically_quantized(b_, x);
    const Value product =
        b_.dot(centred(q.values, q.zero), centred(w.values, *w.zero), {{}, {}, {b_.type(x).rank() - 1}, {0}});
    return m_.mul(b_.cast(product, DataType::float32), m_.mul(q.scale, *w.scale));
  }
  Dim hidden_size() override { return c_.type(2).shape[1]; }

 private:
  Value centred(Value x, Value zero) {
    return m_.sub(b_.cast(x, DataType::int32), b_.cast(zero, DataType::int32));
  }
};

class Gru : public Recurrent {
 public:
  explicit Gru(Call& c)
      : Recurrent(c, 3, {"Sigmoid", "Tanh"}), late_(c.integer("linear_before_reset", 0) != 0) {}

 protected:
  // Gates in the order update, reset, hidden.
  State step(Value x, const State& before, const Parameters& p) override {
    Value both = m_.add(gate(x, 0, 2), times(before.hidden, gate_rows(p.recurrence, 0, 2)));
    if (p.input_bias) both = m_.add(m_.add(both, gate(*p.input_bias, 0, 2)), gate(*p.recurrence_bias, 0, 2));
    const Value update = activate(p, 0, gate(both, 0)), reset = activate(p, 0, gate(both, 1));
    const Weights fresh_rows = gate_rows(p.recurrence, 2, 1);
    const auto biased = [&](Value v, const std::optional<Value>& bias) {
      return bias ? m_.add(v, gate(*bias, 2)) : v;
    };
    const Value from_input = biased(gate(x, 2), p.input_bias);
    const Value from_state = late_
                                 ? m_.mul(reset, biased(times(before.hidden, fresh_rows), p.recurrence_bias))
                                 : biased(times(m_.mul(reset, before.hidden), fresh_rows), p.recurrence_bias);
    const Value fresh = activate(p, 1, m_.add(from_input, from_state));
    const Value kept = m_.mul(update, before.hidden);
    return {m_.add(m_.mul(m_.sub(m_.like(update, 1), update), fresh), kept), {}};
  }

 private:
  bool late_;
};

class Rnn : public Recurrent {
 public:
  explicit Rnn(Call& c) : Recurrent(c, 1, {"Tanh"}) {}

 protected:
  State step(Value x, const State& before, const Parameters& p) override {
    Value sum = m_.add(x, times(before.hidden, p.recurrence));
    if (p.input_bias) sum = m_.add(m_.add(sum, *p.input_bias), *p.recurrence_bias);
    return {activate(p, 0, sum), {}};
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

// Forms against the interpreter, which shares nothing with them: results bit for bit in strict order, and
// which elements of the operands each element of a result depends on.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

#include "graph/builder.h"
#include "graph/form.h"
#include "graph/interpreter/evaluate.h"
#include "graph/verifier.h"
#include "support/form_evaluator.h"

namespace fusewise::graph {
namespace {

using test::Array;

struct Subject {
  Graph graph;
  GraphBuilder builder{graph};
  std::mt19937 random;
  SymbolValues symbols;
  Value result;
  double delta = 1000;             // what a perturbed element is changed by
  int exact_operands = INT32_MAX;  // operands from this number on may be read without an effect
  std::vector<Array> arrays;       // of the operands of the result

  explicit Subject(unsigned seed) : random(seed) {}
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  bool flip() { return pick(0, 1) == 1; }
  Value in(Shape shape, DataType type = DataType::float32) {
    return builder.input("x", {type, std::move(shape)});
  }

  // Never zero, so that every product depends on both factors.
  void fill() {
    std::uniform_real_distribution<double> real(0.25, 4);
    for (const Value& operand : graph.node(result.node).operands) {
      const TensorType& type = graph.type(operand);
      Array array{type.element, test::evaluated(type.shape, symbols), {}};
      for (int64_t i = test::count_of(array.shape); i > 0; --i)
        array.values.push_back(test::number(type.element, is_float(type.element)
                                                              ? (flip() ? 1 : -1) * real(random)
                                                              : static_cast<double>(pick(-9, 9))));
      arrays.push_back(std::move(array));
    }
  }
  std::vector<Scalar> interpret() const {
    std::vector<Tensor> tensors;
    for (const Array& array : arrays) {
      std::vector<std::byte> bytes(array.values.size() * static_cast<size_t>(bytes_of(array.type)));
      for (size_t i = 0; i < array.values.size(); ++i)
        store_scalar(bytes.data() + i * static_cast<size_t>(bytes_of(array.type)), array.values[i]);
      tensors.push_back(Tensor::copy_of(array.type, array.shape, bytes));
    }
    const Tensor tensor = evaluate_node(graph, result.node, tensors, symbols);
    std::vector<Scalar> values;
    const size_t size = static_cast<size_t>(bytes_of(tensor.element));
    for (size_t i = 0; i < tensor.bytes().size(); i += size)
      values.push_back(load_scalar(tensor.bytes().data() + i, tensor.element));
    return values;
  }
};

bool same(const Scalar& a, const Scalar& b) {
  return a.i == b.i && ((a.f != a.f && b.f != b.f) || (a.f == b.f && std::signbit(a.f) == std::signbit(b.f)));
}

using Maker = std::function<Value(Subject&)>;

Value make_view(Subject& s) {
  const int64_t a = s.pick(1, 4), b = s.pick(1, 4), c = s.pick(1, 4);
  const Value x = s.in({a, b, c});
  switch (s.pick(0, 5)) {
    case 0:
      return s.builder.transpose(x, {2, 0, 1});
    case 1:
      return s.builder.reshape(x, {c, a * b});
    case 2:
      return s.builder.reshape(x, {b * c, 1, a, 1});
    case 3:
      return s.builder.concat({x, s.in({a, 2, c}), s.in({a, 0, c})}, 1);
    case 4:
      return s.builder.broadcast(x, {3, a, b, c}, {1, 2, 3});
    default:
      return s.builder.slice(x, {a - 1, 0, 0}, {-1, 1, 2}, {a, b, (c + 1) / 2});
  }
}

Value make_pad(Subject& s) {
  const int64_t a = s.pick(2, 5), b = s.pick(2, 5);
  s.exact_operands = 1;
  return s.builder.pad(s.in({a, b}), s.in({}), {s.pick(-1, 2), s.pick(-1, 2)},
                       {s.pick(-1, 2), s.pick(-1, 2)});
}

Value make_gather(Subject& s) {
  s.exact_operands = 1;
  s.delta = 1;
  const Value data = s.in({3, 4, 2});
  return s.builder.gather(data, s.in({2, s.pick(0, 3)}, DataType::int64), static_cast<int>(s.pick(0, 2)));
}

DataType float_type(Subject& s) {
  const DataType types[] = {DataType::float32, DataType::float32, DataType::float64, DataType::float16,
                            DataType::bfloat16};
  return types[s.pick(0, 4)];
}

Value make_reduce(Subject& s) {
  const Combine combine = s.flip() ? Combine::sum : s.flip() ? Combine::max : Combine::min;
  if (combine == Combine::min) s.delta = -1000;
  const Value x = s.in({s.pick(1, 3), s.pick(1, 40), 2, s.pick(1, 30)}, float_type(s));
  const std::vector<std::vector<int>> choices = {{1}, {3}, {1, 3}, {0, 2, 3}, {0, 1, 2, 3}};
  return s.builder.reduce(x, combine, choices[static_cast<size_t>(s.pick(0, 4))]);
}

Value make_dot(Subject& s) {
  const DataType type = float_type(s);
  const int64_t b = s.pick(1, 2), k = s.pick(1, 9), l = s.pick(1, 3);
  const Value x = s.in({k, b, s.pick(1, 3), l}, type), y = s.in({b, l, k, s.pick(1, 3)}, type);
  return s.flip() ? s.builder.dot(x, y, {{1}, {0}, {0, 3}, {2, 1}}) : s.builder.dot(x, y, {{}, {}, {3}, {1}});
}

Value make_convolution(Subject& s) {
  const int64_t groups = s.pick(1, 3), channels = s.pick(1, 2), multiplier = s.pick(1, 2);
  ConvolutionAttributes a;
  for (int d = 0; d < 2; ++d) {
    a.strides.push_back(s.pick(1, 2));
    a.dilations.push_back(s.pick(1, 2));
    a.pad_low.push_back(s.pick(-1, 2));
    a.pad_high.push_back(s.pick(-1, 2));
  }
  a.groups = groups;
  const DataType type = float_type(s);
  s.exact_operands = 1;  // a tap may lie on padding everywhere
  return s.builder.convolution(s.in({1, groups * channels, s.pick(6, 7), s.pick(6, 7)}, type),
                               s.in({groups * multiplier, channels, s.pick(1, 3), s.pick(1, 3)}, type), a);
}

Value make_window(Subject& s) {
  WindowReduceAttributes a;
  a.combine = s.flip() ? Combine::sum : s.flip() ? Combine::max : Combine::min;
  if (a.combine == Combine::min) s.delta = -1000;
  for (int d = 0; d < 2; ++d) {
    a.window.push_back(s.pick(1, 3));
    a.strides.push_back(s.pick(1, 3));
    a.dilations.push_back(s.pick(1, 2));
    a.pad_low.push_back(s.pick(-1, 1));
    a.pad_high.push_back(s.pick(-1, 2));
  }
  return s.builder.window_reduce(s.in({2, s.pick(6, 8), s.pick(6, 8)}, float_type(s)), a);
}

Value make_map(Subject& s) {
  const DataType type = float_type(s);
  const Shape shape = {s.pick(0, 3), s.pick(1, 7)};
  if (s.flip()) return s.builder.map(ScalarOp::mul, {s.in(shape, type), s.in(shape, type)});
  return s.builder.cast(s.in(shape, DataType::int64), type);
}

class FormAndInterpreter : public ::testing::TestWithParam<std::pair<const char*, Maker>> {};

// Which result elements the form says read an element, against which ones change with it.
void check_dependence(Subject& s, const test::FormEvaluator& evaluator, const std::vector<Scalar>& before) {
  std::vector<std::set<std::pair<int, int64_t>>> reads(before.size());
  for (size_t i = 0, j = 0; i < before.size(); ++i)
    for (; j < evaluator.touched_ends[i]; ++j) reads[i].insert(evaluator.touched[j]);
  for (size_t k = 0; k < s.arrays.size(); ++k)
    for (size_t e = 0; e < s.arrays[k].values.size(); ++e) {
      Scalar& element = s.arrays[k].values[e];
      const Scalar kept = element;
      element = test::number(element.type,
                             (is_float(element.type) ? element.f : static_cast<double>(element.i)) + s.delta);
      const std::vector<Scalar> after = s.interpret();
      element = kept;
      for (size_t i = 0; i < before.size(); ++i) {
        const bool read = reads[i].contains({static_cast<int>(k), static_cast<int64_t>(e)});
        const bool changed = !same(before[i], after[i]);
        ASSERT_TRUE(read || !changed) << "operand " << k << " element " << e << " is not read by " << i;
        const bool exact = static_cast<int>(k) < s.exact_operands;
        ASSERT_TRUE(changed || !read || !exact)
            << "operand " << k << " element " << e << " does not affect " << i;
      }
    }
}

TEST_P(FormAndInterpreter, Agree) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Subject s(seed);
    s.result = GetParam().second(s);
    if (s.graph.node(s.result.node).op == Op::input) continue;  // the view was none
    verify(s.graph);
    s.fill();
    const Form form = form_of(s.graph, s.result.node);
    test::FormEvaluator evaluator(form, s.arrays, s.symbols);
    const Array actual = evaluator.run(s.graph.type(s.result).element);
    const std::vector<Scalar> expected = s.interpret();
    ASSERT_EQ(actual.values.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_TRUE(same(actual.values[i], expected[i]))
          << i << ": " << actual.values[i].f << " " << expected[i].f;
    if (evaluator.touched.size() < 2000) check_dependence(s, evaluator, expected);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, FormAndInterpreter,
                         ::testing::Values(std::pair<const char*, Maker>("view", make_view),
                                           std::pair<const char*, Maker>("pad", make_pad),
                                           std::pair<const char*, Maker>("gather", make_gather),
                                           std::pair<const char*, Maker>("map", make_map),
                                           std::pair<const char*, Maker>("reduce", make_reduce),
                                           std::pair<const char*, Maker>("dot", make_dot),
                                           std::pair<const char*, Maker>("convolution", make_convolution),
                                           std::pair<const char*, Maker>("window", make_window)),
                         [](const auto& entry) { return entry.param.first; });

// Long reductions: several blocks, lanes with and without elements, odd numbers of blocks.
TEST(FormAndInterpreterOrder, OfLongReductions) {
  for (int64_t k : {1, 15, 16, 17, 511, 512, 513, 1024, 1537, 5000}) {
    Subject s(static_cast<unsigned>(k));
    s.result = s.builder.reduce(s.in({2, k}), Combine::sum, {1});
    s.fill();
    const Array actual = test::evaluate_form(form_of(s.graph, s.result.node), s.arrays, DataType::float32);
    const std::vector<Scalar> expected = s.interpret();
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_TRUE(same(actual.values[i], expected[i])) << k;
  }
}

}  // namespace
}  // namespace fusewise::graph

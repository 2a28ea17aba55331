// Every scalar operation and type against numerics' evaluation of single numbers, and views against index
// loops.
#include <cstring>

#include "interpreter_testing.h"

namespace fusewise::graph::testing {
namespace {

std::vector<ScalarOp> all_ops() {
  return {
#define SCALAR_OP(name, arity, class_) ScalarOp::name,
#include "numerics/scalar_ops.def"
#undef SCALAR_OP
  };
}

Tensor slow_map(ScalarOp op, const std::vector<Tensor>& operands, DataType element) {
  Tensor result(element, operands[0].shape);
  for (int64_t i = 0; i < result.count(); ++i) {
    std::vector<Scalar> x;
    for (const Tensor& operand : operands) x.push_back(element_at(operand, i));
    set_element(result, i, evaluate(op, x, element));
  }
  return result;
}

TEST(InterpreterMap, EveryOperationAndType) {
  std::mt19937 random(1);
  int checked = 0;
  for (const ScalarOp op : all_ops()) {
    if (op == ScalarOp::cast) continue;
    for (const DataType type : all_types) {
      std::vector<DataType> types(static_cast<size_t>(arity_of(op)), type);
      if (op == ScalarOp::select) types[0] = DataType::boolean;
      const std::optional<DataType> element = result_type_of(op, types);
      if (!element) continue;
      for (const std::vector<int64_t>& shape : {std::vector<int64_t>{0}, {}, {1}, {7, 191}}) {
        std::vector<Tensor> operands;
        for (const DataType t : types) operands.push_back(random_tensor(random, t, shape, true));
        const Tensor y = run_op(operands, [&](GraphBuilder& b, const std::vector<Value>& v) {
          return b.append(Op::map, v, MapAttributes{op});
        });
        EXPECT_TRUE(same_tensors(y, slow_map(op, operands, *element))) << name_of(op);
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 900);
}

TEST(InterpreterMap, EveryCast) {
  std::mt19937 random(2);
  for (const DataType from : all_types) {
    for (const DataType to : all_types) {
      const Tensor x = random_tensor(random, from, {301}, true);
      const Tensor y = run_op({x}, [&](GraphBuilder& b, const std::vector<Value>& v) {
        return b.append(Op::map, v, MapAttributes{ScalarOp::cast}, TensorType{to, {301}});
      });
      EXPECT_TRUE(same_tensors(y, slow_map(ScalarOp::cast, {x}, to)));
    }
  }
}

TEST(InterpreterMap, ThreadsDoNotMatter) {
  std::mt19937 random(3);
  const std::vector<Tensor> x{random_tensor(random, DataType::float32, {50021}, true),
                              random_tensor(random, DataType::float32, {50021}, true)};
  const auto run = [&](int threads) {
    return run_op(
        x, [](GraphBuilder& b, const std::vector<Value>& v) { return b.map(ScalarOp::div, v); }, threads);
  };
  EXPECT_TRUE(same_tensors(run(1), run(3)));
}

// y[index] must be x at source(index), or `otherwise` where that is empty.
template <class Source>
void expect_moved(const Tensor& y, const Tensor& x, Source&& source, const Tensor* otherwise = nullptr) {
  Tensor expected(x.element, y.shape);
  for_each_index(y.shape, [&](const std::vector<int64_t>& index, int64_t flat) {
    const std::vector<int64_t> from = source(index);
    bool inside = from.size() == x.shape.size();
    for (size_t d = 0; inside && d < from.size(); ++d) inside = from[d] >= 0 && from[d] < x.shape[d];
    ASSERT_TRUE(inside || otherwise);
    set_element(expected, flat,
                inside ? element_at(x, flat_index(x.shape, from)) : element_at(*otherwise, 0));
  });
  EXPECT_TRUE(same_tensors(y, expected));
}

using Index = std::vector<int64_t>;
const std::vector<DataType> sizes{DataType::boolean, DataType::bfloat16, DataType::float32, DataType::int64};

TEST(InterpreterViews, BroadcastTransposeReshape) {
  std::mt19937 random(4);
  for (const DataType type : sizes) {
    const Tensor x = random_tensor(random, type, {3, 1, 5});
    const Tensor wide = run_op({x}, [&](GraphBuilder& b, const std::vector<Value>& v) {
      return b.append(Op::broadcast, v, BroadcastAttributes{{2, 3, 4, 7, 5}, {1, 2, 4}});
    });
    expect_moved(wide, x, [](const Index& i) { return Index{i[1], 0, i[4]}; });
    const Tensor y = run_op({wide}, [&](GraphBuilder& b, const std::vector<Value>& v) {
      return b.transpose(v[0], {3, 0, 4, 2, 1});
    });
    expect_moved(y, wide, [](const Index& i) { return Index{i[1], i[4], i[3], i[0], i[2]}; });
    const Tensor r = run_op(
        {wide}, [&](GraphBuilder& b, const std::vector<Value>& v) { return b.reshape(v[0], {4, 210}); });
    EXPECT_TRUE(same_tensors(r, wide.reshaped({4, 210})));
  }
}

TEST(InterpreterViews, SliceWithNegativeSteps) {
  std::mt19937 random(5);
  for (const DataType type : sizes) {
    const Tensor x = random_tensor(random, type, {7, 11, 4});
    const Tensor y = run_op({x}, [&](GraphBuilder& b, const std::vector<Value>& v) {
      return b.append(Op::slice, v, SliceAttributes{{6, 1, 0}, {-3, 2, 1}, {3, 5, 4}});
    });
    expect_moved(y, x, [](const Index& i) { return Index{6 - 3 * i[0], 1 + 2 * i[1], i[2]}; });
    const Tensor none = run_op({x}, [&](GraphBuilder& b, const std::vector<Value>& v) {
      return b.append(Op::slice, v, SliceAttributes{{7, 0, 0}, {1, 1, 1}, {0, 11, 4}});
    });
    EXPECT_EQ(none.shape, (std::vector<int64_t>{0, 11, 4}));
  }
}

TEST(InterpreterViews, PadAndCrop) {
  std::mt19937 random(6);
  for (const DataType type : sizes) {
    const Tensor x = random_tensor(random, type, {3, 5, 2}), value = random_tensor(random, type, {});
    const auto padded = [&](const std::vector<Dim>& low, const std::vector<Dim>& high) {
      const Tensor y = run_op({x, value}, [&](GraphBuilder& b, const std::vector<Value>& v) {
        return b.append(Op::pad, v, PadAttributes{low, high});
      });
      expect_moved(
          y, x,
          [&](const Index& i) {
            return Index{i[0] - low[0].value(), i[1] - low[1].value(), i[2] - low[2].value()};
          },
          &value);
    };
    padded({1, 2, 0}, {0, 3, 1});
    padded({-1, 2, 0}, {3, -4, 0});
    padded({-2, -1, 5}, {-1, 0, -7});  // nothing is left
    padded({4, -5, 0}, {0, 1, 0});
  }
}

TEST(InterpreterViews, ConcatWithEmptyParts) {
  std::mt19937 random(7);
  for (const DataType type : sizes) {
    const std::vector<Tensor> x{
        random_tensor(random, type, {2, 3, 4}), random_tensor(random, type, {2, 0, 4}),
        random_tensor(random, type, {2, 5, 4}), random_tensor(random, type, {2, 1, 4})};
    const Tensor y = run_op(x, [&](GraphBuilder& b, const std::vector<Value>& v) {
      return b.append(Op::concat, v, ConcatAttributes{1});
    });
    for_each_index(y.shape, [&](const Index& i, int64_t flat) {
      Index at = i;
      size_t part = 0;
      while (at[1] >= x[part].shape[1]) at[1] -= x[part++].shape[1];
      EXPECT_TRUE(same(element_at(y, flat), element_at(x[part], flat_index(x[part].shape, at))));
    });
  }
}

TEST(InterpreterViews, GatherWrapsThenClamps) {
  std::mt19937 random(8);
  const Tensor index = Tensor::from<int32_t>(DataType::int32, {2, 4}, {0, 4, -1, -5, -6, 5, 99, -99});
  const std::vector<int64_t> rows{0, 4, 4, 0, 0, 4, 4, 0};
  for (const DataType type : sizes) {
    const Tensor x = random_tensor(random, type, {3, 5, 2});
    const Tensor y = run_op(
        {x, index}, [&](GraphBuilder& b, const std::vector<Value>& v) { return b.gather(v[0], v[1], 1); });
    expect_moved(y, x, [&](const Index& i) { return Index{i[0], rows[size_t(i[1] * 4 + i[2])], i[3]}; });
  }
  const Tensor scalar = Tensor::from<int64_t>(DataType::int64, {}, {-2});
  const Tensor x = random_tensor(random, DataType::float32, {5, 3});
  const Tensor row = run_op(
      {x, scalar}, [&](GraphBuilder& b, const std::vector<Value>& v) { return b.gather(v[0], v[1], 0); });
  expect_moved(row, x, [](const Index& i) { return Index{3, i[0]}; });
}

TEST(InterpreterViews, IotaConstantsAndDims) {
  Graph graph;
  GraphBuilder b(graph);
  const Dim n = Dim::symbol("n");
  b.input("x", {DataType::float32, {n, 2 * n}});
  for (const DataType type : {DataType::int64, DataType::float16, DataType::float32, DataType::uint8})
    b.output(b.iota({type, {n, 3, 2}}, 1), "iota");
  b.output(b.dims({n, n * n + 1, 7}), "dims");
  b.output(b.dim(n - 1), "dim");
  // A constant whose bytes start at an odd address.
  std::vector<std::byte> memory(1 + 2 * sizeof(float));
  const float numbers[] = {1.5f, -2.0f};
  std::memcpy(memory.data() + 1, numbers, sizeof(numbers));
  b.output(b.constant({DataType::float32, {2}}, std::span(memory).subspan(1), nullptr), "constant");
  const std::vector<Tensor> y = interpret(graph, std::vector{Tensor(DataType::float32, {5, 10})});
  for (size_t t = 0; t < 4; ++t) {
    ASSERT_EQ(y[t].shape, (std::vector<int64_t>{5, 3, 2}));
    for_each_index(y[t].shape, [&](const Index& i, int64_t flat) {
      EXPECT_TRUE(same(element_at(y[t], flat), convert({DataType::int64, 0, i[1]}, y[t].element)));
    });
  }
  EXPECT_TRUE(same_tensors(y[4], Tensor::from<int64_t>(DataType::int64, {3}, {5, 26, 7})));
  EXPECT_TRUE(same_tensors(y[5], Tensor::from<int64_t>(DataType::int64, {}, {4})));
  EXPECT_TRUE(same_tensors(y[6], Tensor::from<float>(DataType::float32, {2}, {1.5f, -2.0f})));
}

}  // namespace
}  // namespace fusewise::graph::testing

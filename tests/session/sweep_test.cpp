// Scatters and running sums: strict kernels against the interpreter, whose own results composite_test holds to plain
// loops. Sizes 0, 1 and those around a block's 64 lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "exact_session.h"

namespace fusewise::session {
namespace {

using graph::Tensor;
using Numbers = std::vector<int64_t>;

class Sweep : public ExactSession {
 protected:
  Tensor random_floats(const Numbers& shape) {
    std::vector<float> values(static_cast<size_t>(graph::element_count(shape)));
    std::normal_distribution<float> normal;
    for (float& value : values) value = normal(random_);
    if (!values.empty()) values[random_() % values.size()] = std::numeric_limits<float>::quiet_NaN();
    if (!values.empty()) values[random_() % values.size()] = -0.0f;
    return floats(shape, values);
  }
  Tensor random_ints(const Numbers& shape, int64_t low, int64_t high) {
    std::uniform_int_distribution<int64_t> uniform(low, high);
    Numbers values(static_cast<size_t>(graph::element_count(shape)));
    for (int64_t& value : values) value = uniform(random_);
    return ints(shape, values);
  }
  std::mt19937 random_{7};
};

OnnxShape symbols(const char* prefix, int rank) {
  OnnxShape shape;
  for (int d = 0; d < rank; ++d) shape.emplace_back(prefix + std::to_string(d));
  return shape;
}

// x cast to `type`, summed up, and back.
OnnxBuilder running_sum(DataType type, int64_t axis, int64_t exclusive, int64_t reverse) {
  OnnxBuilder model(17);
  model.input("x", DataType::float32, symbols("n", 3));
  const std::string x = model.node("Cast", {"x"}, {{"to", static_cast<int>(onnx_element_type(type))}});
  const std::string sums =
      model.node("CumSum", {x, model.ints("axis", {}, {axis})},
                 {{"exclusive", static_cast<int>(exclusive)}, {"reverse", static_cast<int>(reverse)}});
  model.node("Cast", {sums}, {{"to", 1}}, "y");
  model.output_without_shape("y", DataType::float32);
  return model;
}

TEST_F(Sweep, RunningSums) {
  for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16, DataType::float64,
                              DataType::int32, DataType::int64})
    for (const int64_t axis : {0, 1, 2})
      for (const int64_t flags :
           type == DataType::float32 && axis > 0 ? Numbers{0, 1, 2, 3} : Numbers{axis + 1})
        expect_exact(running_sum(type, axis, flags & 1, flags >> 1), {{random_floats({2, 5, 3})},
                                                                      {random_floats({3, 1, 70})},
                                                                      {random_floats({1, 33, 129})},
                                                                      {random_floats({0, 4, 2})},
                                                                      {random_floats({2, 0, 3})}});
}

// y: x with updates at indices along an axis.
OnnxBuilder scatter_elements(int rank, int64_t axis, const char* reduction) {
  OnnxBuilder model(18);
  model.input("x", DataType::float32, symbols("n", rank));
  model.input("indices", DataType::int64, symbols("m", rank));
  model.input("updates", DataType::float32, symbols("m", rank));
  model.node("ScatterElements", {"x", "indices", "updates"},
             {{"axis", static_cast<int>(axis)}, {"reduction", reduction}}, "y");
  model.output_without_shape("y", DataType::float32);
  return model;
}

TEST_F(Sweep, ScatterElements) {
  for (const char* reduction : {"none", "add", "mul", "max", "min"})
    for (const int64_t axis : {0, 1, 2}) {
      std::vector<std::vector<Tensor>> cases;
      for (const auto& [data, updates] : std::vector<std::pair<Numbers, Numbers>>{{{3, 4, 5}, {3, 4, 5}},
                                                                                  {{4, 3, 67}, {2, 3, 66}},
                                                                                  {{1, 1, 1}, {1, 1, 1}},
                                                                                  {{5, 2, 3}, {5, 2, 0}},
                                                                                  {{2, 2, 2}, {2, 2, 2}}}) {
        const int64_t extent = data[static_cast<size_t>(axis)];
        // Negative ones count from the end; duplicates abound.
        cases.push_back(
            {random_floats(data), random_ints(updates, -extent, extent - 1), random_floats(updates)});
      }
      expect_exact(scatter_elements(3, axis, reduction), cases);
    }
}

TEST_F(Sweep, IndicesOutsideChangeNothing) {
  write(scatter_elements(1, 0, "none"));
  const Session session(*model_, strict());
  const auto y = session.run(std::vector{floats({3}, {1, 2, 3}), ints({4}, {3, -4, INT64_MAX, INT64_MIN}),
                                         floats({4}, {9, 9, 9, 9})});
  EXPECT_TRUE(compare_exactly("y", floats({3}, {1, 2, 3}), y[0]).passed);
}

OnnxBuilder scatter_nd(int rank, int64_t depth, const char* reduction) {
  OnnxBuilder model(18);
  model.input("x", DataType::float32, symbols("n", rank));
  model.input("indices", DataType::int64, {std::string("m"), depth});
  OnnxShape updates{std::string("m")};
  for (int d = static_cast<int>(depth); d < rank; ++d) updates.emplace_back("n" + std::to_string(d));
  model.input("updates", DataType::float32, updates);
  model.node("ScatterND", {"x", "indices", "updates"}, {{"reduction", reduction}}, "y");
  model.output_without_shape("y", DataType::float32);
  return model;
}

TEST_F(Sweep, ScatterND) {
  for (const char* reduction : {"none", "add", "mul", "max", "min"})
    for (const int64_t depth : {1, 2, 3}) {
      std::vector<std::vector<Tensor>> cases;
      for (const Numbers& data : std::vector<Numbers>{{3, 4, 70}, {1, 1, 1}, {7, 2, 64}, {2, 3, 0}})
        for (const int64_t count : {0, 1, 9}) {
          if (depth == 3 && data[2] == 0 && count > 0) continue;  // nothing to address
          Numbers updates{count};
          for (size_t d = static_cast<size_t>(depth); d < 3; ++d) updates.push_back(data[d]);
          Numbers indices;
          for (int64_t i = 0; i < count * depth; ++i) {
            const int64_t extent = data[static_cast<size_t>(i % depth)];
            indices.push_back(static_cast<int64_t>(random_() % static_cast<uint64_t>(2 * extent)) - extent);
          }
          cases.push_back({random_floats(data), ints({count, depth}, indices), random_floats(updates)});
        }
      expect_exact(scatter_nd(3, depth, reduction), cases);
    }
}

// A scatter's result read by what a kernel fuses: every element of it must be there.
TEST_F(Sweep, ReadersSeeTheWholeResult) {
  OnnxBuilder model(18);
  model.input("x", DataType::float32, {std::string("n"), std::string("k")});
  model.input("indices", DataType::int64, {std::string("m"), int64_t{1}});
  model.input("updates", DataType::float32, {std::string("m"), std::string("k")});
  const std::string doubled = model.node("Add", {"updates", "updates"});
  const std::string data = model.node("Neg", {"x"});
  model.node("ScatterND", {data, "indices", doubled}, {{"reduction", "add"}}, "scattered");
  model.node("ReduceSum", {model.node("Exp", {"scattered"}), model.ints("axis", {1}, {0})}, {{"keepdims", 0}},
             "y");
  model.output_without_shape("scattered", DataType::float32);
  model.output_without_shape("y", DataType::float32);
  expect_exact(model, {{random_floats({6, 5}), ints({4, 1}, {5, 0, 5, -1}), random_floats({4, 5})},
                       {random_floats({100, 33}), random_ints({200, 1}, 0, 99), random_floats({200, 33})},
                       {random_floats({1, 1}), ints({0, 1}, {}), random_floats({0, 1})}});
}

}  // namespace
}  // namespace fusewise::session

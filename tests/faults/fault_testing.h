// Models that broke other compilers, built here, run in every mode and held to the result that is right.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "export/onnx_builder.h"
#include "graph/interpreter/tensor.h"
#include "stress/graph_runner.h"

namespace fusewise::test {

inline constexpr double infinite = std::numeric_limits<double>::infinity();
inline const double not_a_number = std::numeric_limits<double>::quiet_NaN();

// Numbers in the type's own rounding.
graph::Tensor tensor(DataType type, std::vector<int64_t> shape, const std::vector<double>& values);
graph::Tensor floats(std::vector<int64_t> shape, const std::vector<double>& values);
// first, first + step, ...
graph::Tensor ramp(std::vector<int64_t> shape, double first = 0, double step = 1,
                   DataType type = DataType::float32);
std::vector<double> numbers(const graph::Tensor& tensor);

GraphCase imported(const OnnxBuilder& model, std::vector<graph::Tensor> inputs);

// In every mode: what the interpreter says, and, where given, these numbers per output within `tolerance` of their
// magnitude (NaN is NaN). `compiled`: also as machine code, which takes the most time.
using Expected = std::vector<std::vector<double>>;
void expect_right(const GraphCase& what, const Expected& expected = {}, double tolerance = 0,
                  bool compiled = true);
void expect_right(const OnnxBuilder& model, std::vector<graph::Tensor> inputs, const Expected& expected = {},
                  double tolerance = 0, bool compiled = true);

// One node with its operands as inputs, as initializers, and each in turn as an initializer: the same in all.
void expect_node(int64_t opset, const std::string& op_type, const std::vector<graph::Tensor>& inputs,
                 OnnxAttributes attributes, DataType result, const std::vector<double>& expected,
                 double tolerance = 0);

// The attributes of a cast.
OnnxAttributes cast_to(DataType type);

OnnxTensor initializer_of(const std::string& name, const graph::Tensor& tensor);

}  // namespace fusewise::test

// The attributes of each operation of ops.def, one small struct each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hostops/hostops.h"
#include "numerics/data_type.h"
#include "numerics/dim.h"
#include "numerics/reduction_order.h"
#include "numerics/scalar_op.h"

namespace fusewise::graph {

// operands: a boolean scalar, then captures; bodies: then, else. Each body's inputs are the captures, its outputs the
// node's results.
struct BranchAttributes {
  friend bool operator==(const BranchAttributes&, const BranchAttributes&) = default;
};
struct BroadcastAttributes {
  Shape shape;            // of the result
  std::vector<int> dims;  // operand dimension d lies along result dimension dims[d]; strictly increasing
  friend bool operator==(const BroadcastAttributes&, const BroadcastAttributes&) = default;
};
struct ConcatAttributes {
  int axis = 0;
  friend bool operator==(const ConcatAttributes&, const ConcatAttributes&) = default;
};
struct ConstantAttributes {
  uint32_t constant = 0;  // index into Graph::constants
  friend bool operator==(const ConstantAttributes&, const ConstantAttributes&) = default;
};
// One entry per spatial dimension in each vector.
struct ConvolutionAttributes {
  std::vector<int64_t> strides, dilations, pad_low, pad_high;
  int64_t groups = 1;
  friend bool operator==(const ConvolutionAttributes&, const ConvolutionAttributes&) = default;
};
struct DimsAttributes {
  std::vector<Dim> dims;
  bool scalar = false;  // rank 0, dims has one entry
  friend bool operator==(const DimsAttributes&, const DimsAttributes&) = default;
};
// Result dimensions: batch (in the order given), the other lhs dimensions not contracted, the same of rhs.
struct DotAttributes {
  std::vector<int> lhs_batch, rhs_batch, lhs_contract, rhs_contract;
  friend bool operator==(const DotAttributes&, const DotAttributes&) = default;
};
struct GatherAttributes {
  int axis = 0;
  friend bool operator==(const GatherAttributes&, const GatherAttributes&) = default;
};
struct HostAttributes {
  hostops::Function function = hostops::Function::non_zero;
  std::vector<Dim> parameters;
  std::vector<std::string>
      symbols;  // that it binds, in the function's order; distinct, and bound by no other node
  friend bool operator==(const HostAttributes&, const HostAttributes&) = default;
};
struct InputAttributes {
  friend bool operator==(const InputAttributes&, const InputAttributes&) = default;
};
struct IotaAttributes {
  int axis = 0;
  friend bool operator==(const IotaAttributes&, const IotaAttributes&) = default;
};
// A loop over one body.
//   operands: [the number of iterations, an int64 scalar, if `counted`] [whether to begin, a boolean scalar, if
//             `conditional`] the carried values at the start, the scanned values, captures
//   body inputs: the iteration's number (an int64 scalar), carried values, one slice of each scanned value, captures
//   body outputs: [whether to go on, if `conditional`] the next carried values, what is stacked
//   results: the carried values at the end, the stacked values
// Scanned and stacked values have the iterations along their first dimension, which the slices lack. The loop ends
// after `trips` iterations (a size known with the shapes), after the counted ones, or where a condition says so,
// whichever comes first; it has at least one of the three. What is stacked needs `trips` alone.
struct LoopAttributes {
  std::optional<Dim> trips;
  bool counted = false, conditional = false;
  int carried = 0;
  std::vector<int> scanned,
      stacked;  // per value: 1 where iteration i is at i, -1 where it is at trips - 1 - i
  friend bool operator==(const LoopAttributes&, const LoopAttributes&) = default;
};
struct MapAttributes {
  ScalarOp op = ScalarOp::add;
  friend bool operator==(const MapAttributes&, const MapAttributes&) = default;
};
struct PadAttributes {
  std::vector<Dim> low, high;
  friend bool operator==(const PadAttributes&, const PadAttributes&) = default;
};
struct PrefixAttributes {
  int axis = 0;
  Combine combine = Combine::sum;
  bool exclusive = false;  // what comes before the element, without it
  bool reverse = false;    // from the last element on
  friend bool operator==(const PrefixAttributes&, const PrefixAttributes&) = default;
};
struct ReduceAttributes {
  Combine combine = Combine::sum;
  std::vector<int> axes;  // sorted
  friend bool operator==(const ReduceAttributes&, const ReduceAttributes&) = default;
};
struct ReshapeAttributes {
  Shape shape;
  friend bool operator==(const ReshapeAttributes&, const ReshapeAttributes&) = default;
};
struct ResultAttributes {
  friend bool operator==(const ResultAttributes&, const ResultAttributes&) = default;
};
enum class Update : uint8_t { replace, sum, product, max, min };
struct ScatterAttributes {
  int axis = 0;
  Update update = Update::replace;
  friend bool operator==(const ScatterAttributes&, const ScatterAttributes&) = default;
};
struct SliceAttributes {
  std::vector<Dim> starts;
  std::vector<int64_t> steps;
  Shape shape;  // of the result
  friend bool operator==(const SliceAttributes&, const SliceAttributes&) = default;
};
struct TransposeAttributes {
  std::vector<int> permutation;
  friend bool operator==(const TransposeAttributes&, const TransposeAttributes&) = default;
};
// One entry per spatial dimension (the trailing dimensions of the operand) in each vector.
struct WindowReduceAttributes {
  Combine combine = Combine::max;
  std::vector<int64_t> window, strides, dilations, pad_low, pad_high;
  friend bool operator==(const WindowReduceAttributes&, const WindowReduceAttributes&) = default;
};

using Attributes =
    std::variant<BranchAttributes, BroadcastAttributes, ConcatAttributes, ConstantAttributes,
                 ConvolutionAttributes, DimsAttributes, DotAttributes, GatherAttributes, HostAttributes,
                 InputAttributes, IotaAttributes, LoopAttributes, MapAttributes, PadAttributes,
                 PrefixAttributes, ReduceAttributes, ReshapeAttributes, ResultAttributes, ScatterAttributes,
                 SliceAttributes, TransposeAttributes, WindowReduceAttributes>;

}  // namespace fusewise::graph

// The iteration form of a node: what it computes as an expression over a domain of parallel and reduction axes,
// with an index map for every read. Schedule, cost and legality see nodes only through their forms, so they know
// kinds, maps and expressions and never operation names.
//
//   result[p...] = combine over r... of body(reads at index(p, r))
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"
#include "numerics/reduction_order.h"

namespace fusewise::graph {

struct AxisTerm {
  int axis = 0;         // into Form::axes
  Dim coefficient = 1;  // may be a run-time value: min(d - 1, 1) is 0 where a symbol turns out to be 1
  friend bool operator==(const AxisTerm&, const AxisTerm&) = default;
};

// constant + sum of coefficient * axis.
struct LinearIndex {
  Dim constant = 0;
  std::vector<AxisTerm> terms;  // distinct axes, ascending
  friend bool operator==(const LinearIndex&, const LinearIndex&) = default;
};

// coefficient * (floor(inner / divisor) mod modulus); modulus 0 means no modulo. Arises from reshapes that merge
// axes of the producer, and from grouped convolution.
struct QuasiTerm {
  LinearIndex inner;
  Dim divisor = 1;
  Dim modulus = 0;
  Dim coefficient = 1;
  friend bool operator==(const QuasiTerm&, const QuasiTerm&) = default;
};

// The index along one dimension of an operand.
struct IndexExpr {
  LinearIndex linear;
  std::vector<QuasiTerm> quasi;
  // Data-dependent: adds the integer that read number `gathered` delivers, a negative one plus `gathered_extent`,
  // then clamped to [0, gathered_extent).
  std::optional<int> gathered;
  Dim gathered_extent = 0;
  friend bool operator==(const IndexExpr&, const IndexExpr&) = default;
};

// Holds where low <= expr < high.
struct Guard {
  IndexExpr expr;
  Dim low, high;
  friend bool operator==(const Guard&, const Guard&) = default;
};

// A read of operand `operand` at `index` (one per dimension). Where a guard fails the element is not touched: in
// a reducing form the tap is absent, in a mapping form the body's `piece` gives the other value: there a guarded
// read is used by `piece` nodes only.
struct Read {
  int operand = 0;
  std::vector<IndexExpr> index;
  std::vector<Guard> guards;
};

// The body, as an arena; the last node is the result. With an accumulation its type is the accumulator's: operands
// of a narrower type are cast where they are read, and the combined value is converted to the result's type.
struct BodyNode {
  enum class Kind : uint8_t { read, index, constant, apply, piece };
  Kind kind = Kind::read;
  DataType type = DataType::undefined;
  int read = -1;                // read, piece: into Form::reads
  IndexExpr index;              // index: its integer value, converted to `type`
  Scalar constant;              // constant
  ScalarOp op = ScalarOp::add;  // apply
  std::vector<int> arguments;  // apply: into Form::body; piece: the one value where the guard of `read` fails
};

struct Axis {
  Dim extent;
  bool reduction = false;
};

// How the reduction axes are combined.
struct Accumulation {
  Combine combine = Combine::sum;
  DataType accumulator = DataType::undefined;
  bool multiply_add =
      false;                // contraction: the body is the product of its two reads, added by fma in sequence
  bool sequential = false;  // window reductions and contractions: axis by axis; else ReductionOrder over the
                            // row-major index of the reduction axes
};

struct Form {
  Kind kind = Kind::map;
  std::vector<Axis> axes;  // the result's dimensions in order, then the reduction axes in strict order
  std::vector<Read> reads;
  std::vector<BodyNode> body;
  std::optional<Accumulation> accumulation;
  int parallel_axes() const {
    int n = 0;
    for (const Axis& a : axes) n += a.reduction ? 0 : 1;
    return n;
  }
};

// The form of a node; nodes of kind source but iota, and nodes that stand alone, have none (check fails): they are inputs of every region. A
// constant with a single element, in contrast, may be inlined as a body constant by who asks.
bool has_form(const Graph& graph, NodeId node);
Form form_of(const Graph& graph, NodeId node);

}  // namespace fusewise::graph

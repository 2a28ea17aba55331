// The shape rule of every operation. Dimensions that are provably different where they must agree are an
// error at once; where normalisation can show neither, the rule goes on and states what must hold at run
// time.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace fusewise::graph {

// A condition on the symbols' values without which a node's result type is wrong. Whoever runs a graph with
// symbols checks them once the values are known.
struct Requirement {
  enum class Kind : uint8_t {
    equal,         // a == b
    equal_or_one,  // a == b, or a == 1: a broadcast operand's dimension and the result's
    at_least,      // a >= b
  };
  Kind kind = Kind::equal;
  Dim a, b;
  friend bool operator==(const Requirement&, const Requirement&) = default;
};
bool holds(const Requirement& requirement, const SymbolValues& values);
std::string to_string(const Requirement& requirement);  // "a == b"

struct Inference {
  std::vector<TensorType> results;
  std::vector<Requirement> requirements;
};

// Throws UserError in clear words for wrong types, shapes or attributes. `stated` is the result type where
// the operands and attributes do not give it: the whole type of input, constant and iota, the element type of
// cast.
Inference infer(Op op, std::span<const TensorType> operands, const Attributes& attributes,
                const std::optional<TensorType>& stated = {});
// The same for a loop or a branch, whose bodies must be valid; they may require something, too.
Inference infer_control(Op op, std::span<const TensorType> operands, const Attributes& attributes,
                        std::span<const Body> bodies);
// Of a whole node: of either sort.
Inference infer(const Graph& graph, const Node& node);

// Where in a loop's operands each group of them begins.
struct LoopPlaces {
  size_t carried = 0, scanned = 0, captures = 0;
};
LoopPlaces loop_places(const LoopAttributes& attributes);

std::vector<TensorType> infer_results(Op op, std::span<const TensorType> operands,
                                      const Attributes& attributes,
                                      const std::optional<TensorType>& stated = {});
// What a node of a (valid) graph requires of the symbols' values.
std::vector<Requirement> requirements_of(const Graph& graph, NodeId node);
// All of a graph's, each once, in the order of the nodes.
std::vector<Requirement> requirements_of(const Graph& graph);

// NumPy's rule for two dimensions that meet in a broadcast. Equal ones stay; a 1 gives way; one that is
// provably not 1 wins over one that is unknown (which then is 1 or the same at run time). Of two unknown ones
// the result is max(a, b): right for every pair that NumPy accepts but (0, 1), which the broadcast's
// requirement refuses at run time. Throws UserError when the two provably disagree.
Dim broadcast_dim(const Dim& a, const Dim& b);
// The same for shapes, aligned at their last dimensions.
Shape broadcast_shapes(const Shape& a, const Shape& b);

bool provably_different(const Dim& a, const Dim& b);
// Neither 1 nor a symbol's value that might be 1.
bool never_one(const Dim& a);

// The number of elements, and of bytes of a constant: sub-byte types are packed. UserError when not constant
// or beyond 64 bits; strings have no size.
int64_t static_count(const TensorType& type);
int64_t static_bytes(const TensorType& type);

}  // namespace fusewise::graph

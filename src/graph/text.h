// The text form of a graph, printed and parsed; print(parse(print(graph))) == print(graph), and a parsed
// graph equals the printed one in nodes, types, attributes, provenance and constant bytes. One line per item:
//
//   graph "name"
//   model 0 "encoder/MatMul" "MatMul" "hidden"
//   constant 0 "bias" : float32[2] = 0.5 -inf
//   constant 1 "weights" : float32[768, 2] = hash:0123456789abcdef0123456789abcdef
//   %0 = input index=0 name="x" : float32[batch, 768]
//   %1 = constant data=1 : float32[768, 2] from [0]
//   %2 = dot %0, %1 lhs_batch=[] rhs_batch=[] lhs_contract=[1] rhs_contract=[0] : float32[batch, 2] from [0]
//   output %2 "y"
//
// The bodies of a loop or a branch follow its line, each with items of its own:
//
//   %3 = loop %1, %2 trips=[steps] counted=0 conditional=0 carried=1 scanned=[1] stacked=[-1] : float32[2], float32[steps, 2]
//   body "step" {
//     %0 = input index=0 name="iteration" : int64[]
//     ...
//     output %7 "next"
//   }
//   %4 = result %3 : float32[2]
//   %5 = result %3.1 : float32[steps, 2]
//
// Blank lines and lines that begin with # are skipped. Small constants are given by value (floats in the
// shortest form that reads back the same, NaN as nan:BITS, types that nothing computes in as bytes:HEX); of
// large ones the text has the hash of the bytes only.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "graph/graph.h"

namespace fusewise::graph {

struct PrintOptions {
  int64_t inline_elements = 64;  // constants of more elements are given by hash
};
std::string print(const Graph& graph, const PrintOptions& options = {});
// One node's line, without the line end.
std::string print_node(const Graph& graph, NodeId node);

// A constant of which the text has the hash only.
struct MissingConstant {
  std::string name;
  TensorType type;
  Hash128 hash;
};

struct ParseOptions {
  // Finds the data of such a constant; name and type of what it returns are replaced by those of the text.
  // Without it such a constant is an error, unless zeros may stand in (for tests of shapes and plans).
  std::function<ConstantData(const MissingConstant&)> resolve = {};
  bool zeros_stand_in = false;
  int64_t most_zero_bytes = int64_t{1} << 30;  // in all
};
// Throws UserError with the line for whatever is not a valid graph.
Graph parse(std::string_view text, const ParseOptions& options = {});

std::string_view name_of(Combine combine);
std::optional<Combine> combine_of(std::string_view name);
std::string_view name_of(Update update);
std::optional<Update> update_of(std::string_view name);

}  // namespace fusewise::graph

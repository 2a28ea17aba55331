// What a scalar of the graph is as a dimension, where nothing but sizes, constants and given values goes into it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "graph/graph.h"

namespace fusewise::graph {

struct SymbolicGivens {
  std::map<Value, Dim> values;         // of inputs with one element
  std::map<std::string, Dim> symbols;  // what stands for a symbol
};

// The value of an integer, a boolean (0 or 1) or a floating-point number that is whole, with one element; nothing where it depends on other data, or where a
// comparison goes one way for some values of the symbols and the other way for others. No number is taken to be so large
// that the model's own type wraps around or rounds it.
std::optional<Dim> symbolic_number(const Graph& graph, Value value, const SymbolicGivens& givens);

}  // namespace fusewise::graph

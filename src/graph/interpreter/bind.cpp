#include "graph/interpreter/bind.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "graph/interpreter/evaluate.h"

namespace fusewise::graph {

namespace {

// Who gave a symbol its value, for messages.
using Origins = std::map<std::string, std::string, std::less<>>;

void check_type(const GraphInput& input, const TensorType& type, const Tensor& tensor) {
  if (tensor.element != type.element) {
    throw UserError(fmt::format("input '{}' is {} and the model needs {}", input.name,
                                name_of(tensor.element), name_of(type.element)));
  }
  if (tensor.rank() != type.rank()) {
    throw UserError(fmt::format("input '{}' has shape {} and the model needs rank {}: {}", input.name,
                                to_string(tensor.shape), type.rank(), to_string(type)));
  }
}

// The symbol and its value where `dim` is coefficient * symbol + constant and the value divides.
std::optional<std::pair<std::string, int64_t>> solve(const Dim& dim, int64_t value) {
  if (dim.terms().size() != 1) return std::nullopt;
  const Dim::Term& term = dim.terms()[0];
  if (term.factors.size() != 1 || term.factors[0]->kind != Dim::Atom::Kind::symbol) return std::nullopt;
  int64_t rest = 0;
  if (__builtin_sub_overflow(value, dim.constant_part(), &rest) || rest % term.coefficient != 0)
    return std::nullopt;
  const int64_t solved = rest / term.coefficient;
  if (solved < 0) return std::nullopt;
  return std::pair(term.factors[0]->name, solved);
}

void check_dims(const GraphInput& input, const TensorType& type, const Tensor& tensor,
                const SymbolValues& values, const Origins& origins) {
  for (size_t d = 0; d < type.shape.size(); ++d) {
    const int64_t expected = type.shape[d].evaluate(values);
    if (expected == tensor.shape[d]) continue;
    std::string because;
    for (const std::string& symbol : type.shape[d].symbols()) {
      const auto origin = origins.find(symbol);
      if (origin != origins.end()) because += fmt::format("; {} is {}", symbol, origin->second);
    }
    throw UserError(fmt::format("input '{}': dimension {} is {} and should be {} ({}){}", input.name, d,
                                tensor.shape[d], expected, type.shape[d].to_string(), because));
  }
}

}  // namespace

SymbolValues bind_symbols(const Graph& graph, std::span<const Tensor> inputs) {
  if (inputs.size() != graph.inputs.size()) {
    throw UserError(
        fmt::format("the model has {} inputs and {} are given", graph.inputs.size(), inputs.size()));
  }
  SymbolValues values;
  Origins origins;
  const auto type_of = [&](size_t i) -> const TensorType& { return graph.type({graph.inputs[i].node, 0}); };
  // Exact symbols first: what only a sum or a product gives must agree with them.
  for (const bool exact : {true, false}) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      check_type(graph.inputs[i], type_of(i), inputs[i]);
      for (size_t d = 0; d < type_of(i).shape.size(); ++d) {
        const Dim& dim = type_of(i).shape[d];
        if (exact && !dim.as_symbol()) continue;
        const auto solved = solve(dim, inputs[i].shape[d]);
        if (solved && values.emplace(*solved).second) {
          origins[solved->first] =
              fmt::format("{} by dimension {} of input '{}'", solved->second, d, graph.inputs[i].name);
        }
      }
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    check_dims(graph.inputs[i], type_of(i), inputs[i], values, origins);
  return values;
}

Requirements::Requirements(const Graph& graph) : graph_(graph) {
  for (NodeId id = 0; id < graph.size(); ++id)
    for (Requirement& requirement : requirements_of(graph, id))
      pending_.emplace_back(id, std::move(requirement));
}

void Requirements::check(const SymbolValues& symbols) {
  const auto is_known = [&](const Dim& dim) {
    return dim.is_constant() ||
           std::ranges::all_of(dim.symbols(), [&](const std::string& s) { return symbols.contains(s); });
  };
  std::erase_if(pending_, [&](const std::pair<NodeId, Requirement>& pending) {
    const auto& [node, requirement] = pending;
    if (!is_known(requirement.a) || !is_known(requirement.b)) return false;
    if (holds(requirement, symbols)) return true;
    throw UserError(fmt::format("{}: the shapes of the inputs break {} ({} against {})",
                                describe(graph_, node), to_string(requirement),
                                requirement.a.evaluate(symbols), requirement.b.evaluate(symbols)));
  });
}

}  // namespace fusewise::graph

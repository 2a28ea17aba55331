#include "schedule/memory_index.h"

#include <algorithm>

#include "graph/form_index.h"

namespace fusewise::schedule {

graph::IndexExpr memory_index(const Layout& layout, const Shape& shape) {
  graph::IndexExpr index;
  const std::vector<Dim> strides = strides_of(layout, shape);
  for (size_t d = 0; d < strides.size(); ++d) graph::add_term(index.linear, static_cast<int>(d), strides[d]);
  return index;
}

bool is_strided(const graph::IndexExpr& memory) {
  return memory.quasi.empty() && !memory.gathered &&
         std::all_of(memory.linear.terms.begin(), memory.linear.terms.end(), [](const graph::AxisTerm& t) {
           const std::optional<int64_t> least = t.coefficient.lower_bound();
           return least && *least >= 0;
         });
}

std::vector<Dim> strides_of(const graph::IndexExpr& memory, size_t rank) {
  std::vector<Dim> strides(rank);
  for (const graph::AxisTerm& term : memory.linear.terms)
    strides[static_cast<size_t>(term.axis)] = term.coefficient;
  return strides;
}

}  // namespace fusewise::schedule

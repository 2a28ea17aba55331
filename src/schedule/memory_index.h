// Where the elements of a value lie in memory.
#pragma once

#include <vector>

#include "graph/form.h"
#include "schedule/layout.h"

namespace fusewise::schedule {

// Elements from the value's first one; the layout has no blocks.
graph::IndexExpr memory_index(const Layout& layout, const Shape& shape);

// The value lies at strides: nothing is divided, and no stride is known to be below 0.
bool is_strided(const graph::IndexExpr& memory);
std::vector<Dim> strides_of(const graph::IndexExpr& memory, size_t rank);

}  // namespace fusewise::schedule

// The closed, sorted list of rewrites. A new one is a pair of files, a row here, its place in the driver's
// order, and a text case of its name.
#pragma once

#include <span>
#include <string_view>

#include "graph/graph.h"
#include "rewrite/context.h"

namespace fusewise::rewrite {

enum class Exactness : uint8_t {
  exact,             // the same bits for every input, NaN payloads aside
  changes_rounding,  // the same in exact arithmetic, and for NaN and infinities
};

struct Rewrite {
  std::string_view name;
  Exactness exactness;
  Rewritten (*apply)(graph::Graph graph, const RewriteContext& context);
  std::string_view reason;  // why it is there, in one line
};

std::span<const Rewrite> rewrites();
// The row of that name, or null.
const Rewrite* find_rewrite(std::string_view name);

}  // namespace fusewise::rewrite

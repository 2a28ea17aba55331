#include "rewrite/list.h"

#include <algorithm>

#include "rewrite/cancel_transposes.h"
#include "rewrite/canonicalize_views.h"
#include "rewrite/divide_to_multiply.h"
#include "rewrite/fold_constants.h"
#include "rewrite/fold_scale_into_weights.h"
#include "rewrite/hoist_invariants.h"
#include "rewrite/merge_equal_nodes.h"
#include "rewrite/pow_to_multiply.h"
#include "rewrite/remove_dead_nodes.h"
#include "rewrite/simplify_algebra.h"
#include "rewrite/simplify_control.h"
#include "rewrite/sink_views.h"
#include "rewrite/unmerge_contractions.h"

namespace fusewise::rewrite {

namespace {

constexpr Exactness exact = Exactness::exact, changes_rounding = Exactness::changes_rounding;

constexpr Rewrite rows[] = {
    {"cancel_transposes", exact, cancel_transposes,
     "transposes around elementwise operations move every byte twice"},
    {"canonicalize_views", exact, canonicalize_views,
     "views that do the same have one form, and then are one node"},
    {"divide_to_multiply", changes_rounding, divide_to_multiply, "a multiplication is several times faster"},
    {"fold_constants", exact, fold_constants,
     "what depends on constants alone is computed once, at compile time"},
    {"fold_scale_into_weights", changes_rounding, fold_scale_into_weights,
     "batch normalisation costs nothing inside the weights"},
    {"hoist_invariants", exact, hoist_invariants,
     "what no iteration changes is computed once, in front of the loop"},
    {"merge_equal_nodes", exact, merge_equal_nodes, "the same is computed once"},
    {"pow_to_multiply", changes_rounding, pow_to_multiply, "pow costs twenty multiplications"},
    {"remove_dead_nodes", exact, remove_dead_nodes,
     "what nobody reads is not computed, and counts as no use"},
    {"simplify_algebra", exact, simplify_algebra,
     "operations that change nothing, or less than they seem to"},
    {"simplify_control", exact, simplify_control,
     "constants are used where they are known, and what no iteration changes or nobody reads is not handed "
     "on"},
    {"sink_views", exact, sink_views, "fewer elements are computed, and reshapes meet and cancel"},
    {"unmerge_contractions", exact, unmerge_contractions,
     "merged dimensions are read where they are, without a copy"},
};
static_assert(std::ranges::is_sorted(rows, {}, &Rewrite::name));

}  // namespace

std::span<const Rewrite> rewrites() { return rows; }

const Rewrite* find_rewrite(std::string_view name) {
  const auto found = std::ranges::find(rows, name, &Rewrite::name);
  return found == std::end(rows) ? nullptr : found;
}

}  // namespace fusewise::rewrite

#include <algorithm>

#include "fusion/tiles/choose_schedule.h"

namespace fusewise::fusion {

namespace {

int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

int64_t largest_divisor(int64_t of, int64_t most) {
  int64_t d = std::min(of, most);
  while (of % d != 0) --d;
  return d;
}

// Useful share of the multiply-adds that a tile issues, less what its loads cost: a step along the reduction loads
// `vectors` vectors and broadcasts `rows` scalars for rows * vectors multiply-adds.
double efficiency(int64_t tile_rows, int64_t tile_vectors, int64_t rows, int64_t vectors) {
  const double useful = static_cast<double>(rows * vectors) /
                        static_cast<double>(round_up(rows, tile_rows) * round_up(vectors, tile_vectors));
  const double work = static_cast<double>(tile_rows * tile_vectors);
  // Two multiply-adds and two loads a cycle; a broadcast is a load. Few accumulators cannot hide the latency of four
  // cycles at two a cycle.
  const double loads = static_cast<double>(tile_rows + tile_vectors);
  const double busy = std::max({work, 0.8 * loads, 8.0});
  return useful * work / (busy + 0.12 * loads);
}

}  // namespace

ContractionTile contraction_tile(const machine::Machine& machine, DataType accumulator, int64_t rows,
                                 int64_t columns, int contractions, int64_t panel, int64_t span) {
  const int64_t lanes = machine.lanes(accumulator);
  const int64_t vectors = round_up(std::max<int64_t>(columns, 1), lanes) / lanes;
  // Registers left for accumulators: one broadcast (folded into the instruction with AVX-512) and the vectors of B.
  const int64_t registers = (machine.vector_registers - 1) / std::max(contractions, 1);
  ContractionTile best;
  double best_efficiency = -1;
  for (int64_t v = 1; v <= std::min<int64_t>(vectors, 4); ++v) {
    const int64_t wide = span > 0 ? largest_divisor(span, v * lanes) : v * lanes;
    const double filled = static_cast<double>(wide) / static_cast<double>(v * lanes);
    if (panel > 0 && panel % wide != 0) continue;
    for (int64_t r = 1; r <= std::min<int64_t>(rows, 16); ++r) {
      if (r * v + v + (machine.vector_registers <= 16 ? 1 : 0) > registers) continue;
      const double e = filled * efficiency(r, v, rows, span > 0 ? v : vectors);
      if (e > best_efficiency + 1e-9) {
        best_efficiency = e;
        best = {r, wide};
      }
    }
  }
  return best;
}

}  // namespace fusewise::fusion

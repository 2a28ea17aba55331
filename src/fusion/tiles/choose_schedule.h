// The tile chooser: a schedule for a region on a machine, by rules on kinds, maps and sizes. What it proposes may
// still be refused by `build_tree`; the planner then takes the region apart.
#pragma once

#include "machine/machine.h"
#include "schedule/region_forms.h"
#include "schedule/schedule.h"

namespace fusewise::fusion {

struct TileOptions {
  int threads = 1;
  ReductionOrder order;
  SymbolValues usual;     // values of symbols to reckon with
  int64_t grid_tile = 0;  // elements along the main row axis of a root's tile; 0: chosen by capacity
  // Vectors of an elementwise root lie along what it reads instead of along what it writes.
  bool along_inputs = false;
};

schedule::Schedule choose_schedule(const schedule::RegionForms& forms, const schedule::Layouts& layouts,
                                   const machine::Machine& machine, const TileOptions& options);

// The accumulators of a contraction of `rows` x `columns` results: rows and columns of one register tile.
struct ContractionTile {
  int64_t rows = 1, columns = 1;
};
// `contractions` accumulate side by side; `panel`: the columns are fixed by an operand's layout, 0: free; `span`: so
// many neighbouring columns belong together and a tile lies within them, 0: all do.
ContractionTile contraction_tile(const machine::Machine& machine, DataType accumulator, int64_t rows,
                                 int64_t columns, int contractions, int64_t panel, int64_t span = 0);

}  // namespace fusewise::fusion

// The constants of the analytical model beside those of the machine description, each with its origin.
#pragma once

namespace fusewise::cost {

// Cycles per full vector of float32, measured on an AVX-512 Xeon (16 floats): exp 11, tanh 28, erf 33.
inline constexpr double exp_cycles = 11, tanh_cycles = 28, erf_cycles = 33;
// The same polynomials and range reductions, scaled by their number of operations against exp.
inline constexpr double log_cycles = 14, sine_cycles = 20, tangent_cycles = 30, atan_cycles = 25,
                        power_cycles = 34;
// Reciprocal throughput of whole-vector division and square root in instruction tables of this class of CPU.
inline constexpr double divide_cycles = 8, root_cycles = 9;
// Integer division has no vector form: about 20 cycles an element, 8 elements a vector.
inline constexpr double remainder_cycles = 60;
// Two vector operations a cycle on every machine of this class.
inline constexpr double alu_per_cycle = 2;
// Rounding conversions go through one port.
inline constexpr double convert_cycles = 1;
// Latency of an addition or multiply-add, in cycles: bounds a reduction with one chain of additions.
inline constexpr double add_latency = 4;
// Two vector loads a cycle; a store a cycle.
inline constexpr double load_cycles = 0.5, store_cycles = 1;
// A lane that is loaded by itself: a scalar load and an insert.
inline constexpr double lane_load_cycles = 1.5;
// Lanes whole pages apart share one set of the cache, which holds a few of them: a line is fetched again for each lane
// (measured: a gather from rows of 4 KiB, and a convolution that stores its columns into such rows).
inline constexpr double conflict_bytes = 4096, conflict_load_cycles = 4, conflict_store_cycles = 16;
// Lanes up to that far apart are taken from whole vectors, and stored as whole vectors where those have masks that cost
// nothing; narrower ones store lane by lane.
inline constexpr double longest_short_step = 4;
inline constexpr int masked_vector_bits = 512;
// Division and remainder of an index, once per element that they are computed for (a multiplication by the inverse
// for constants).
inline constexpr double index_division_cycles = 6;
// Two whole vectors reversed or transposed take a shuffle each.
inline constexpr double shuffle_cycles = 1;
// What a loop level costs per trip, and a tile of the grid (fetching the chunk, its loops' set-up).
inline constexpr double loop_cycles = 3, tile_cycles = 120;
// Exponent of the norm that combines units and levels: overlap is good but not perfect (assumed).
inline constexpr double softness = 4;
// All cores together draw this power of their number times one core's share of memory and of the shared cache
// (two cores measured at about 1.5 times one).
inline constexpr double shared_scaling = 0.6;
// A value is taken to lie in a cache level that holds this share of it and its neighbours (assumed).
inline constexpr double cache_share = 0.5;
// Live vectors beyond the registers are stored and loaded once per use (assumed).
inline constexpr double spill_factor = 1.5;
// Lanes of a running reduction folded at the end of a block, and a state moved on, which takes an exponential by itself:
// both overlap with what other rows do (attention with blocks of 128 ran within 2 % of blocks of 512).
inline constexpr double state_fold_cycles = 10, state_step_cycles = 10;
inline constexpr double cache_line = 64;

}  // namespace fusewise::cost

// Many random regions under the chooser's and under random schedules, against the reference interpreter, to the bit.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fusewise::test {

struct RegionStress {
  int64_t regions = 3000;
  uint64_t seed = 1;
  int64_t compile_every = 20;  // regions to machine code; 0: none
  int64_t random_schedules = 2;
  int threads = 0;        // 0: all processors
  double seconds = 0;     // stop after so long; 0: never
  bool progress = false;  // say on standard error how far it is, every 30 seconds
};

using Counts = std::map<std::string, int64_t>;

struct Tally {
  Counts maps, placements, reuses, chooser, random;
  std::vector<std::string> wrong;
  int64_t regions = 0, parts = 0, interpreted = 0, compiled = 0, unfit = 0;
  double slowest = 0;
  uint64_t slowest_seed = 0;

  void add(const Tally& other);
};
Tally run_stress(const RegionStress& options);
std::string to_text(const Tally& tally);

}  // namespace fusewise::test

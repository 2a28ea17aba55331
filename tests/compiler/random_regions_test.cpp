// Random regions under the chooser's and under random schedules, against the reference interpreter, to the bit. Long
// runs: build/release/stress_regions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "region_stress.h"

namespace fusewise::test {
namespace {

TEST(RandomRegions, AreRight) {
  RegionStress options;
  Tally all = run_stress(options);
  fmt::print("{}", to_text(all));
  for (size_t i = 0; i < all.wrong.size() && i < 3; ++i) ADD_FAILURE() << all.wrong[i];
  ASSERT_EQ(all.wrong.size(), 0U);

  int64_t refused = 0;
  for (const auto& [name, n] : all.chooser)
    if (name.starts_with("refused")) refused += n;
  EXPECT_LT(refused * 10, all.chooser["all"]);
  EXPECT_GT(all.chooser["single phase"] * 10, all.chooser["all"] * 6);
  EXPECT_LT(all.unfit * 20, all.regions);
  EXPECT_GT(all.parts * 3, all.regions);
  for (const char* name :
       {"affine", "strided", "run-time coefficient", "quasi-affine", "piecewise", "gathered", "window"})
    EXPECT_GT(all.maps[name], 100) << name;
  for (const char* name : {"registers", "scratch", "memory"}) EXPECT_GT(all.placements[name], 100) << name;
  for (const char* name : {"keep", "recompute", "slide"}) EXPECT_GT(all.reuses[name], 100) << name;
}

}  // namespace
}  // namespace fusewise::test

#include "schedule/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusewise::schedule {
namespace {

using testing::ElementsAre;

TEST(Layout, StridesWithNothingInBetweenAreAnArrayOfItsOwn) {
  const Dim n = Dim::symbol("n");
  EXPECT_EQ(with_strides({0, 1, 2}, {12, 4, 1}, {5, 3, 4}), row_major(3));
  EXPECT_EQ(with_strides({0, 1, 2}, {n * 4, 4, 1}, {5, n, 4}), row_major(3));
  // The stride of a single index says nothing.
  EXPECT_EQ(with_strides({0, 1, 2}, {0, 4, 77}, {3, 4, 1}).strides, (std::vector<Dim>{0, 4, 77}));
  EXPECT_EQ(with_strides({0, 1, 2}, {4, 1, 77}, {3, 4, 1}), row_major(3));
  EXPECT_EQ(with_strides({0, 1, 2, 3}, {60, 1, 15, 3}, {2, 3, 4, 5}), (Layout{{0, 2, 3, 1}, {}, {}}));
}

TEST(Layout, StridesOfAPartAreThoseOfTheWhole) {
  const Layout part = with_strides({0, 1}, {24, 1}, {5, 8});
  EXPECT_THAT(part.strides, ElementsAre(Dim(24), Dim(1)));
  EXPECT_EQ(part.innermost(), 1);
  EXPECT_FALSE(part.is_row_major());
  EXPECT_EQ(physical_elements(part, {5, 8}), Dim(4 * 24 + 8));
  EXPECT_EQ(physical_elements(part, {0, 8}), Dim(0));
  const Layout every_other = with_strides({0, 1, 2}, {0, 2, 80}, {1, 8, 5});
  EXPECT_THAT(every_other.order, ElementsAre(0, 2, 1));
  EXPECT_EQ(every_other.innermost(), -1);
  EXPECT_EQ(every_other.to_string(), "0.2.1");
}

}  // namespace
}  // namespace fusewise::schedule

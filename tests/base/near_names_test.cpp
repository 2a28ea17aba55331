#include "base/near_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusewise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NearNames, DistancesCountCharacters) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("bench", "bnech"), 2);
  EXPECT_EQ(edit_distance("run", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(NearNames, NearestComeFirst) {
  const std::vector<std::string> names = {"layer1.conv", "layer2.conv", "layer1.bn", "logits", "x"};
  EXPECT_THAT(near_names("layer1.con", names), ElementsAre("layer1.conv", "layer2.conv", "layer1.bn"));
  EXPECT_THAT(near_names("bn", names), ElementsAre("x"));  // of a short name two characters are all
  EXPECT_THAT(near_names("conv", names), ElementsAre("layer1.conv", "layer2.conv"));
  EXPECT_THAT(near_names("something else", names), IsEmpty());
  EXPECT_THAT(near_names("layer9.conv", names, 1), ElementsAre("layer1.conv"));
}

TEST(NearNames, AQuestionOrNothing) {
  const std::vector<std::string> names = {"logits"};
  EXPECT_EQ(did_you_mean("logit", names), "did you mean 'logits'?");
  EXPECT_EQ(did_you_mean("probabilities", names), "");
}

}  // namespace
}  // namespace fusewise

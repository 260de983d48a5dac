#include "host/divergence.h"

#include <gtest/gtest.h>

#include <vector>

namespace oxbow {
namespace {

TEST(Divergence, TellsHowFarAheadTheTokensWereThatAreNotTheMostLikelyAnyMore) {
  const std::vector<float> judge = {3.0F, 2.75F, 0.0F, 1.0F};
  const std::vector<float> near = {2.5F, 2.75F, 0.0F, 1.0F};
  const std::vector<float> far = {2.5F, 2.0F, 0.0F, 4.0F};
  Divergence divergence;
  divergence.add(judge, judge, 0);
  EXPECT_EQ(divergence.overturned_lead().value, 0);
  EXPECT_EQ(divergence.largest_overturned_lead(), 0);
  divergence.add(judge, near, 0);
  EXPECT_EQ(divergence.overturned_lead().value, 0.25);
  divergence.add(judge, far, 0);
  // Rows with the same token do not count.
  EXPECT_EQ(divergence.overturned_lead().value, (0.25 + 2.0) / 2);
  EXPECT_EQ(divergence.largest_overturned_lead(), 2.0);
  EXPECT_NEAR(divergence.same_top().value, 1.0 / 3, 1e-12);
}

}  // namespace
}  // namespace oxbow

#include "host/progress.h"

#include <gtest/gtest.h>

namespace oxbow {
namespace {

TEST(Progress, TellsShareRateAndTimeLeft) {
  constexpr uint64_t kMiB = 1 << 20;
  EXPECT_EQ(progress_text(30 * kMiB, 120 * kMiB, 2.0),
            " 25 %, 30.0 MiB of 120.0 MiB, 15.0 MiB/s, 6 s left");
  EXPECT_EQ(progress_text(0, 120 * kMiB, 9.0), " 0 %, 0 B of 120.0 MiB");
  EXPECT_EQ(progress_text(kMiB, 2 * kMiB, 0.1), " 50 %, 1.00 MiB of 2.00 MiB") << "too early";
  EXPECT_EQ(progress_text(0, 0, 3.0), " ...");
}

}  // namespace
}  // namespace oxbow

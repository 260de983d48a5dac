#include "host/machine_limits.h"

#include <gtest/gtest.h>

#include <string>

namespace oxbow {
namespace {

TEST(MachineLimits, AreFoundWithAnyNumberOfThreads) {
  for (const uint32_t threads : {1u, 3u}) {
    const MachineLimits limits = machine_limits(threads, 1'000'001, 0.01);
    EXPECT_EQ(limits.threads, threads);
    EXPECT_EQ(limits.block_bytes, 1'000'001u);
    EXPECT_GT(limits.read_bytes, 0.0);
    EXPECT_GT(limits.seconds, 0.0);
    const bool known = std::string(limits.instructions) != "none";
    EXPECT_EQ(limits.int8_macs.has_value(), known);
    EXPECT_EQ(limits.float_macs.has_value(), known);
    if (known) {
      EXPECT_GT(*limits.int8_macs, 0.0);
      EXPECT_GT(*limits.float_macs, 0.0);
    }
  }
}

TEST(MachineLimits, TheBlockHasASaneSize) {
  EXPECT_EQ(machine_limits(1, 0, 0.001).block_bytes, 65'536u);
  EXPECT_EQ(machine_limits(2, UINT64_MAX, 0.001).block_bytes, uint64_t{128} << 20);
}

}  // namespace
}  // namespace oxbow

#include "converter/blocks/torch_random.h"

#include <gtest/gtest.h>

namespace oxbow::convert {
namespace {

TEST(TorchNormals, AreThoseThatPyTorchDraws) {
  // torch.manual_seed(5); torch.randn(384), at these places.
  const std::vector<float> drawn = torch_normals(5, 384);
  EXPECT_NEAR(drawn[0], 1.8423298597335815, 2e-6);
  EXPECT_NEAR(drawn[1], 0.5188871622085571, 2e-6);
  EXPECT_NEAR(drawn[7], -1.4374138116836548, 2e-6);
  EXPECT_NEAR(drawn[8], 0.39076822996139526, 2e-6);
  EXPECT_NEAR(drawn[15], -0.782335102558136, 2e-6);
  EXPECT_NEAR(drawn[16], 2.779863119125366, 2e-6);
  EXPECT_NEAR(drawn[383], 1.3174171447753906, 2e-6);
}

TEST(TorchNormals, DrawTheirLastGroupAnew) {
  const std::vector<float> drawn = torch_normals(5, 20), whole = torch_normals(5, 32);
  ASSERT_EQ(drawn.size(), 20u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(drawn[i], whole[i]);
  for (size_t i = 4; i < 20; ++i) EXPECT_NE(drawn[i], whole[i]);
}

TEST(TorchNormals, DrawFewInPairs) {
  // torch.manual_seed(5); torch.randn(7).
  const float want[] = {-0.4867807626724243f, -0.6038215756416321f,  -0.5580962300300598f,
                        0.6675242781639099f,  -0.19741509854793549f, 1.9427834749221802f,
                        -1.4017020463943481f};
  const std::vector<float> drawn = torch_normals(5, 7);
  ASSERT_EQ(drawn.size(), 7u);
  for (size_t i = 0; i < 7; ++i) EXPECT_NEAR(drawn[i], want[i], 2e-6);
}

}  // namespace
}  // namespace oxbow::convert

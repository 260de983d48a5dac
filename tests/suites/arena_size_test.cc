// The memory of three models, pinned. A change that costs bytes on the device shows up here and is
// then either taken back or written down.

#include <gtest/gtest.h>

#include <string>

#include "runtime/api/oxbow.hpp"
#include "tests/support/golden.h"

namespace oxbow::testing {
namespace {

struct Pinned {
  const char* pack;
  const char* weights;
  size_t session, states, activations, scratch;
};

class ArenaSize : public ::testing::TestWithParam<Pinned> {};

TEST_P(ArenaSize, IsWhatItWas) {
  const Pinned& pinned = GetParam();
  const std::string file = golden_model(pinned.pack, {"--weights", pinned.weights});
  const auto model = oxb::Model::open(file.c_str());
  ASSERT_TRUE(model.ok()) << model.status().text();
  const auto memory = model->plan();
  ASSERT_TRUE(memory.ok()) << memory.status().text();
  // The session itself is made of pointers.
  if (sizeof(void*) == 8) {
    EXPECT_EQ(memory->session_bytes, pinned.session);
  } else {
    EXPECT_LT(memory->session_bytes, pinned.session);
  }
  EXPECT_EQ(memory->state_bytes, pinned.states);
  EXPECT_EQ(memory->activation_bytes, pinned.activations);
  EXPECT_EQ(memory->scratch_bytes, pinned.scratch);
}

INSTANTIATE_TEST_SUITE_P(
    Packs, ArenaSize,
    ::testing::Values(Pinned{"labml_compressive/c1_d32_fullP", "int8", 16000, 4288, 27264, 10752},
                      Pinned{"labml_compressive/c2_d96_l4_rate3", "int8", 30528, 25984, 79424,
                             23040},
                      Pinned{"labml_xl/x1_d32_fullP", "f32", 10816, 9280, 41216, 4608}),
    [](const auto& test) { return "pack" + std::to_string(test.index); });

}  // namespace
}  // namespace oxbow::testing

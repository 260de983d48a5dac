// Int8 files give the same logits to the bit on every machine, backend and number of threads. The
// hashes were made on amd64; the build for ARM runs this on cores with different kernels.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "runtime/api/oxbow.hpp"
#include "runtime/base/hash.h"
#include "tests/support/cli.h"
#include "tests/support/files.h"
#include "tests/support/golden.h"

namespace oxbow::testing {
namespace {

struct SameBitsCase {
  const char* name;
  uint64_t hash;
};

/// Of the logits of a stream of random tokens, in runs of one and of many.
uint64_t logits_hash(const oxb::Model& model, oxb_backend backend, uint32_t threads) {
  oxb::SessionOptions options;
  options.backend = backend;
  options.threads = threads;
  auto session = oxb::Session::create(model, options);
  EXPECT_TRUE(session.ok()) << session.status().text();
  const oxb_model_info info = model.info();
  std::mt19937 random(3);
  uint64_t hash = kHashSeed;
  size_t room = info.capacity == 0 ? SIZE_MAX : info.capacity;
  for (const size_t wanted : {1, 2, 3, 4, 5, 7, 8, 9, 16, 1, 31, 1, 1}) {
    const size_t count = std::min({wanted, size_t{info.max_segment}, room});
    room -= count;
    if (count == 0) break;
    std::vector<int32_t> tokens(count);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random() % info.vocabulary);
    std::vector<float> logits(count * info.vocabulary);
    const oxb::Status status = session->run(tokens, logits);
    EXPECT_TRUE(status.ok()) << status.text();
    hash = hash_bytes(logits.data(), logits.size() * sizeof(float), hash);
  }
  return hash;
}

class SameBits : public ::testing::TestWithParam<SameBitsCase> {};

TEST_P(SameBits, OnEveryMachineBackendAndNumberOfThreads) {
  const TemporaryDirectory directory;
  const std::string file =
      convert(golden() / GetParam().name, directory / "m.oxb", {"--weights", "int8"});
  const auto model = oxb::Model::open(file.c_str());
  ASSERT_TRUE(model.ok()) << model.status().text();
  EXPECT_EQ(logits_hash(*model, OXB_BACKEND_REFERENCE, 1), GetParam().hash);
  for (const uint32_t threads : {1, 2, 4}) {
    EXPECT_EQ(logits_hash(*model, OXB_BACKEND_CPU, threads), GetParam().hash) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, SameBits,
    ::testing::Values(SameBitsCase{"labml_compressive/c2_d96_l4_rate3", 0xe11c1c00b74fea53ull},
                      SameBitsCase{"llama/l1_gqa", 0xfc8d6adcfe0c8483ull},
                      SameBitsCase{"bloom/bl1", 0x0692ef540c20cc4cull},
                      SameBitsCase{"hf_transfo_xl/t1_adaptive_div2", 0x467560e2cdfc7d89ull},
                      SameBitsCase{"lucidrains_compressive/lc1_gru", 0x5ef7998f9bef5061ull}),
    [](const auto& tested) { return golden_test_name(tested.param.name); });

}  // namespace
}  // namespace oxbow::testing

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
#include "tests/support/golden.h"

namespace oxbow::testing {
namespace {

struct SameBitsCase {
  const char* name;
  uint64_t hash;
};

union Value {
  int32_t number;
  float real;
};

/// Random values for the inputs that one run of an entry point needs.
struct RandomInputs {
  RandomInputs(const oxb::Model& model, size_t entry, size_t count, std::mt19937& random) {
    for (size_t i = 0; i < model.entry_info(entry)->input_count; ++i) {
      const oxb_input_info input = *model.input_info(entry, i);
      if (i > 0 && input.required == 0) continue;
      values.emplace_back(count * input.width);
      for (Value& value : values.back()) {
        if (input.type == OXB_TYPE_I32) {
          value.number = static_cast<int32_t>(random() % std::max(input.limit, 1u));
        } else {
          value.real = static_cast<float>(random() % 256) / 128.0f - 1.0f;
        }
      }
      list.push_back({sizeof(oxb_input), input.name, values.back().data(), count});
    }
  }
  std::vector<std::vector<Value>> values;
  std::vector<oxb_input> list;
};

/// Of what a model gives for random inputs, in runs of one row and of many; a translator encodes first.
uint64_t output_hash(const oxb::Model& model, oxb_backend backend, uint32_t threads) {
  oxb::SessionOptions options;
  options.backend = backend;
  options.threads = threads;
  auto session = oxb::Session::create(model, options);
  EXPECT_TRUE(session.ok()) << session.status().text();
  const oxb_model_info info = model.info();
  std::mt19937 random(3);
  uint64_t hash = kHashSeed;
  size_t room = info.capacity == 0 ? SIZE_MAX : info.capacity;
  for (size_t e = 0; e < info.entry_count; ++e) {
    const oxb_entry_info entry = *model.entry_info(e);
    const bool main = e + 1 == info.entry_count;
    for (const size_t wanted : {1, 2, 3, 4, 5, 7, 8, 9, 16, 1, 31, 1, 1}) {
      const size_t count = std::min({wanted, size_t{entry.max_rows}, main ? room : SIZE_MAX});
      if (count == 0) break;
      if (main && entry.starts == 0) room -= count;
      const RandomInputs inputs(model, e, count, random);
      std::vector<float> output((entry.output_rows != 0 ? entry.output_rows : count) *
                                entry.output_width);
      const oxb::Status status =
          session->run_entry(e, inputs.list, output, output.size() / entry.output_width);
      EXPECT_TRUE(status.ok()) << status.text();
      hash = hash_bytes(output.data(), output.size() * sizeof(float), hash);
    }
  }
  return hash;
}

class SameBits : public ::testing::TestWithParam<SameBitsCase> {};

TEST_P(SameBits, OnEveryMachineBackendAndNumberOfThreads) {
  const std::string file = golden_model(GetParam().name, {"--weights", "int8"});
  const auto model = oxb::Model::open(file.c_str());
  ASSERT_TRUE(model.ok()) << model.status().text();
  EXPECT_EQ(output_hash(*model, OXB_BACKEND_REFERENCE, 1), GetParam().hash);
  for (const uint32_t threads : {1, 2, 4}) {
    EXPECT_EQ(output_hash(*model, OXB_BACKEND_CPU, threads), GetParam().hash) << threads;
  }
}

class SameBitsOfAll : public ::testing::TestWithParam<std::string> {};

TEST_P(SameBitsOfAll, WithTheReferenceAndAnyNumberOfThreadsParallel) {
  const std::string file = golden_model(GetParam(), {"--weights", "int8"});
  const auto model = oxb::Model::open(file.c_str());
  ASSERT_TRUE(model.ok()) << model.status().text();
  const uint64_t expected = output_hash(*model, OXB_BACKEND_REFERENCE, 1);
  for (const uint32_t threads : {1, 2, 4}) {
    EXPECT_EQ(output_hash(*model, OXB_BACKEND_CPU, threads), expected) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, SameBitsOfAll, ::testing::ValuesIn(golden_cases()),
                         [](const auto& tested) { return golden_test_name(tested.param); });

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

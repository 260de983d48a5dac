// Int8 files give the same logits to the bit on every machine, backend and number of threads. The
// hashes were made on amd64; the build for ARM runs this on cores with different kernels.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "host/describe.h"
#include "host/exact_rows.h"
#include "runtime/api/oxbow.hpp"
#include "runtime/base/hash.h"
#include "tests/support/cli.h"
#include "tests/support/golden.h"
#include "tests/support/random_inputs.h"

namespace oxbow::testing {
namespace {

struct SameBitsCase {
  const char* name;
  /// Of --transform: with "none" the hashes are those of files from before rows could be turned.
  const char* transform;
  uint64_t hash;
};

/// Of what a model gives for random inputs, in runs of one row and of many; a translator encodes first.
uint64_t output_hash(const std::string& file, oxb_backend backend, uint32_t threads) {
  const auto opened = oxb::Model::open(file.c_str());
  EXPECT_TRUE(opened.ok()) << opened.status().text();
  const oxb::Model& model = *opened;
  const schema::ModelT graph = std::move(describe_file(file).model);
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
    const bool exact = takes_exact_rows(graph, *graph.entry_points[e]);
    for (const size_t wanted : {1, 2, 3, 4, 5, 7, 8, 9, 16, 1, 31, 1, 1}) {
      const size_t count = exact
                               ? entry.max_rows
                               : std::min({wanted, size_t{entry.max_rows}, main ? room : SIZE_MAX});
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
  const std::string file =
      golden_model(GetParam().name, {"--weights", "int8", "--transform", GetParam().transform});
  EXPECT_EQ(output_hash(file, OXB_BACKEND_REFERENCE, 1), GetParam().hash);
  for (const uint32_t threads : {1, 2, 4}) {
    EXPECT_EQ(output_hash(file, OXB_BACKEND_CPU, threads), GetParam().hash) << threads;
  }
}

class SameBitsOfAll : public ::testing::TestWithParam<std::string> {};

TEST_P(SameBitsOfAll, WithTheReferenceAndAnyNumberOfThreadsParallel) {
  const std::string file = golden_model(GetParam(), {"--weights", "int8"});
  const uint64_t expected = output_hash(file, OXB_BACKEND_REFERENCE, 1);
  for (const uint32_t threads : {1, 2, 4}) {
    EXPECT_EQ(output_hash(file, OXB_BACKEND_CPU, threads), expected) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, SameBitsOfAll, ::testing::ValuesIn(golden_cases()),
                         [](const auto& tested) { return golden_test_name(tested.param); });

INSTANTIATE_TEST_SUITE_P(
    Cases, SameBits,
    ::testing::Values(
        SameBitsCase{"labml_compressive/c2_d96_l4_rate3", "none", 0xe11c1c00b74fea53ull},
        SameBitsCase{"llama/l1_gqa", "none", 0xfc8d6adcfe0c8483ull},
        SameBitsCase{"bloom/bl1", "none", 0x0692ef540c20cc4cull},
        SameBitsCase{"hf_transfo_xl/t1_adaptive_div2", "none", 0x467560e2cdfc7d89ull},
        SameBitsCase{"lucidrains_compressive/lc1_gru", "none", 0x5ef7998f9bef5061ull}),
    [](const auto& tested) {
      return golden_test_name(std::string(tested.param.name) + "_" + tested.param.transform);
    });

}  // namespace
}  // namespace oxbow::testing

#include "host/ggml_blocks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "host/safetensors.h"
#include "host/testing/paths.h"

namespace oxbow {
namespace {

constexpr Dtype kBlocks[] = {
    Dtype::kQ8_0,   Dtype::kQ4_0,  Dtype::kQ4_1,    Dtype::kQ5_0,  Dtype::kQ5_1,   Dtype::kQ2_K,
    Dtype::kQ3_K,   Dtype::kQ4_K,  Dtype::kQ5_K,    Dtype::kQ6_K,  Dtype::kIQ4_NL, Dtype::kIQ4_XS,
    Dtype::kTQ1_0,  Dtype::kTQ2_0, Dtype::kQ8_K,    Dtype::kIQ1_S, Dtype::kIQ1_M,  Dtype::kIQ2_XXS,
    Dtype::kIQ2_XS, Dtype::kIQ2_S, Dtype::kIQ3_XXS, Dtype::kIQ3_S, Dtype::kMXFP4,  Dtype::kNVFP4};

TEST(GgmlBlocks, HoldWhatTheReferenceMakesOfThem) {
  const Safetensors file(testing::source_dir() + "/tests/formats/gguf/all_blocks.safetensors");
  for (const Dtype dtype : kBlocks) {
    const std::string name = dtype_name(dtype);
    const StoredTensor& raw = file.at(name + ".raw");
    const std::vector<float> expected = file.floats(name);
    const size_t block = dtype_block(dtype), bytes = dtype_bytes(dtype);
    ASSERT_EQ(raw.shape[1], bytes) << name;
    ASSERT_EQ(expected.size(), raw.shape[0] * block) << name;
    for (size_t i = 0; i < raw.shape[0]; ++i) {
      std::vector<float> values(block);
      decode_ggml_block(dtype, raw.bytes.data() + i * bytes, values.data());
      for (size_t j = 0; j < block; ++j) {
        ASSERT_EQ(values[j], expected[i * block + j]) << name << " block " << i << " element " << j;
      }
    }
  }
}

}  // namespace
}  // namespace oxbow

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "converter/passes/passes.h"
#include "converter/testing/maker.h"
#include "converter/testing/pack_all.h"
#include "host/errors.h"
#include "runtime/base/tensor.h"

namespace oxbow::convert {
namespace {

using schema::DataType;
using schema::OpCode;
using testing::Maker;

constexpr uint32_t kNone = GraphBuilder::kNone;

TEST(Pack, Int8BlocksHoldTheRoundedWeights) {
  Maker m;
  const uint32_t x = m.embed(5);
  std::vector<float> values(11 * 5);
  std::mt19937 random(7);
  for (float& value : values) value = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
  for (size_t i = 0; i < 5; ++i) values[3 * 5 + i] = 0.0f;  // A row of zeros has no scale.
  const uint32_t weight = m.builder.weight("w", 11, 5, values);
  m.finish(m.builder.linear("y", x, weight, kNone));
  quantize(m.graph, {});
  plan(m.graph);
  const testing::PackedWeights packed = testing::pack_all(m.graph);
  const schema::TensorT& tensor = m.graph.tensor(weight);
  EXPECT_EQ(tensor.bytes, 16u * 8 + 11 * 4);
  const auto* elements = reinterpret_cast<const int8_t*>(packed.data.data() + tensor.offset);
  int padding = 0;
  for (size_t row = 0; row < 16; ++row) {
    for (size_t column = 0; column < 8; ++column) {
      const int8_t q = elements[((row / 8 * 2 + column / 4) * 8 + row % 8) * 4 + column % 4];
      if (row >= 11 || column >= 5) {
        padding += q != 0;
        continue;
      }
      float scale;
      std::memcpy(&scale, elements + 128 + row * 4, 4);
      EXPECT_NEAR(static_cast<float>(q) * scale, values[row * 5 + column], scale / 2 + 1e-7f);
    }
  }
  EXPECT_EQ(padding, 0);
  EXPECT_GT(packed.errors.at("w"), 0.0);
  EXPECT_LT(packed.errors.at("w"), 0.01);
}

/// One matrix of random numbers, quantised and packed.
struct PackedMatrix {
  Maker m;
  std::vector<float> values = std::vector<float>(11 * 40);
  uint32_t weight = 0;
  testing::PackedWeights packed;

  explicit PackedMatrix(const std::string& format, bool three_values = false,
                        std::vector<KeptWeights> keep = {}) {
    std::mt19937 random(7);
    for (float& value : values) {
      value = three_values ? 0.25f * static_cast<float>(static_cast<int>(random() % 3) - 1)
                           : static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
    }
    const uint32_t x = m.embed(40);
    weight = m.builder.weight("w", 11, 40, values);
    m.finish(m.builder.linear("y", x, weight, kNone));
    const bool rows = !weight_format(format).is_float();
    quantize(m.graph, {.weights = format, .keep = std::move(keep), .activations = rows});
    plan(m.graph);
    packed = testing::pack_all(m.graph);
  }
  const schema::TensorT& tensor() const { return m.graph.tensor(weight); }
  const std::byte* data() const { return packed.data.data() + tensor().offset; }
};

TEST(Quantize, WeightsAreKeptByTheirNames) {
  EXPECT_EQ(PackedMatrix("int4", false, {{"w", "int8"}}).tensor().type, DataType::I8);
  EXPECT_EQ(PackedMatrix("int4", false, {{"v*", "int8"}, {"?", "f32"}}).tensor().type,
            DataType::F32);
  EXPECT_EQ(PackedMatrix("f32", false, {{"w", "bf16"}}).tensor().type, DataType::BF16);
}

TEST(Pack, SixteenBitsAreTheNearestAndRowsStayFloat) {
  const PackedMatrix f16("f16"), bf16("bf16");
  EXPECT_EQ(f16.tensor().type, DataType::F16);
  EXPECT_EQ(bf16.tensor().type, DataType::BF16);
  for (size_t i = 0; i < f16.values.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<const F16*>(f16.data())[i].bits, to_f16(f16.values[i]).bits);
    EXPECT_EQ(reinterpret_cast<const BF16*>(bf16.data())[i].bits, to_bf16(bf16.values[i]).bits);
  }
  EXPECT_EQ(f16.m.ops(), (std::vector<OpCode>{OpCode::Embedding, OpCode::Linear, OpCode::TakeRows,
                                              OpCode::Linear}));
  EXPECT_LT(f16.packed.errors.at("w"), 0.0005);
  EXPECT_GT(bf16.packed.errors.at("w"), 0.0005);
}

TEST(Pack, HalvesThatWouldBeInfiniteAreRefused) {
  Maker m;
  const uint32_t x = m.embed(4);
  m.finish(m.builder.linear("y", x, m.builder.weight("w", 1, 4, {1, 2, 70000, 3}), kNone));
  quantize(m.graph, {.weights = "f16", .activations = false});
  plan(m.graph);
  EXPECT_THROW((void)testing::pack_all(m.graph), InputError);
}

TEST(Pack, Int4BlocksHoldTheRoundedWeightsAndTablesAreInt8) {
  const PackedMatrix p("int4");
  EXPECT_EQ(p.tensor().type, DataType::I4);
  EXPECT_EQ(p.tensor().bytes, 2u * 2 * 144);
  const auto* blocks = reinterpret_cast<const I4Block*>(p.data());
  for (size_t row = 0; row < 16; ++row) {
    for (size_t column = 0; column < 64; ++column) {
      const I4Block& block = blocks[row / 8 * 2 + column / 32];
      const int code = code_of(block, row % 8, column % 32);
      if (row >= 11 || column >= 40) {
        EXPECT_EQ(code, 0);
        continue;
      }
      const float scale = to_f32(block.scales[row % 8]);
      EXPECT_NEAR(static_cast<float>(code) * scale, p.values[row * 40 + column],
                  std::fabs(scale) * 1.2f);
    }
  }
  EXPECT_GT(p.packed.errors.at("w"), 0.02);
  EXPECT_LT(p.packed.errors.at("w"), 0.1);
  EXPECT_EQ(p.m.find("x")->type, DataType::F32);
  EXPECT_EQ(p.m.find("x.i8")->type, DataType::I8);
  EXPECT_EQ(p.m.graph.tensor(p.m.graph.main_entry().steps[0]->inputs[1]).type, DataType::I8);
}

TEST(Pack, Int4MinBlocksHoldTheRoundedWeights) {
  const PackedMatrix p("int4min");
  EXPECT_EQ(p.tensor().type, DataType::I4Min);
  EXPECT_EQ(p.tensor().bytes, 2u * 2 * 160);
  const auto* blocks = reinterpret_cast<const I4MinBlock*>(p.data());
  for (size_t i = 0; i < p.values.size(); ++i) {
    const size_t row = i / 40, column = i % 40;
    const I4MinBlock& block = blocks[row / 8 * 2 + column / 32];
    const float scale = to_f32(block.scales[row % 8]);
    EXPECT_NEAR(static_cast<float>(code_of(block, row % 8, column % 32)) * scale +
                    to_f32(block.mins[row % 8]),
                p.values[i], scale * 1.2f);
  }
  EXPECT_GT(p.packed.errors.at("w"), 0.02);
  EXPECT_LT(p.packed.errors.at("w"), PackedMatrix("int4").packed.errors.at("w"));
}

TEST(Pack, WeightsOfThreeValuesAreKeptAsTernary) {
  const PackedMatrix p("ternary", true);
  EXPECT_EQ(p.tensor().type, DataType::Ternary);
  EXPECT_EQ(p.tensor().bytes, 2u * 3 * 32 + 11 * 4);
  EXPECT_EQ(p.packed.errors.at("w"), 0);
  const auto* blocks = reinterpret_cast<const TernaryBlock*>(p.data());
  const auto* scales = reinterpret_cast<const float*>(p.data() + 2 * 3 * 32);
  for (size_t i = 0; i < p.values.size(); ++i) {
    const size_t row = i / 40, column = i % 40;
    const int code = code_of(blocks[row / 8 * 3 + column / 16], row % 8, column % 16);
    EXPECT_EQ(static_cast<float>(code) * scales[row], p.values[i]);
  }
}

TEST(Pack, LargeWeightsStartOnTheirOwnPage) {
  Maker m;
  const uint32_t x = m.embed(64);
  const uint32_t large = m.matrix(300, 64), small = m.matrix(8, 300);
  m.finish(m.builder.linear("z", m.builder.linear("y", x, large, kNone), small, kNone));
  plan(m.graph);
  const testing::PackedWeights packed = testing::pack_all(m.graph);
  uint64_t end = 0;
  for (const auto& [index, weight] : m.graph.weights) {
    const std::vector<float> values = weight.values();
    const schema::TensorT& tensor = m.graph.tensor(index);
    EXPECT_EQ(tensor.offset % (tensor.bytes >= 65536 ? 16384 : 64), 0u);
    EXPECT_GE(tensor.offset, end);
    end = tensor.offset + tensor.bytes;
    EXPECT_EQ(std::memcmp(packed.data.data() + tensor.offset, values.data(), tensor.bytes), 0);
  }
  EXPECT_LE(end, packed.data.size());
}

}  // namespace
}  // namespace oxbow::convert

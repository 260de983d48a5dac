#include "converter/passes/transform.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "converter/convert.h"
#include "converter/passes/passes.h"
#include "host/describe.h"
#include "host/testing/files.h"
#include "host/testing/paths.h"
#include "runtime/base/hadamard.h"

namespace oxbow::convert {
namespace {

using schema::DataType;
using schema::OpCode;

constexpr uint32_t kNone = GraphBuilder::kNone;

/// A builder whose weights are random.
struct Maker {
  Graph graph;
  GraphBuilder builder{graph};
  std::mt19937 random{1};

  Maker() {
    GraphBuilder::Entry entry;
    entry.vocabulary = 16;
    entry.max_segment = 8;
    builder.begin_entry(entry);
  }
  uint32_t matrix(const std::string& name, uint32_t rows, uint32_t width) {
    std::vector<float> values(size_t{rows} * width);
    for (float& value : values) value = std::uniform_real_distribution<float>(0.5f, 2.0f)(random);
    return builder.weight(name, rows, width, values);
  }
  uint32_t embed(uint32_t width) {
    return builder.embedding("x", builder.tokens(), matrix("table", 16, width));
  }
  uint32_t index(const std::string& name) const {
    for (uint32_t i = 0; i < graph.model.tensors.size(); ++i) {
      if (graph.tensor(i).name == name) return i;
    }
    ADD_FAILURE() << name;
    return 0;
  }
  std::vector<float> values(const std::string& name) const {
    return graph.weights.at(index(name)).values();
  }
};

/// Sizes of columns as outliers have them.
std::vector<float> sizes(size_t width) {
  std::vector<float> out(width, 1.0f);
  out[3] = 100.0f;
  return out;
}

TEST(ScaleChannels, ANormGivesWhatItsMatricesTake) {
  Maker m;
  const uint32_t norm = m.builder.rms_norm("norm", m.embed(16), m.matrix("gamma", 1, 16), 1e-5f);
  const uint32_t a = m.builder.linear("a", norm, m.matrix("wa", 8, 16), kNone);
  const uint32_t b = m.builder.linear("b", norm, m.matrix("wb", 8, 16), kNone);
  m.builder.output("y", m.builder.add("sum", a, b));
  const std::vector<float> gamma = m.values("gamma"), wa = m.values("wa"), wb = m.values("wb");
  ASSERT_EQ(scale_channels(m.graph, {{"norm", sizes(16)}}, {}), 1u);
  for (size_t j = 0; j < 16; ++j) {
    const float scale = m.values("gamma")[j] / gamma[j];
    EXPECT_EQ(scale < 0.5f, j == 3) << "the large column becomes smaller";
    for (size_t n = 0; n < 8; ++n) {
      EXPECT_NEAR(m.values("wa")[n * 16 + j] * scale, wa[n * 16 + j], 1e-5);
      EXPECT_NEAR(m.values("wb")[n * 16 + j] * scale, wb[n * 16 + j], 1e-5);
    }
  }
}

TEST(ScaleChannels, LeavesAloneWhatSomethingElseReads) {
  Maker m;
  const uint32_t norm = m.builder.rms_norm("norm", m.embed(16), m.matrix("gamma", 1, 16), 1e-5f);
  const uint32_t a = m.builder.linear("a", norm, m.matrix("wa", 16, 16), kNone);
  m.builder.output("y", m.builder.add("sum", a, norm));
  EXPECT_EQ(scale_channels(m.graph, {{"norm", sizes(16)}}, {}), 0u);
}

TEST(ScaleChannels, OfAProductTheSideWithoutAnActivationGives) {
  Maker m;
  const uint32_t x = m.embed(16);
  const uint32_t gate = m.builder.activate(
      "act", m.builder.linear("gate", x, m.matrix("wg", 32, 16), kNone), schema::Activation::Silu);
  const uint32_t up = m.builder.linear("up", x, m.matrix("wu", 32, 16), m.matrix("bu", 1, 32));
  const uint32_t product = m.builder.multiply("product", gate, up);
  m.builder.output("y", m.builder.linear("down", product, m.matrix("wd", 16, 32), kNone));
  const std::vector<float> wg = m.values("wg"), wu = m.values("wu"), bu = m.values("bu");
  ASSERT_EQ(scale_channels(m.graph, {{"product", sizes(32)}}, {}), 1u);
  EXPECT_EQ(m.values("wg"), wg);
  for (size_t n = 0; n < 32; ++n) {
    const float scale = m.values("bu")[n] / bu[n];
    EXPECT_EQ(scale < 0.5f, n == 3);
    EXPECT_NEAR(m.values("wu")[n * 16] / wu[n * 16], scale, 1e-5);
  }
}

TEST(ScaleChannels, ATableThatIsAlsoTheHeadIsScaledAsTheHeadOnly) {
  Maker m;
  const uint32_t table = m.matrix("table", 16, 16);
  const uint32_t x = m.builder.embedding("x", m.builder.tokens(), table);
  const uint32_t norm = m.builder.rms_norm("norm", x, m.matrix("gamma", 1, 16), 1e-5f);
  m.builder.logits(m.builder.take_rows("tail", norm), table, kNone);
  const std::vector<float> before = m.values("table");
  ASSERT_EQ(scale_channels(m.graph, {{"tail", sizes(16)}}, {}), 1u);
  EXPECT_EQ(m.values("table.embedding"), before);
  EXPECT_NE(m.values("table"), before);
}

TEST(TurnMatrices, WhatOneMatrixGivesToTheNextStaysForAccelerators) {
  for (const bool keep_chains : {false, true}) {
    Maker m;
    const uint32_t norm = m.builder.rms_norm("norm", m.embed(32), m.matrix("gamma", 1, 32), 1e-5f);
    const uint32_t inner = m.builder.linear("inner", norm, m.matrix("up", 64, 32), kNone);
    m.builder.output("y", m.builder.linear("l", inner, m.matrix("down", 32, 64), kNone));
    quantize(m.graph, {});
    EXPECT_EQ(turn_matrices(m.graph, {}, {}, keep_chains), keep_chains ? 1u : 2u);
    EXPECT_EQ(m.graph.tensor(m.index("inner")).hadamard, keep_chains ? 0u : 64u);
  }
}

TEST(TurnMatrices, TurnedRowsTimesTurnedMatricesAreWhatTheyWere) {
  Maker m;
  const uint32_t norm = m.builder.rms_norm("norm", m.embed(96), m.matrix("gamma", 1, 96), 1e-5f);
  m.builder.output("y", m.builder.linear("l", norm, m.matrix("w", 8, 96), kNone));
  const std::vector<float> before = m.values("w");
  quantize(m.graph, {});
  ASSERT_EQ(turn_matrices(m.graph, {}), 1u);
  EXPECT_EQ(m.graph.tensor(m.index("norm")).hadamard, 32u) << "the largest power of two in 96";
  std::vector<double> x(96), turned;
  for (double& value : x) value = std::uniform_real_distribution<double>(-1, 1)(m.random);
  turned = x;
  hadamard_row(turned.data(), turned.size(), 32);
  for (size_t n = 0; n < 8; ++n) {
    double plain = 0, sum = 0;
    for (size_t k = 0; k < 96; ++k) {
      plain += x[k] * before[n * 96 + k];
      sum += turned[k] * m.values("w")[n * 96 + k];
    }
    EXPECT_NEAR(sum, plain, 1e-5);
  }
}

TEST(TurnMatrices, RowsThatAllGoOneWayAreTurnedInSmallBlocks) {
  constexpr uint32_t kWidth = 256;
  for (const float mean : {0.0f, 0.5f}) {
    Maker m;
    const uint32_t norm =
        m.builder.rms_norm("norm", m.embed(kWidth), m.matrix("gamma", 1, kWidth), 1e-5f);
    m.builder.output(
        "y", m.builder.add("sum", m.builder.linear("a", norm, m.matrix("wa", 8, kWidth), kNone),
                           m.builder.linear("b", norm, m.matrix("wb", 8, kWidth), kNone)));
    // As a GELU leaves them, with a few that stick out, or as a norm does.
    std::vector<float> rows(40 * kWidth);
    std::normal_distribution<float> normal(mean, 0.25f);
    for (float& value : rows) value = normal(m.random);
    for (size_t row = 0; row < 40; ++row) rows[row * kWidth + row * 5] = 10;
    MatrixInputs seen;
    seen.rows["x"].emplace_back(40, kWidth, rows);
    // What is known of one matrix holds for the other, which reads the same.
    seen.of["wb"] = {"x"};
    quantize(m.graph, {});
    ASSERT_EQ(turn_matrices(m.graph, {}, seen), 1u);
    const uint32_t block = m.graph.tensor(m.index("norm")).hadamard;
    if (mean == 0) {
      EXPECT_EQ(block, kWidth);
    } else {
      EXPECT_LE(block, 64u);
    }
  }
}

TEST(TurnMatrices, NarrowRowsAndThoseThatCallersSeeStayAsTheyAre) {
  for (const bool seen : {false, true}) {
    Maker m;
    const uint32_t width = seen ? 32 : 24;
    const uint32_t norm =
        m.builder.rms_norm("norm", m.embed(width), m.matrix("gamma", 1, width), 1e-5f);
    m.builder.output("y", m.builder.linear("l", norm, m.matrix("w", 8, width), kNone));
    if (seen) m.graph.main_entry().kept = {norm};
    quantize(m.graph, {});
    EXPECT_EQ(turn_matrices(m.graph, {}), 0u);
  }
}

TEST(GroupRows, OnlyOfFourBitsAloneAndNotOfTurnedRows) {
  for (const std::string other : {"", "int8"}) {
    Maker m;
    const uint32_t norm = m.builder.rms_norm("norm", m.embed(96), m.matrix("gamma", 1, 96), 1e-5f);
    m.builder.output("y",
                     m.builder.add("sum", m.builder.linear("a", norm, m.matrix("wa", 8, 96), kNone),
                                   m.builder.linear("b", norm, m.matrix("wb", 8, 96), kNone)));
    QuantizeOptions options = {.weights = "int4"};
    if (!other.empty()) options.keep = {{"wb", other}};
    quantize(m.graph, options);
    EXPECT_EQ(group_rows(m.graph), other.empty() ? 1u : 0u);
    EXPECT_EQ(m.graph.tensor(m.index("norm")).scale_groups, other.empty() ? 3u : 1u);
    EXPECT_EQ(turn_matrices(m.graph, options), other.empty() ? 0u : 1u);
  }
  Maker m;
  m.builder.output("y", m.builder.linear("l", m.embed(96), m.matrix("w", 8, 96), kNone));
  quantize(m.graph, {.weights = "int4"});
  ASSERT_EQ(turn_matrices(m.graph, {}), 1u);
  EXPECT_EQ(group_rows(m.graph), 0u);
}

TEST(Groups, ThatAreFoundAreKeptAndNeitherScaledNorTurned) {
  Maker m;
  const uint32_t norm = m.builder.rms_norm("norm", m.embed(64), m.matrix("gamma", 1, 64), 1e-5f);
  std::vector<float> symmetric(8 * 64), with_min(8 * 64);
  for (size_t i = 0; i < symmetric.size(); ++i) {
    symmetric[i] = 0.25f * static_cast<float>(static_cast<int>(m.random() % 16) - 8);
    with_min[i] = 0.25f * static_cast<float>(m.random() % 16) + 1.125f;
  }
  const auto enter = [&](const char* name, const std::vector<float>& values) {
    return m.builder.linear(std::string("y.") + name, norm, m.builder.weight(name, 8, 64, values),
                            kNone);
  };
  const uint32_t sum =
      m.builder.add("sum", enter("symmetric", symmetric), enter("with_min", with_min));
  m.builder.output(
      "y", m.builder.add("all", sum, m.builder.linear("l", norm, m.matrix("plain", 8, 64), kNone)));
  FoundGroups groups = find_groups(m.graph, {});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_FALSE(groups.at("symmetric").has_min);
  EXPECT_TRUE(groups.at("with_min").has_min);
  EXPECT_TRUE(groups.at("symmetric").exact && groups.at("with_min").exact);
  EXPECT_EQ(find_groups(m.graph, {{"with*", "int8"}}).size(), 1u);
  const QuantizeOptions options = {.weights = "int4", .groups = groups};
  // All that enters them would have to be turned, and scaled.
  EXPECT_EQ(scale_channels(m.graph, {{"norm", sizes(64)}}, options), 0u);
  quantize(m.graph, options);
  EXPECT_EQ(turn_matrices(m.graph, options), 0u);
  EXPECT_EQ(m.graph.tensor(m.index("symmetric")).type, DataType::I4);
  EXPECT_EQ(m.graph.tensor(m.index("with_min")).type, DataType::I4Min);
  EXPECT_EQ(m.graph.tensor(m.index("plain")).type, DataType::I4);
  EXPECT_EQ(group_rows(m.graph), 1u);
}

TEST(Groups, GiveTheirSizesToNoMatrixBehindThem) {
  for (const bool kept : {false, true}) {
    Maker m;
    std::vector<float> values(64 * 64);
    for (float& value : values) {
      value = 0.25f * static_cast<float>(static_cast<int>(m.random() % 16) - 8);
    }
    const uint32_t up =
        m.builder.linear("up", m.embed(64), m.builder.weight("w", 64, 64, values), kNone);
    m.builder.output("y", m.builder.linear("down", up, m.matrix("plain", 8, 64), kNone));
    QuantizeOptions options = {.weights = "int4"};
    if (kept) options.groups = find_groups(m.graph, {{"plain", "int8"}});
    EXPECT_EQ(scale_channels(m.graph, {{"up", sizes(64)}}, options), kept ? 0u : 1u);
  }
}

TEST(Groups, OfOneNumberOrTwoAreNobodys) {
  Maker m;
  const std::vector<float> zeros(8 * 64);
  std::vector<float> two(8 * 2);
  for (float& value : two) value = static_cast<float>(m.random() % 1000) + 0.3f;
  const uint32_t x = m.embed(64),
                 z = m.builder.linear("a", x, m.builder.weight("zeros", 8, 64, zeros), kNone);
  const uint32_t pair = m.builder.linear("b", x, m.matrix("plain", 2, 64), kNone);
  m.builder.output(
      "y", m.builder.add("sum", z,
                         m.builder.linear("c", pair, m.builder.weight("two", 8, 2, two), kNone)));
  EXPECT_TRUE(find_groups(m.graph, {}).empty());
}

/// Converts a golden pack with everything that can be done to it.
Description convert_with_all(const std::string& pack, const std::string& output) {
  ConvertOptions options;
  options.directory = testing::source_dir() + "/tests/golden/" + pack;
  options.output = output;
  options.transform = Transform{.scale = true, .turn = true, .turn_keys = true};
  convert(options);
  return describe_file(output);
}

TEST(TurnKeys, QueriesAndKeysBehindRotaryPositionsAreTurnedAlike) {
  const testing::TemporaryDirectory directory;
  const Description d = convert_with_all("qwen3/q3b_legacy", directory / "model.oxb");
  size_t turned = 0;
  for (const auto& step : d.model.entry_points[0]->steps) {
    if (step->op != OpCode::Attention) continue;
    const uint32_t block = d.model.tensors[step->inputs[0]]->hadamard;
    turned += block != 0;
    for (size_t s = 0; s < step->options.AsAttentionOptions()->sources; ++s) {
      EXPECT_EQ(d.model.tensors[step->inputs[1 + 2 * s]]->hadamard, block);
      EXPECT_EQ(d.model.tensors[step->inputs[2 + 2 * s]]->hadamard, 0u) << "values";
    }
  }
  EXPECT_GT(turned, 0u);
  EXPECT_GT(std::stod(find_value(d.model.metadata->quality, "logits_cosine")), 0.999);
  EXPECT_EQ(find_value(d.model.metadata->settings, "transform"),
            "channels scaled, rows turned, keys turned");
}

TEST(TurnKeys, WithoutRotaryPositionsNothingIsTurned) {
  const testing::TemporaryDirectory directory;
  const Description d = convert_with_all("gpt2/g2_inner_relu", directory / "model.oxb");
  for (const auto& step : d.model.entry_points[0]->steps) {
    if (step->op != OpCode::Attention) continue;
    EXPECT_EQ(d.model.tensors[step->inputs[0]]->hadamard, 0u);
  }
}

TEST(Transform, IsChosenByWhatLosesLeastAndToldOf) {
  const testing::TemporaryDirectory directory;
  ConvertOptions options;
  options.directory = testing::source_dir() + "/tests/golden/labml_compressive/c2_d96_l4_rate3";
  options.output = directory / "model.oxb";
  std::vector<std::string> notes;
  options.note = [&](const std::string& note) { notes.push_back(note); };
  convert(options);
  const auto told = std::find_if(notes.begin(), notes.end(), [](const std::string& note) {
    return note.starts_with("int8: ") && note.find("as they are: ") != std::string::npos;
  });
  ASSERT_NE(told, notes.end());
  const auto kl = [](const std::string& path) {
    return std::stod(find_value(describe_file(path).model.metadata->quality, "mean_kl"));
  };
  const double chosen = kl(options.output);
  for (const Transform& fixed : {Transform{}, Transform{.turn = true}}) {
    options.transform = fixed;
    convert(options);
    EXPECT_LE(chosen, kl(options.output));
  }
}

}  // namespace
}  // namespace oxbow::convert

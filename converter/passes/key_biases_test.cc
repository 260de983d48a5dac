#include <gtest/gtest.h>

#include <functional>

#include "converter/passes/transform.h"

namespace oxbow::convert {
namespace {

constexpr uint32_t kNone = GraphBuilder::kNone;
constexpr uint32_t kWidth = 32;

/// Attention whose keys have a bias.
struct Maker {
  Graph graph;
  GraphBuilder builder{graph};
  uint32_t x, q, k, v;
  GraphBuilder::Attention attention;

  Maker() {
    GraphBuilder::Entry entry;
    entry.vocabulary = 16;
    entry.max_segment = 8;
    builder.begin_entry(entry);
    x = builder.embedding("x", builder.tokens(), weight("table", 16));
    q = projected("q");
    k = projected("k");
    v = projected("v");
    attention.heads = attention.kv_heads = 2;
    attention.sources = {{k, v}};
  }
  uint32_t weight(const std::string& name, uint32_t rows) {
    return builder.weight(name, rows, kWidth, std::vector<float>(size_t{rows} * kWidth, 0.5f));
  }
  uint32_t projected(const std::string& name) {
    return builder.linear(name, x, weight(name + ".w", kWidth), weight(name + ".b", 1));
  }
  void finish(uint32_t* log_sums = nullptr) {
    const uint32_t y = builder.attention("y", q, attention, log_sums);
    builder.logits(builder.take_rows("tail", y), weight("head", 16), kNone);
  }
  bool has_bias(uint32_t tensor) const {
    for (const auto& step : graph.model.entry_points[0]->steps) {
      if (step->outputs[0] != tensor) continue;
      const bool has = step->options.AsLinearOptions()->has_bias;
      EXPECT_EQ(step->inputs.size(), has ? 3u : 2u);
      return has;
    }
    ADD_FAILURE() << "nobody makes it";
    return false;
  }
};

TEST(DropKeyBiases, OfKeysOnly) {
  Maker m;
  m.finish();
  EXPECT_EQ(drop_key_biases(m.graph), 1u);
  EXPECT_FALSE(m.has_bias(m.k));
  EXPECT_TRUE(m.has_bias(m.q));
  EXPECT_TRUE(m.has_bias(m.v));
  EXPECT_EQ(drop_key_biases(m.graph), 0u) << "there is none left";
}

TEST(DropKeyBiases, AlsoWhenEarlierKeysAreRemembered) {
  Maker m;
  const uint32_t ring = m.builder.ring("mem", 6);
  const uint32_t keys = m.builder.ring_state("mem.k", ring, kWidth);
  const uint32_t values = m.builder.ring_state("mem.v", ring, kWidth);
  m.attention.sources.insert(m.attention.sources.begin(), {keys, values});
  m.finish();
  m.builder.ring_push({m.k, m.v}, {keys, values});
  EXPECT_EQ(drop_key_biases(m.graph), 1u);
  EXPECT_FALSE(m.has_bias(m.k));
}

TEST(DropKeyBiases, NotWhereItWouldBeSeen) {
  struct Case {
    const char* what;
    std::function<void(Maker&)> change;
  };
  const Case cases[] = {
      {"keys of another kind beside them",
       [](Maker& m) {
         m.attention.sources.insert(m.attention.sources.begin(), {m.projected("k2"), m.v});
       }},
      {"remembered keys that others begin with",
       [](Maker& m) {
         const uint32_t ring = m.builder.ring("mem", 6);
         const uint32_t keys = m.builder.ring_state("mem.k", ring, kWidth, m.weight("first", 1));
         const uint32_t values = m.builder.ring_state("mem.v", ring, kWidth);
         m.attention.sources.insert(m.attention.sources.begin(), {keys, values});
         m.builder.ring_push({m.k, m.v}, {keys, values});
       }},
      {"remembered keys that others write too",
       [](Maker& m) {
         const uint32_t ring = m.builder.ring("mem", 6);
         const uint32_t keys = m.builder.ring_state("mem.k", ring, kWidth);
         const uint32_t values = m.builder.ring_state("mem.v", ring, kWidth);
         m.attention.sources.insert(m.attention.sources.begin(), {keys, values});
         m.builder.ring_push({m.q, m.v}, {keys, values});
       }},
      {"the caller reads the keys", [](Maker& m) { m.graph.main_entry().kept = {m.k}; }},
      {"keys are values too",
       [](Maker& m) {
         m.attention.sources = {{m.k, m.k}};
       }},
      {"keys are queries too", [](Maker& m) { m.q = m.k; }},
      {"something is added to keys",
       [](Maker& m) {
         m.attention.sources = {{m.builder.add("sum", m.k, m.x), m.v}};
       }},
      {"a score that does not depend on keys", [](Maker& m) { m.attention.own_score = -1.0f; }},
  };
  for (const Case& one : cases) {
    Maker m;
    one.change(m);
    m.finish();
    drop_key_biases(m.graph);
    EXPECT_TRUE(m.has_bias(m.k)) << one.what;
  }
  Maker m;
  uint32_t log_sums = kNone;
  m.finish(&log_sums);
  m.graph.main_entry().kept = {log_sums};
  EXPECT_EQ(drop_key_biases(m.graph), 0u) << "sums of exponentials are read";
}

}  // namespace
}  // namespace oxbow::convert

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "runtime/api/oxbow_index.h"
#include "runtime/base/quantize.h"

namespace {

struct Table {
  Table(uint64_t vector_count, uint32_t vector_width, oxb_metric metric)
      : count(vector_count), width(vector_width) {
    oxb_error error = OXB_ERROR_INIT;
    EXPECT_EQ(oxb_index_bytes(count, width, metric, &bytes, &error), OXB_OK) << error.text;
    storage.resize(bytes + 64, std::byte{0xff});
    const auto at = reinterpret_cast<uintptr_t>(storage.data());
    memory = storage.data() + (64 - at % 64) % 64;
    EXPECT_EQ(oxb_index_create(memory, bytes, count, width, metric, &error), OXB_OK) << error.text;
    std::mt19937 random(1);
    vectors.resize(count * width);
    for (float& value : vectors) {
      value = static_cast<float>(random()) / static_cast<float>(random.max()) - 0.5f;
    }
    // In two parts, of which the second begins inside of a block.
    const uint64_t first = count / 3;
    EXPECT_EQ(oxb_index_put(memory, bytes, 0, vectors.data(), first, &error), OXB_OK);
    EXPECT_EQ(
        oxb_index_put(memory, bytes, first, vectors.data() + first * width, count - first, &error),
        OXB_OK);
  }

  uint64_t count;
  uint32_t width;
  size_t bytes = 0;
  std::vector<std::byte> storage;
  std::byte* memory = nullptr;
  std::vector<float> vectors;
};

/// A vector as its codes stand for it.
std::vector<double> rounded(const float* vector, uint32_t width) {
  std::vector<int8_t> codes(width);
  float scale = 0;
  oxbow::quantize_group(vector, width, codes.data(), &scale);
  std::vector<double> values(width);
  for (uint32_t i = 0; i < width; ++i) values[i] = double{scale} * codes[i];
  return values;
}

double score(const std::vector<double>& q, const std::vector<double>& v, oxb_metric metric) {
  double sum = 0;
  for (size_t i = 0; i < q.size(); ++i) {
    sum += metric == OXB_METRIC_DOT ? q[i] * v[i] : -(q[i] - v[i]) * (q[i] - v[i]);
  }
  return sum;
}

TEST(Index, FindsTheBestOfAllVectorsExactly) {
  for (const oxb_metric metric : {OXB_METRIC_DOT, OXB_METRIC_L2}) {
    for (const uint32_t width : {1u, 3u, 16u, 50u, 128u}) {
      for (const uint64_t count : {1ull, 7ull, 8ull, 513ull, 1100ull}) {
        const Table table(count, width, metric);
        constexpr uint32_t kResults = 5;
        constexpr size_t kQueries = 11;
        std::mt19937 random(9);
        std::vector<float> queries(kQueries * width);
        for (float& value : queries) {
          value = static_cast<float>(random()) / static_cast<float>(random.max()) - 0.5f;
        }
        std::vector<uint64_t> ids(kQueries * kResults);
        std::vector<float> scores(ids.size());
        oxb_error error = OXB_ERROR_INIT;
        ASSERT_EQ(oxb_index_search(table.memory, table.bytes, queries.data(), kQueries, 0, count,
                                   kResults, ids.data(), scores.data(), &error),
                  OXB_OK)
            << error.text;
        for (size_t q = 0; q < kQueries; ++q) {
          const std::vector<double> query = rounded(queries.data() + q * width, width);
          std::vector<double> all;
          for (uint64_t v = 0; v < count; ++v) {
            all.push_back(score(query, rounded(table.vectors.data() + v * width, width), metric));
          }
          std::vector<double> sorted = all;
          std::sort(sorted.rbegin(), sorted.rend());
          for (uint32_t i = 0; i < kResults; ++i) {
            const size_t at = q * kResults + i;
            if (i >= count) {
              ASSERT_EQ(ids[at], UINT64_MAX);
              ASSERT_EQ(scores[at], -INFINITY);
              continue;
            }
            // Integer products are exact; a few roundings of numbers below width / 4 remain.
            const double tolerance = 4 * width * 0x1p-24;
            ASSERT_NEAR(scores[at], sorted[i], tolerance);
            ASSERT_NEAR(all[ids[at]], sorted[i], tolerance);
            for (uint32_t j = 0; j < i; ++j) ASSERT_NE(ids[at], ids[q * kResults + j]);
          }
        }
      }
    }
  }
}

TEST(Index, ARangeIsSearchedByItself) {
  const Table table(100, 8, OXB_METRIC_L2);
  for (uint64_t first = 0; first < 20; ++first) {
    for (const uint64_t count : {0ull, 1ull, 5ull, 60ull}) {
      std::vector<uint64_t> ids(60);
      std::vector<float> scores(60);
      ASSERT_EQ(oxb_index_search(table.memory, table.bytes, table.vectors.data() + 30 * 8, 1, first,
                                 count, 60, ids.data(), scores.data(), nullptr),
                OXB_OK);
      std::sort(ids.begin(), ids.end());
      for (uint64_t i = 0; i < 60; ++i) ASSERT_EQ(ids[i], i < count ? first + i : UINT64_MAX);
    }
  }
}

TEST(Index, AVectorIsNearestToItselfAndOfEqualOnesTheFirstIsBest) {
  Table table(300, 33, OXB_METRIC_L2);
  ASSERT_EQ(
      oxb_index_put(table.memory, table.bytes, 200, table.vectors.data() + 50 * 33, 1, nullptr),
      OXB_OK);
  for (const uint64_t wanted : {0u, 7u, 50u, 299u}) {
    uint64_t ids[2];
    float scores[2];
    ASSERT_EQ(oxb_index_search(table.memory, table.bytes, table.vectors.data() + wanted * 33, 1, 0,
                               300, 2, ids, scores, nullptr),
              OXB_OK);
    EXPECT_EQ(ids[0], wanted);
    EXPECT_NEAR(scores[0], 0.0, 1e-5);
    if (wanted == 50) {
      EXPECT_EQ(ids[1], 200u);
    }
  }
}

TEST(Index, NumbersThatAreNotFiniteDoNoHarm) {
  Table table(20, 4, OXB_METRIC_DOT);
  const float bad[] = {NAN, INFINITY, -INFINITY, 1e38f};
  ASSERT_EQ(oxb_index_put(table.memory, table.bytes, 3, bad, 1, nullptr), OXB_OK);
  uint64_t ids[20];
  float scores[20];
  EXPECT_EQ(oxb_index_search(table.memory, table.bytes, bad, 1, 0, 20, 20, ids, scores, nullptr),
            OXB_OK);
}

TEST(Index, RefusesTablesThatLie) {
  const Table good(40, 12, OXB_METRIC_L2);
  const auto expect_refused = [&](size_t at, uint64_t value, size_t bytes, const char* what) {
    Table table(40, 12, OXB_METRIC_L2);
    std::memcpy(table.memory + at, &value, bytes);
    oxb_index_info info = OXB_INDEX_INFO_INIT;
    EXPECT_NE(oxb_index_get_info(table.memory, table.bytes, &info, nullptr), OXB_OK) << what;
  };
  expect_refused(0, 0, 4, "the magic number");
  expect_refused(4, 2, 4, "the version");
  expect_refused(8, 41, 8, "one vector more");
  expect_refused(8, UINT64_MAX, 8, "vectors without end");
  expect_refused(16, 0, 4, "no width");
  expect_refused(16, 13, 4, "a wider one");
  expect_refused(16, UINT32_MAX, 4, "the widest");
  expect_refused(20, 2, 4, "a metric that there is not");
  expect_refused(24, UINT64_MAX, 8, "its bytes");
  oxb_index_info info = OXB_INDEX_INFO_INIT;
  for (size_t bytes = 0; bytes < good.bytes; ++bytes) {
    ASSERT_NE(oxb_index_get_info(good.memory, bytes, &info, nullptr), OXB_OK) << bytes;
  }
  EXPECT_NE(oxb_index_get_info(good.memory + 4, good.bytes - 4, &info, nullptr), OXB_OK)
      << "aligned";
  EXPECT_EQ(oxb_index_get_info(good.memory, good.bytes, &info, nullptr), OXB_OK);
  EXPECT_EQ(info.count, 40u);
  EXPECT_EQ(info.width, 12u);
}

TEST(Index, RefusesArgumentsThatMakeNoSense) {
  Table table(40, 12, OXB_METRIC_DOT);
  uint64_t ids[4];
  float scores[4];
  const float* query = table.vectors.data();
  const auto search = [&](uint64_t first, uint64_t count, uint32_t k) {
    return oxb_index_search(table.memory, table.bytes, query, 1, first, count, k, ids, scores,
                            nullptr);
  };
  EXPECT_EQ(search(0, 40, 4), OXB_OK);
  EXPECT_NE(search(0, 41, 4), OXB_OK);
  EXPECT_NE(search(41, 0, 4), OXB_OK);
  EXPECT_NE(search(1, UINT64_MAX, 4), OXB_OK);
  EXPECT_NE(search(0, 40, 0), OXB_OK);
  EXPECT_NE(search(0, 40, OXB_INDEX_MAX_RESULTS + 1), OXB_OK);
  EXPECT_NE(oxb_index_put(table.memory, table.bytes, 39, query, 2, nullptr), OXB_OK);
  EXPECT_NE(oxb_index_put(table.memory, table.bytes, 0, nullptr, 1, nullptr), OXB_OK);
  size_t bytes = 0;
  EXPECT_NE(oxb_index_bytes(UINT64_MAX, 128, OXB_METRIC_L2, &bytes, nullptr), OXB_OK);
  EXPECT_NE(oxb_index_bytes(1, 0, OXB_METRIC_L2, &bytes, nullptr), OXB_OK);
  EXPECT_NE(oxb_index_bytes(1, OXB_INDEX_MAX_WIDTH + 1, OXB_METRIC_L2, &bytes, nullptr), OXB_OK);
  EXPECT_NE(oxb_index_create(table.memory, table.bytes - 1, 40, 12, OXB_METRIC_DOT, nullptr),
            OXB_OK);
}

}  // namespace

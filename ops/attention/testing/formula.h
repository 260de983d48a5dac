#pragma once

// The result of attention by its formula in double, with the pattern by the words of the schema: the
// simplest code that can be written for it, all keys against all queries.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "ops/attention/testing/test_case.h"
#include "runtime/base/quantize.h"

namespace oxbow::attention_test {

/// Whether the pattern alone shows this key to this query; positions as in schema/model.fbs.
inline bool pattern_shows(const schema::PatternT& p, int64_t head, int64_t query, int64_t key,
                          int64_t positions) {
  using Kind = schema::PatternKind;
  const int64_t d = query - key, before = p.before, after = p.after, length = p.length;
  switch (p.kind) {
    case Kind::Causal:
      return d >= 0;
    case Kind::Full:
      return true;
    case Kind::Window: {
      if (p.causal && d < 0) return false;
      if (key < p.first) return true;
      const auto of_head = static_cast<size_t>(p.dilation.size() == 1 ? 0 : head);
      const int64_t dilation = p.dilation.empty() ? 1 : p.dilation[of_head];
      return d % dilation == 0 && d / dilation >= -after && d / dilation <= before;
    }
    case Kind::Prefix:
      return d >= 0 || key < length;
    case Kind::Chunked: {
      if (p.causal && d < 0) return false;
      const int64_t chunks = (positions + length - 1) / length;
      const int64_t distance = key / length - query / length;
      for (int64_t round : {int64_t{-1}, int64_t{0}, int64_t{1}}) {
        if (round != 0 && !p.wrap) continue;
        const int64_t turned = distance + round * chunks;
        if (turned >= -before && turned <= after) return true;
      }
      return false;
    }
    case Kind::Strided:
      return d >= 0 && (d <= before || d % length == 0);
    case Kind::Fixed: {
      if (d < 0) return false;
      if (key / length == query / length) return true;
      const int64_t end = length - int64_t{p.summary} * (head % p.summary_sets);
      return key % length < end && key % length >= end - p.summary;
    }
    case Kind::Block1D: {
      const int64_t block = query / length * length;
      return d >= 0 && key >= block - before && key < block + length;
    }
    case Kind::Block2D: {
      const int64_t width = p.image_width, columns = p.block_width;
      const int64_t block_row = query / width / length * length;
      const int64_t block_column = query % width / columns * columns;
      const int64_t row = key / width, column = key % width;
      return d >= 0 && row >= block_row - before && row < block_row + length &&
             column >= block_column - after && column < block_column + columns + after;
    }
    case Kind::Past:
      return (d >= 1 && d <= before) || key < p.first;
    case Kind::ListedBlocks:
    case Kind::Segments:
    case Kind::Circle:
      // They have words of their own in sorted_test.cc.
      ADD_FAILURE() << "a pattern without words";
      return false;
  }
  return false;
}

/// Whether query i sees the key at position j with this head.
inline bool sees(const Attention& a, size_t head, size_t i, size_t j) {
  const Case& c = a.test;
  if (c.group_queries != 0) return i / c.group_queries == j / c.group_keys;
  const bool plain = j >= a.last_source();
  const size_t row = j - a.last_source();
  if (c.mask_queries && a.mask->i32()[i] == 0) return false;
  const bool keeps = c.mask_keeps_own && plain && row == i;
  if (c.key_mask && plain && !keeps && a.mask->i32()[row] == 0) return false;
  if (c.globals && plain && a.globals->i32()[row] != 0) return true;
  if (c.side_length != 0 && !plain) return true;
  const size_t first = c.side_length != 0 ? a.last_source() : 0;
  return pattern_shows(c.pattern.value_or(schema::PatternT{}), static_cast<int64_t>(head),
                       static_cast<int64_t>(a.query_position(i) - first),
                       static_cast<int64_t>(j - first),
                       static_cast<int64_t>(a.positions() - first));
}

/// One output row of one head, and how far a right kernel may be from it.
///
/// With u = 2^-24, a score's terms lose at most (ceil(width / 8) + 4) u of the sum of their
/// magnitudes in a dot of eight lanes (in int8 the integers are exact: 4 u), and 8 u more when they
/// are added and scaled. A softmax whose scores are off by e has weights off by a factor within
/// exp(+-2e). The exponential is good to 2e-7, the difference in its argument to u times its size;
/// the sums inside a tile and over tiles lose at most (64 + 4 tiles) u; the last product and
/// quotient 4 u. int16 weights are off by half of x / 32767 for each of 64 keys, x at most p_max
/// times the largest value scale; the sum of p over a tile is at least its p_max, so all tiles
/// together lose at most 64 / 65534 of the largest value.
struct Expected {
  std::vector<double> values;
  double tolerance = 0;
  double log_sum = -std::numeric_limits<double>::infinity();
  double log_sum_tolerance = 0;
};

/// A score with the sum of the magnitudes of what it is made of.
struct Score {
  double sum = 0, magnitude = 0;

  void add(double term) {
    sum += term;
    magnitude += std::abs(term);
  }
  void scale(double factor) {
    sum *= factor;
    magnitude *= std::abs(factor);
  }
};

/// The queries of one row and head as the products see them.
struct Queries {
  std::vector<float> content, pinned, position, segment;
};

inline Queries queries_of(const Attention& a, size_t i, size_t head, bool quantise) {
  const size_t dh = a.test.head_width, column = head * dh;
  const auto head_of = [&](const TestTensor* tensor, size_t row, const TestTensor* bias) {
    std::vector<float> x(dh);
    for (size_t d = 0; d < dh && tensor != nullptr; ++d) {
      x[d] = tensor->f32(row)[column + d];
      if (bias != nullptr) x[d] += bias->f32()[column + d];
    }
    return x;
  };
  Queries queries = {head_of(a.q, i, a.query_bias), head_of(a.pinned_query, i, a.query_bias),
                     head_of(a.q, i, nullptr), head_of(a.q, i, a.segment_bias)};
  if (!quantise) return queries;
  for (std::vector<float>* x : {&queries.content, &queries.pinned, &queries.position}) {
    std::vector<int8_t> codes(dh);
    float scale = 0;
    quantize_group(x->data(), dh, codes.data(), &scale);
    // The product with the scale is exact neither here nor in the kernel: within the 4 u above.
    for (size_t d = 0; d < dh; ++d) (*x)[d] = static_cast<float>(codes[d]) * scale;
  }
  return queries;
}

inline Score score_of(const Attention& a, const Queries& queries, size_t i, size_t j, size_t head) {
  const Case& c = a.test;
  const size_t dh = c.head_width, column = head * dh;
  const size_t kv_column = head / (c.heads / c.kv_heads) * dh;
  const auto [source, row] = a.place(j);
  const auto between = static_cast<int64_t>(a.query_position(i)) - static_cast<int64_t>(j);
  const int64_t distance = a.is_pinned(j) ? std::min(between, a.pinned_reach(j)) : between;
  const auto t = static_cast<size_t>(std::clamp<int64_t>(
      distance + c.relative_zero + a.room(), 0, std::max<int64_t>(int64_t{c.distances} - 1, 0)));
  Score score;
  const std::vector<float>& content =
      c.pinned_query && a.is_pinned(j) ? queries.pinned : queries.content;
  for (size_t d = 0; d < dh; ++d) {
    score.add(double{content[d]} * a.k[source]->value(row, kv_column + d));
  }
  if (a.table != nullptr) {
    for (size_t d = 0; d < dh; ++d) {
      score.add(double{queries.position[d]} * a.table->value(t, column + d));
    }
    score.add(a.bias->value(t, head));
  }
  if (c.relative_keys) {
    for (size_t d = 0; d < dh; ++d) {
      score.add(a.k[source]->value(row, kv_column + d) * a.table->value(t, column + d));
    }
  }
  if (c.segments) {
    const int32_t key_type = j < a.last_source() ? 0 : a.types->i32()[row];
    const size_t differ = key_type != a.types->i32()[i] ? 1 : 0;
    for (size_t d = 0; d < dh; ++d) {
      score.add(double{queries.segment[d]} * a.segment_table->value(differ, column + d));
    }
  }
  score.scale(a.options.scale);
  const bool side = c.side_length != 0 && j < a.last_source();
  if (side) {
    const auto block = static_cast<int64_t>(std::min(i / c.side_length, a.last_source() - 1));
    const int64_t to = block - static_cast<int64_t>(j) + c.side_zero;
    score.add(a.side_bias->value(
        static_cast<size_t>(std::clamp<int64_t>(to, 0, int64_t{c.side_distances} - 1)), head));
  }
  if (c.distance_bias && !side) score.add(a.bias->value(t, head));
  if (c.alibi) score.add(-a.slopes->value(0, head) * static_cast<double>(distance));
  return score;
}

/// What an adaptive span makes of the weight of the key at position j.
inline double span_factor(const Attention& a, size_t i, size_t j, size_t head) {
  if (a.spans == nullptr || j < a.test.span_first) return 1.0;
  const double d = static_cast<double>(a.query_position(i)) - static_cast<double>(j);
  return std::clamp((a.test.ramp + a.spans->value(0, head) - d) / a.test.ramp, 0.0, 1.0);
}

inline Expected expected_row(const Attention& a, size_t i, size_t head, bool quantise_query) {
  const Case& c = a.test;
  const size_t dv = c.values();
  const size_t kv_head = head / (c.heads / c.kv_heads);
  const bool i8 = c.type == DataType::kI8;
  const double u = std::ldexp(1.0, -24);

  const Queries queries = queries_of(a, i, head, quantise_query);
  std::vector<std::pair<size_t, double>> scores;
  double largest = -std::numeric_limits<double>::infinity(), smallest = -largest, magnitude = 0;
  for (size_t j = 0; j < a.positions(); ++j) {
    // Beyond the reach of a span, or where a float that was rounded says so, keys are not read.
    if (!sees(a, head, i, j) || span_factor(a, i, j, head) < 1e-7) continue;
    const Score score = score_of(a, queries, i, j, head);
    scores.emplace_back(j, score.sum);
    largest = std::max(largest, score.sum);
    smallest = std::min(smallest, score.sum);
    magnitude = std::max(magnitude, score.magnitude);
  }
  Expected result;
  result.values.assign(dv, 0.0);
  if (scores.empty()) return result;
  double all = 0, sum = 0, largest_value = 0, least_factor = 1;
  for (const auto& [j, score] : scores) {
    const auto [source, row] = a.place(j);
    const double factor = span_factor(a, i, j, head);
    const double p = std::exp(score - largest) * factor;
    all += std::exp(score - largest);
    sum += p;
    least_factor = std::min(least_factor, factor);
    for (size_t d = 0; d < dv; ++d) {
      const double value = a.v[source]->value(row, kv_head * dv + d);
      result.values[d] += p * value;
      largest_value = std::max(largest_value, std::abs(value));
    }
    // The bound of x needs the largest scale, not the largest value that happens to occur.
    if (i8) {
      const double scale = a.v[source]->row_scales(row)[kv_head];
      largest_value = std::max(largest_value, 127 * scale);
    }
  }
  if (a.spans != nullptr) sum += 1e-8 * all;
  for (double& x : result.values) x /= sum;
  result.log_sum = largest + std::log(sum);

  const double tiles = std::ceil(static_cast<double>(scores.size()) / kAttentionTile);
  const double dot = i8 && !c.segments ? 4 : std::ceil(static_cast<double>(c.head_width) / 8) + 4;
  // A factor is off by 4 u of edge / ramp, where the weights that it leaves may be few.
  const double factors =
      a.spans == nullptr ? 0.0 : 4 * u * (1 + 50 / a.test.ramp) * (1 + all / sum);
  const double score_error = (dot + 8) * u * magnitude + u * (largest - smallest) + 2e-7 + factors;
  const double relative = std::expm1(2 * score_error) + (68 + 4 * tiles) * u;
  result.tolerance = largest_value * (relative + (i8 ? 64.0 / 65534 : 0.0));
  // The logarithm is off by what its argument is off relatively, by its own 2 ulp, and by the last sum.
  result.log_sum_tolerance =
      relative + 4 * u * (std::abs(largest) + std::abs(std::log(sum))) + score_error;
  return result;
}

/// Every row of a step that has run is what the formula says.
inline void expect_formula(const Attention& a) {
  const Case& c = a.test;
  for (size_t i = 0; i < c.rows; ++i) {
    for (size_t head = 0; head < c.heads; ++head) {
      const Expected expected = expected_row(a, i, head, c.type == DataType::kI8);
      for (size_t d = 0; d < c.values(); ++d) {
        ASSERT_NEAR(a.out->value(i, head * c.values() + d), expected.values[d], expected.tolerance)
            << "query " << i << " head " << head << " element " << d;
      }
      if (a.log_sums == nullptr) continue;
      const double log_sum = a.log_sums->value(i, head);
      if (std::isinf(expected.log_sum)) {
        ASSERT_EQ(log_sum, expected.log_sum) << "query " << i << " head " << head;
      } else {
        ASSERT_NEAR(log_sum, expected.log_sum, expected.log_sum_tolerance)
            << "query " << i << " head " << head;
      }
    }
  }
}

inline void expect_formula(const Case& c) {
  SCOPED_TRACE(c.text());
  Attention a(c);
  ASSERT_EQ(a.bind_and_run(), Status::kOk) << a.op.message();
  expect_formula(a);
}

}  // namespace oxbow::attention_test

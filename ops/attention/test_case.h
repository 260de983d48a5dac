#pragma once

// What attention's tests are made of: a case of any shape, the tensors it needs, and its result by
// the formula in double.

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/testing/op_runner.h"
#include "runtime/base/quantize.h"

namespace oxbow::attention_test {

using testing::f32_tensor;
using testing::fill_uniform;
using testing::i8_tensor;
using testing::OpRunner;
using testing::TestTensor;

struct RingCase {
  uint32_t capacity, head, count;
};

struct Case {
  DataType type = DataType::kF32;
  uint32_t heads = 2, kv_heads = 2, head_width = 8;
  uint32_t rows = 3, max_rows = 5;
  std::vector<RingCase> rings;
  /// 0: no relative term.
  uint32_t distances = 0;
  /// 0: F32 output.
  uint32_t out_groups = 0;
  uint64_t seed = 1;
  /// Queries are uniform in +-this; all other values in +-1.
  float q_range = 2.0f;

  std::string text() const {
    std::ostringstream s;
    s << (type == DataType::kF32 ? "f32" : "i8") << " heads " << heads << "/" << kv_heads << " x "
      << head_width << ", rows " << rows << ", distances " << distances << ", seed " << seed
      << ", rings";
    for (const RingCase& r : rings) s << " " << r.count << "/" << r.capacity << "@" << r.head;
    return s.str();
  }
};

/// A step with its tensors. What the rings hold depends on the seed and not on where their heads
/// are; slots that hold nothing keep the 0xff bytes of fresh memory: NaN scales and values.
struct Attention {
  explicit Attention(const Case& c) : Attention(c, true) {}

  Attention(const Case& c, bool with_data) : test(c), op(bind_attention) {
    const uint32_t width = c.heads * c.head_width, kv_width = c.kv_heads * c.head_width;
    op.symbols = {c.rows};
    op.symbol_maxima = {c.max_rows};
    op.settable_symbols = {false};
    uint64_t seed = c.seed * 1000;
    q = add(f32_tensor("q", c.max_rows, width));
    q->with_symbol(0);
    if (with_data) fill_rows(*q, c.rows, 0, ++seed, c.q_range);
    for (size_t r = 0; r < c.rings.size(); ++r) {
      const RingCase& ring = c.rings[r];
      op.rings.push_back({ring.head, ring.count});
      op.ring_capacities.push_back(ring.capacity);
      for (std::vector<TestTensor*>* list : {&k, &v}) {
        TestTensor* t = add(matrix(list == &k ? "k" : "v", ring.capacity, kv_width, c.kv_heads));
        t->with_ring(static_cast<int32_t>(r));
        if (with_data) fill_rows(*t, ring.count, ring.head, ++seed, 1.0f);
        list->push_back(t);
      }
    }
    for (std::vector<TestTensor*>* list : {&k, &v}) {
      TestTensor* t = add(matrix(list == &k ? "own_k" : "own_v", c.max_rows, kv_width, c.kv_heads));
      t->with_symbol(0);
      if (with_data) fill_rows(*t, c.rows, 0, ++seed, 1.0f);
      list->push_back(t);
    }
    if (c.distances != 0) {
      table = add(matrix("table", c.distances, width, c.heads));
      bias = add(f32_tensor("bias", c.distances, c.heads));
      query_bias = add(f32_tensor("query_bias", 1, width));
      fill_uniform(*table, ++seed);
      fill_uniform(*bias, ++seed);
      fill_uniform(*query_bias, ++seed);
    }
    out = add(c.out_groups == 0 ? f32_tensor("out", c.max_rows, width)
                                : i8_tensor("out", c.max_rows, width, c.out_groups));
    out->with_symbol(0);

    options.heads = c.heads;
    options.kv_heads = c.kv_heads;
    options.sources = static_cast<uint32_t>(k.size());
    options.scale = 1.0f / std::sqrt(static_cast<float>(c.head_width));
    options.relative = c.distances != 0;
    op.inputs = {q};
    for (size_t s = 0; s < k.size(); ++s) op.inputs.insert(op.inputs.end(), {k[s], v[s]});
    if (table != nullptr) op.inputs.insert(op.inputs.end(), {table, bias, query_bias});
    op.outputs = {out};
  }

  Status bind() {
    op.options(options);
    return op.bind();
  }
  Status bind_and_run() {
    op.options(options);
    return op.bind_and_run();
  }

  /// Bytes of the rows that were computed, scales included.
  std::vector<std::byte> result() const {
    std::vector<std::byte> bytes(out->data, out->data + test.rows * out->stride());
    const auto* scales = reinterpret_cast<const std::byte*>(out->scales);
    if (scales != nullptr) {
      bytes.insert(bytes.end(), scales, scales + test.rows * out->scale_groups * sizeof(float));
    }
    return bytes;
  }

  /// Row j of the sequence of all sources: which source, and where in its tensors.
  std::pair<size_t, size_t> slot(size_t j) const {
    for (size_t r = 0; r < test.rings.size(); ++r) {
      const RingCase& ring = test.rings[r];
      if (j < ring.count) return {r, (ring.head + j) % ring.capacity};
      j -= ring.count;
    }
    return {test.rings.size(), j};
  }
  size_t memory_slots() const {
    size_t slots = 0;
    for (const RingCase& ring : test.rings) slots += ring.count;
    return slots;
  }

  Case test;
  OpRunner op;
  schema::AttentionOptionsT options;
  std::vector<std::unique_ptr<TestTensor>> tensors;
  TestTensor *q = nullptr, *table = nullptr, *bias = nullptr, *query_bias = nullptr, *out = nullptr;
  std::vector<TestTensor*> k, v;

 private:
  TestTensor matrix(const char* name, uint32_t rows, uint32_t width, uint32_t groups) const {
    return test.type == DataType::kF32 ? f32_tensor(name, rows, width)
                                       : i8_tensor(name, rows, width, groups);
  }
  TestTensor* add(TestTensor tensor) {
    tensors.push_back(std::make_unique<TestTensor>(std::move(tensor)));
    return tensors.back().get();
  }
  static void fill_rows(TestTensor& t, uint32_t count, uint32_t head, uint64_t seed, float range) {
    if (count == 0) return;
    TestTensor rows("rows", t.type, t.layout, count, t.width, t.scale_groups);
    fill_uniform(rows, seed, -range, range);
    for (uint32_t r = 0; r < count; ++r) {
      const size_t to = (head + r) % t.rows;
      std::memcpy(t.data + to * t.stride(), rows.data + r * t.stride(), t.stride());
      if (t.scale_groups != 0) {
        std::memcpy(t.row_scales(to), rows.row_scales(r), t.scale_groups * sizeof(float));
      }
    }
  }
};

/// One output row of one head by the formula in double, and how far a right kernel may be from it.
///
/// With u = 2^-24, a score's terms lose at most (ceil(width / 8) + 4) u of the sum of their
/// magnitudes in a dot of eight lanes (in int8 the integers are exact: 4 u), and 4 u more when they
/// are added and scaled. A softmax whose scores are off by e has weights off by a factor within
/// exp(+-2e). The exponential is good to 2e-7, the difference in its argument to u times its size;
/// the sums inside a tile and over tiles lose at most (64 + 4 tiles) u; the last product and
/// quotient 4 u. int16 weights are off by half of x / 32767 for each of 64 keys, x at most p_max
/// times the largest value scale; the sum of p over a tile is at least its p_max, so all tiles
/// together lose at most 64 / 65534 of the largest value.
struct Expected {
  std::vector<double> values;
  double tolerance = 0;
};

inline Expected expected_row(const Attention& a, size_t i, size_t head, bool quantise_query) {
  const Case& c = a.test;
  const size_t dh = c.head_width, column = head * dh;
  const size_t kv_column = head / (c.heads / c.kv_heads) * dh;
  const size_t own = a.memory_slots() + i;
  const bool i8 = c.type == DataType::kI8;
  const double u = std::ldexp(1.0, -24);

  std::vector<float> content(a.q->f32(i) + column, a.q->f32(i) + column + dh), position = content;
  if (a.table != nullptr) {
    for (size_t d = 0; d < dh; ++d) content[d] += a.query_bias->f32()[column + d];
  }
  if (quantise_query) {
    for (std::vector<float>* x : {&content, &position}) {
      std::vector<int8_t> codes(dh);
      float scale = 0;
      quantize_group(x->data(), dh, codes.data(), &scale);
      // The product with the scale is exact neither here nor in the kernel: within the 4 u above.
      for (size_t d = 0; d < dh; ++d) (*x)[d] = static_cast<float>(codes[d]) * scale;
    }
  }
  std::vector<double> scores(own + 1);
  double largest = -std::numeric_limits<double>::infinity(), smallest = -largest, magnitude = 0;
  for (size_t j = 0; j <= own; ++j) {
    const auto [source, row] = a.slot(j);
    double s = 0, m = 0;
    for (size_t d = 0; d < dh; ++d) {
      const double term = double{content[d]} * a.k[source]->value(row, kv_column + d);
      s += term;
      m += std::abs(term);
    }
    if (a.table != nullptr) {
      const size_t t = std::min<size_t>(own - j, c.distances - 1);
      for (size_t d = 0; d < dh; ++d) {
        const double term = double{position[d]} * a.table->value(t, column + d);
        s += term;
        m += std::abs(term);
      }
      s += a.bias->value(t, head);
      m += std::abs(a.bias->value(t, head));
    }
    scores[j] = s * a.options.scale;
    largest = std::max(largest, scores[j]);
    smallest = std::min(smallest, scores[j]);
    magnitude = std::max(magnitude, m * a.options.scale);
  }
  Expected result;
  result.values.assign(dh, 0.0);
  double sum = 0, largest_value = 0;
  for (size_t j = 0; j <= own; ++j) {
    const auto [source, row] = a.slot(j);
    const double p = std::exp(scores[j] - largest);
    sum += p;
    for (size_t d = 0; d < dh; ++d) {
      const double value = a.v[source]->value(row, kv_column + d);
      result.values[d] += p * value;
      largest_value = std::max(largest_value, std::abs(value));
    }
  }
  for (double& x : result.values) x /= sum;

  if (i8) {
    // The bound of x needs the largest scale, not the largest value that happens to occur.
    for (size_t j = 0; j <= own; ++j) {
      const auto [source, row] = a.slot(j);
      const double scale = a.v[source]->row_scales(row)[kv_column / dh];
      largest_value = std::max(largest_value, 127 * scale);
    }
  }
  const double tiles = std::ceil(static_cast<double>(own + 1) / kAttentionTile);
  const double dot = i8 ? 4 : std::ceil(static_cast<double>(dh) / 8) + 4;
  const double score_error = (dot + 4) * u * magnitude + u * (largest - smallest) + 2e-7;
  result.tolerance = largest_value * (std::expm1(2 * score_error) + (68 + 4 * tiles) * u +
                                      (i8 ? 64.0 / 65534 : 0.0));
  return result;
}

}  // namespace oxbow::attention_test

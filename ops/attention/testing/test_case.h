#pragma once

// What attention's tests are made of: a case of any shape and the tensors it needs.

#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/testing/op_runner.h"
#include "schema/model_generated.h"

namespace oxbow::attention_test {

using testing::f32_tensor;
using testing::fill_uniform;
using testing::i32_tensor;
using testing::i8_tensor;
using testing::OpRunner;
using testing::TestTensor;

struct RingCase {
  uint32_t capacity, head, count, pinned = 0;
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
  /// Without own rows the last source has other_rows rows of a symbol of its own, if there is a
  /// number; otherwise all are rings.
  bool own = true;
  std::optional<uint32_t> other_rows = {};
  std::optional<schema::PatternT> pattern = {};
  uint32_t relative_zero = 0;
  /// `distances` are those of a distance bias instead.
  bool distance_bias = false;
  bool alibi = false, segments = false, pinned_query = false;
  /// So many of the rings are those whose room is added to distances.
  uint32_t rooms = 0;
  bool relative_keys = false;
  /// 0: as wide as keys.
  uint32_t value_width = 0;
  /// Also the log-sum-exp.
  bool log_sums = false;
  /// So many rings are rows of this run instead, which hold `count` rows; the first ones.
  uint32_t plain_sources = 0;
  /// Unless 0: there is an adaptive span, with spans up to 40 and `first` positions.
  float ramp = 0.0f;
  uint32_t span_first = 0;
  /// Unless 0: groups of so many queries and keys, told by a shape if `group_shape`.
  uint32_t group_queries = 0, group_keys = 0;
  bool group_shape = false;
  /// Unless 0: the first of two sources are sides, one for so many own rows.
  uint32_t side_length = 0, side_distances = 1, side_zero = 0;
  /// Terms that flags could tell are told by the list.
  bool list_terms = false;
  bool key_mask = false, mask_queries = false, mask_keeps_own = false, globals = false;

  uint32_t values() const { return value_width == 0 ? head_width : value_width; }
  bool has_plain_source() const { return own || other_rows.has_value(); }
  uint32_t plain_rows() const { return own ? rows : other_rows.value_or(0); }
  uint32_t max_plain_rows() const { return own ? max_rows : plain_rows() + 2; }

  std::string text() const {
    std::ostringstream s;
    s << (type == DataType::kF32 ? "f32" : "i8") << " heads " << heads << "/" << kv_heads << " x "
      << head_width << ", rows " << rows << ", distances " << distances << ", seed " << seed
      << ", rings";
    for (const RingCase& r : rings) {
      s << " " << r.count << "/" << r.capacity << "@" << r.head << "p" << r.pinned;
    }
    if (!own) s << ", not own";
    if (other_rows.has_value()) s << ", other rows " << *other_rows;
    if (pattern.has_value()) {
      const schema::PatternT& p = *pattern;
      s << ", " << schema::EnumNamePatternKind(p.kind) << " before " << p.before << " after "
        << p.after << " first " << p.first << " length " << p.length << " wrap " << p.wrap
        << " causal " << p.causal << " summary " << p.summary << "x" << p.summary_sets << " image "
        << p.image_width << " block " << p.block_width << " dilation";
      for (uint32_t d : p.dilation) s << " " << d;
    }
    s << ", zero " << relative_zero << ", flags " << distance_bias << alibi << segments << key_mask
      << mask_queries << mask_keeps_own << globals << pinned_query << ", rooms " << rooms
      << ", relative keys " << relative_keys << ", values " << values() << ", plain sources "
      << plain_sources << ", ramp " << ramp << " first " << span_first << ", as list " << list_terms
      << ", log sums " << log_sums << ", groups " << group_queries << " " << group_keys << " "
      << group_shape << ", sides " << side_length << " " << side_distances << "-" << side_zero;
    return s.str();
  }
};

/// A step with its tensors. What the rings hold depends on the seed and not on where their heads
/// are; rows that hold nothing keep the 0xff bytes of fresh memory: NaN scales and values.
struct Attention {
  explicit Attention(const Case& c) : Attention(c, true) {}

  Attention(const Case& c, bool with_data) : test(c), op(bind_attention) {
    const uint32_t width = c.heads * c.head_width;
    op.symbols = {c.rows};
    op.symbol_maxima = {c.max_rows};
    op.settable_symbols = {false};
    if (!c.own && c.other_rows.has_value()) {
      op.symbols.push_back(c.plain_rows());
      op.symbol_maxima.push_back(c.max_plain_rows());
      op.settable_symbols.push_back(true);
    }
    uint64_t seed = c.seed * 1000;
    q = add(f32_tensor("q", c.max_rows, width));
    q->with_symbol(0);
    if (with_data) fill_rows(*q, c.rows, 0, ++seed, c.q_range);
    for (size_t r = 0; r < c.rings.size(); ++r) {
      const RingCase& ring = c.rings[r];
      op.rings.push_back({ring.head, ring.count});
      op.ring_capacities.push_back(ring.capacity);
      for (std::vector<TestTensor*>* list : {&k, &v}) {
        const uint32_t kv_width = c.kv_heads * (list == &k ? c.head_width : c.values());
        const bool plain = r < c.plain_sources;
        TestTensor* t = add(matrix(list == &k ? "k" : "v", plain ? ring.count : ring.capacity,
                                   kv_width, c.kv_heads));
        if (!plain) t->with_ring(static_cast<int32_t>(r), ring.pinned);
        if (with_data) fill_rows(*t, ring.count, plain ? 0 : ring.head, ++seed, 1.0f);
        list->push_back(t);
      }
    }
    if (c.has_plain_source()) {
      for (std::vector<TestTensor*>* list : {&k, &v}) {
        const char* name = list == &k ? "own_k" : "own_v";
        const uint32_t kv_width = c.kv_heads * (list == &k ? c.head_width : c.values());
        TestTensor* t = add(matrix(name, c.max_plain_rows(), kv_width, c.kv_heads));
        t->with_symbol(c.own ? 0 : 1);
        if (with_data) fill_rows(*t, c.plain_rows(), 0, ++seed, 1.0f);
        list->push_back(t);
      }
    }
    op.inputs = {q};
    for (size_t s = 0; s < k.size(); ++s) op.inputs.insert(op.inputs.end(), {k[s], v[s]});
    add_terms(seed, with_data);
    const uint32_t out_width = c.heads * c.values();
    out = add(c.out_groups == 0 ? f32_tensor("out", c.max_rows, out_width)
                                : i8_tensor("out", c.max_rows, out_width, c.out_groups));
    out->with_symbol(0);
    op.outputs = {out};
    if (c.log_sums) {
      log_sums = add(f32_tensor("log_sums", c.max_rows, c.heads));
      log_sums->with_symbol(0);
      op.outputs.push_back(log_sums);
    }

    options.heads = c.heads;
    options.kv_heads = c.kv_heads;
    options.sources = static_cast<uint32_t>(k.size());
    options.scale = 1.0f / std::sqrt(static_cast<float>(c.head_width));
    options.own = c.own;
    if (c.pattern.has_value()) options.pattern = std::make_unique<schema::PatternT>(*c.pattern);
    options.relative = table != nullptr;
    options.relative_zero = c.relative_zero;
    options.distance_bias = c.distance_bias;
    options.alibi = c.alibi;
    options.segments = c.segments;
    options.key_mask = c.key_mask;
    options.mask_queries = c.mask_queries;
    options.mask_keeps_own = c.mask_keeps_own;
    options.globals = c.globals;
    options.pinned_query = c.pinned_query;
    options.rooms = c.rooms;
    options.relative_keys = c.relative_keys;
    if (c.list_terms) flags_to_list();
    if (c.ramp != 0.0f) {
      schema::ScoreTermT& term = add_term(schema::TermKind::AdaptiveSpan, 1);
      term.ramp = c.ramp;
      term.first = c.span_first;
    }
    if (c.group_queries != 0) {
      schema::ScoreTermT& term = add_term(schema::TermKind::Groups, c.group_shape ? 1 : 0);
      (c.group_shape ? term.query_dimensions : term.query_length) =
          c.group_shape ? 1 : c.group_queries;
      (c.group_shape ? term.key_dimensions : term.key_length) = c.group_shape ? 2 : c.group_keys;
    }
    if (c.side_length != 0) {
      schema::ScoreTermT& term = add_term(schema::TermKind::Sides, 1);
      term.length = c.side_length;
      term.zero = c.side_zero;
    }
  }

  schema::ScoreTermT& add_term(schema::TermKind kind, uint32_t inputs) {
    options.terms.push_back(std::make_unique<schema::ScoreTermT>());
    options.terms.back()->kind = kind;
    options.terms.back()->inputs = inputs;
    return *options.terms.back();
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
    if (log_sums != nullptr) {
      bytes.insert(bytes.end(), log_sums->data, log_sums->data + test.rows * log_sums->stride());
    }
    return bytes;
  }

  /// Row j of the sequence of all sources: which source, and where in its tensors.
  std::pair<size_t, size_t> place(size_t j) const {
    for (size_t r = 0; r < test.rings.size(); ++r) {
      const RingCase& ring = test.rings[r];
      if (j < ring.count) {
        if (r < test.plain_sources) return {r, j};
        return {r, ring_slot({ring.head, ring.count}, ring.capacity, ring.pinned, j)};
      }
      j -= ring.count;
    }
    return {test.rings.size(), j};
  }
  size_t positions() const { return last_source() + test.plain_rows(); }
  /// Of query i.
  size_t query_position(size_t i) const { return test.own ? last_source() + i : positions(); }
  bool is_pinned(size_t j) const {
    const auto [source, row] = place(j);
    return source >= test.plain_sources && source < test.rings.size() &&
           row < test.rings[source].pinned;
  }
  /// Rows that are missing in the rings whose room counts.
  int64_t room() const {
    int64_t rows = 0;
    for (uint32_t r = 0; r < test.rooms; ++r) {
      rows += int64_t{test.rings[r].capacity} - test.rings[r].count;
    }
    return rows;
  }
  /// From the pinned row at position j to that behind its full ring.
  int64_t pinned_reach(size_t j) const {
    const auto [source, row] = place(j);
    return static_cast<int64_t>(test.rings[source].capacity - row);
  }
  size_t last_source() const {
    size_t rows = 0;
    for (const RingCase& ring : test.rings) rows += ring.count;
    return rows;
  }

  Case test;
  OpRunner op;
  schema::AttentionOptionsT options;
  std::vector<std::unique_ptr<TestTensor>> tensors;
  TestTensor *q = nullptr, *table = nullptr, *bias = nullptr, *query_bias = nullptr, *out = nullptr;
  TestTensor *slopes = nullptr, *types = nullptr, *segment_table = nullptr, *segment_bias = nullptr;
  TestTensor *mask = nullptr, *globals = nullptr, *pinned_query = nullptr;
  TestTensor *spans = nullptr, *log_sums = nullptr;
  TestTensor *group_shape = nullptr, *side_bias = nullptr;
  std::vector<TestTensor*> k, v;

 private:
  /// The tensors of the terms, which are the last inputs.
  void add_terms(uint64_t seed, bool with_data) {
    const Case& c = test;
    const uint32_t width = c.heads * c.head_width;
    const auto weight = [&](TestTensor tensor) {
      fill_uniform(tensor, ++seed);
      return input(std::move(tensor));
    };
    /// Numbers below `limit`, one for each row of the last source.
    const auto numbers = [&](const char* name, uint32_t limit) {
      TestTensor* t = input(i32_tensor(name, c.max_plain_rows(), 1));
      t->with_symbol(c.own ? 0 : 1);
      std::mt19937 random(static_cast<uint32_t>(++seed));
      for (size_t i = 0; i < c.plain_rows(); ++i) {
        t->i32()[i] = static_cast<int32_t>(random() % limit);
      }
      return t;
    };
    if (c.distances != 0 && !c.distance_bias) {
      table = weight(matrix("table", c.distances, width, c.heads));
      bias = weight(f32_tensor("bias", c.distances, c.heads));
      query_bias = weight(f32_tensor("query_bias", 1, width));
    }
    if (c.distance_bias) bias = weight(f32_tensor("bias", c.distances, c.heads));
    if (c.alibi) slopes = weight(f32_tensor("slopes", 1, c.heads));
    if (c.segments) {
      types = numbers("types", 2);
      segment_table = weight(f32_tensor("segment_table", 2, width));
      segment_bias = weight(f32_tensor("segment_bias", 1, width));
    }
    if (c.key_mask) mask = numbers("mask", 3);
    if (c.globals) {
      globals = numbers("globals", 6);
      for (size_t i = 0; i < c.plain_rows(); ++i) globals->i32()[i] /= 5;
    }
    if (c.pinned_query) {
      pinned_query = input(f32_tensor("pinned_query", c.max_rows, width));
      pinned_query->with_symbol(0);
      if (with_data) fill_rows(*pinned_query, c.rows, 0, ++seed, c.q_range);
    }
    for (uint32_t r = 0; r < c.rooms; ++r) op.inputs.push_back(k[r]);
    if (c.ramp != 0.0f) {
      spans = input(f32_tensor("spans", 1, c.heads));
      fill_uniform(*spans, ++seed, 0.0f, 40.0f);
    }
    if (c.group_shape) {
      // The last number is the length of queries' groups, times the one before it that of keys'.
      group_shape = input(i32_tensor("shape", 3, 1));
      group_shape->i32()[0] = 5;
      group_shape->i32()[1] = static_cast<int32_t>(c.group_keys / c.group_queries);
      group_shape->i32()[2] = static_cast<int32_t>(c.group_queries);
    }
    if (c.side_length != 0) side_bias = weight(f32_tensor("sides", c.side_distances, c.heads));
  }

  /// The terms of the flags, in their order.
  void flags_to_list() {
    using Kind = schema::TermKind;
    const auto move = [&](bool& flag, Kind kind, uint32_t inputs) {
      if (flag) add_term(kind, inputs);
      flag = false;
    };
    move(options.relative, Kind::Relative, 3);
    move(options.relative_keys, Kind::RelativeKeys, 0);
    move(options.distance_bias, Kind::DistanceBias, 1);
    move(options.alibi, Kind::Alibi, 1);
    move(options.segments, Kind::Segments, 3);
    move(options.key_mask, Kind::KeyMask, 1);
    move(options.globals, Kind::Globals, 1);
    move(options.pinned_query, Kind::PinnedQuery, 1);
    if (options.rooms != 0) add_term(Kind::Rooms, options.rooms);
    options.rooms = 0;
  }

  TestTensor* input(TestTensor tensor) {
    op.inputs.push_back(add(std::move(tensor)));
    return op.inputs.back();
  }
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
      const size_t to = ring_slot({head, count}, t.rows, t.pinned, r);
      std::memcpy(t.data + to * t.stride(), rows.data + r * t.stride(), t.stride());
      if (t.scale_groups != 0) {
        std::memcpy(t.row_scales(to), rows.row_scales(r), t.scale_groups * sizeof(float));
      }
    }
  }
};

}  // namespace oxbow::attention_test

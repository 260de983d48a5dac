#pragma once

// The loops for runs of many tokens, some at a time (recurrence.h tells the sums); each instruction set compiles them
// with its flags. A column takes the same steps whatever the width of the vectors it lies in, so the bits are the
// same. In an unnamed namespace, so that no copy gets outside the file that includes this.

#include "ops/recurrence/generic.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

/// What a chunk's tokens are to each other, for a head: see ChunkRow.
[[gnu::always_inline]] inline void chunk_rows(const RecurrenceTile& tile, size_t begin,
                                              ChunkRow* rows) {
  const size_t end =
      begin + kRecurrenceChunk < tile.tokens ? begin + kRecurrenceChunk : tile.tokens;
  for (size_t t = begin; t < end; ++t) {
    ChunkRow& row = rows[t];
    float kept = 1.0f;
    for (size_t s = t + 1; s-- > begin;) {
      row.read[s - begin] = kept * dot_f32(token(tile.q, t), token(tile.k, s), tile.keys);
      if (tile.delta && s != t) {
        row.known[s - begin] = kept * dot_f32(token(tile.k, t), token(tile.k, s), tile.keys);
      }
      if (t + 1 == end) rows[s].to_end = kept;
      if (tile.decay.data != nullptr) kept *= *token(tile.decay, s);
    }
    row.from_start = kept;
  }
}

/// S^T x of each of `count` tokens, kAtOnce together. Of tokens that are not there the last is taken again.
template <typename Vector, size_t kCount>
[[gnu::always_inline]] inline void products(const RecurrenceTile& tile, const float* state,
                                            const TokenRows& x, size_t begin, size_t count,
                                            Vector (*sums)[kCount]) {
  for (size_t t = 0; t < count; t += kAtOnce) {
    const float* of_token[kAtOnce];
    for (size_t j = 0; j < kAtOnce; ++j) {
      of_token[j] = token(x, begin + (t + j < count ? t + j : count - 1));
    }
    Vector sum[kAtOnce][kCount] = {};
    for (size_t i = 0; i < tile.keys; ++i) {
      for (size_t n = 0; n < kCount; ++n) {
        Vector s;
        load(state + i * tile.state_stride + n * (sizeof(Vector) / sizeof(float)), s);
        for (size_t j = 0; j < kAtOnce; ++j) sum[j][n] += s * of_token[j][i];
      }
    }
    for (size_t j = 0; j < kAtOnce; ++j) {
      for (size_t n = 0; n < kCount; ++n) sums[t + j][n] = sum[j][n];
    }
  }
}

/// S <- kept S + sum of k_t value_t, for `kKeys` rows of the state from `key` on.
template <typename Vector, size_t kCount, size_t kKeys>
[[gnu::always_inline]] inline void add_keys(const RecurrenceTile& tile, float* state, float kept,
                                            size_t key, size_t begin, size_t count,
                                            const Vector (*value)[kCount]) {
  constexpr size_t kWidth = sizeof(Vector) / sizeof(float);
  Vector s[kKeys][kCount];
  for (size_t i = 0; i < kKeys; ++i) {
    for (size_t n = 0; n < kCount; ++n) {
      Vector old;
      load(state + (key + i) * tile.state_stride + n * kWidth, old);
      s[i][n] = kept * old;
    }
  }
  const float* k = token(tile.k, begin) + key;
  for (size_t t = 0; t < count; ++t, k += tile.k.stride) {
    for (size_t n = 0; n < kCount; ++n) {
      const Vector added = value[t][n];
      for (size_t i = 0; i < kKeys; ++i) s[i][n] += k[i] * added;
    }
  }
  for (size_t i = 0; i < kKeys; ++i) {
    for (size_t n = 0; n < kCount; ++n) {
      store(s[i][n], state + (key + i) * tile.state_stride + n * kWidth);
    }
  }
}

/// One chunk of `count` tokens, `kCount` vectors side by side from column `first` on.
template <typename Vector, size_t kCount>
[[gnu::always_inline]] inline void run_chunk(const RecurrenceTile& tile, const ChunkRow* rows,
                                             size_t first, size_t begin, size_t count, bool delta) {
  constexpr size_t kWidth = sizeof(Vector) / sizeof(float);
  float* const state = tile.state + first;
  // With room for the tokens that are not there.
  Vector value[kRecurrenceChunk][kCount], sums[kRecurrenceChunk + kAtOnce - 1][kCount];
  if (delta) products<Vector, kCount>(tile, state, tile.k, begin, count, sums);
  for (size_t t = 0; t < count; ++t) {
    const ChunkRow& row = rows[begin + t];
    const float* factor = token(tile.factor, begin + t);
    for (size_t n = 0; n < kCount; ++n) {
      Vector to;
      load(token(tile.v, begin + t) + first + n * kWidth, to);
      if (delta) {
        Vector known = row.from_start * sums[t][n];
        for (size_t s = 0; s < t; ++s) known += row.known[s] * value[s][n];
        to = to - known;
      }
      if (factor != nullptr) to = to * *factor;
      value[t][n] = to;
    }
  }
  products<Vector, kCount>(tile, state, tile.q, begin, count, sums);
  for (size_t t = 0; t < count; ++t) {
    const ChunkRow& row = rows[begin + t];
    const float* divisor = token(tile.divisor, begin + t);
    for (size_t n = 0; n < kCount; ++n) {
      Vector y = row.from_start * sums[t][n];
      for (size_t s = 0; s <= t; ++s) y += row.read[s] * value[s][n];
      if (divisor != nullptr) y = y / *divisor;
      store(y, tile.y + (begin + t) * tile.y_stride + first + n * kWidth);
    }
  }
  for (size_t t = 0; t < count; ++t) {
    for (size_t n = 0; n < kCount; ++n) value[t][n] = rows[begin + t].to_end * value[t][n];
  }
  const float kept = rows[begin + count - 1].from_start;
  size_t i = 0;
  for (; i + kAtOnce <= tile.keys; i += kAtOnce) {
    add_keys<Vector, kCount, kAtOnce>(tile, state, kept, i, begin, count, value);
  }
  for (; i < tile.keys; ++i) {
    add_keys<Vector, kCount, 1>(tile, state, kept, i, begin, count, value);
  }
}

/// The chunks from token `begin` on, of any length.
template <typename Vector, size_t kCount>
[[gnu::always_inline]] inline void run_chunks(const RecurrenceTile& tile, const ChunkRow* rows,
                                              size_t first, size_t begin) {
  for (; begin < tile.tokens; begin += kRecurrenceChunk) {
    const size_t left = tile.tokens - begin;
    run_chunk<Vector, kCount>(tile, rows, first, begin,
                              left < kRecurrenceChunk ? left : kRecurrenceChunk, tile.delta);
  }
}

/// What is left beside the 32s, and beside whole chunks of them: seldom, so there is one copy.
[[gnu::noinline]] inline void run_last_chunk(const RecurrenceTile& tile, const ChunkRow* rows,
                                             size_t first, size_t begin) {
  run_chunks<Columns, kSide>(tile, rows, first, begin);
}
[[gnu::noinline]] inline void run_narrow_chunks(const RecurrenceTile& tile, const ChunkRow* rows,
                                                size_t c) {
  for (; c + 8 <= tile.columns; c += 8) run_chunks<Eight, 1>(tile, rows, c, 0);
  for (; c < tile.columns; ++c) run_chunks<float, 1>(tile, rows, c, 0);
}

template <bool kDelta>
[[gnu::always_inline]] inline void run_all_chunks(const RecurrenceTile& tile,
                                                  const ChunkRow* rows) {
  size_t c = 0;
  for (; c + kRecurrenceColumns <= tile.columns; c += kRecurrenceColumns) {
    size_t begin = 0;
    // Loops over whole chunks unroll.
    for (; begin + kRecurrenceChunk <= tile.tokens; begin += kRecurrenceChunk) {
      run_chunk<Columns, kSide>(tile, rows, c, begin, kRecurrenceChunk, kDelta);
    }
    if (begin < tile.tokens) run_last_chunk(tile, rows, c, begin);
  }
  if (c < tile.columns) run_narrow_chunks(tile, rows, c);
}

[[gnu::always_inline]] inline void recurrence_chunks(const RecurrenceTile& tile,
                                                     const ChunkRow* rows) {
  tile.delta ? run_all_chunks<true>(tile, rows) : run_all_chunks<false>(tile, rows);
}

}  // namespace
}  // namespace oxbow

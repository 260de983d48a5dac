#pragma once

// The loops of all instruction sets: each compiles them with its flags. A column takes the steps of the
// reference in the same order whatever the width of the vectors it lies in, so the bits are the same. In
// an unnamed namespace, so that no copy gets outside the file that includes this.

#include <cstddef>

#include "ops/recurrence/recurrence.h"

namespace oxbow {
namespace {

/// Eight columns: one register of AVX, two of NEON and SSE.
using Eight = float __attribute__((vector_size(32)));
/// Columns of a vector, where there are enough. What a chunk has side by side fills the registers: so many tokens, and
/// so many keys.
#ifdef __AVX512F__
using Columns = float __attribute__((vector_size(64)));
constexpr size_t kAtOnce = 4;
#else
using Columns = Eight;
constexpr size_t kAtOnce = 2;
#endif
/// Vectors of what is computed at a time.
constexpr size_t kSide = kRecurrenceColumns * sizeof(float) / sizeof(Columns);

template <typename Vector>
[[gnu::always_inline]] inline void load(const float* from, Vector& to) {
  __builtin_memcpy(&to, from, sizeof(to));
}
template <typename Vector>
[[gnu::always_inline]] inline void store(const Vector& from, float* to) {
  __builtin_memcpy(to, &from, sizeof(from));
}

[[gnu::always_inline]] inline const float* token(const TokenRows& rows, size_t t) {
  return rows.data == nullptr ? nullptr : rows.data + t * rows.stride;
}

enum class Read { kNone, kBefore, kAfter };

/// Rows of a state that is wider than what is computed at a time lie too far apart for processors to see what comes next.
[[gnu::always_inline]] inline void ask_for_columns(const float* row) {
  for (size_t c = 0; c < kRecurrenceColumns; c += 16) __builtin_prefetch(row + c);
}

/// `kCount` vectors side by side, from column `first` on. Loops over them unroll, so that sums stay in
/// registers; the state's rows of one tile stay in the first cache from token to token.
template <typename Vector, size_t kCount>
[[gnu::always_inline]] inline void run_columns(const RecurrenceTile& tile, size_t first, Read read,
                                               bool rank_one) {
  constexpr size_t kWidth = sizeof(Vector) / sizeof(float);
  const size_t keys = tile.keys, stride = tile.state_stride;
  const bool writes = tile.k.data != nullptr, delta = tile.delta;
  float* const state = tile.state + first;
  for (size_t t = 0; t < tile.tokens; ++t) {
    const float one = 1.0f;
    const float* w = token(tile.decay, t);
    const size_t w_step = tile.decay_per_key ? 1 : 0;
    if (w == nullptr) w = &one;
    const float* q = token(tile.q, t);
    const float* k = token(tile.k, t);
    // The columns beside these are the next to be computed.
    const bool asks = t == 0 && stride > kRecurrenceColumns;
    Vector sum[kCount] = {};

    if (writes) {
      const float* v = token(tile.v, t) + first;
      const float* factor = token(tile.factor, t);
      Vector value[kCount], seen[kCount] = {};
      for (size_t n = 0; n < kCount; ++n) load(v + n * kWidth, value[n]);
      const float* a = rank_one ? token(tile.a, t) : nullptr;
      const float* b = rank_one ? token(tile.b, t) : nullptr;
      if (rank_one) {
        for (size_t i = 0; i < keys; ++i) {
          for (size_t n = 0; n < kCount; ++n) {
            Vector s;
            load(state + i * stride + n * kWidth, s);
            seen[n] += s * a[i];
          }
        }
      }
      if (delta) {
        Vector known[kCount] = {};
        for (size_t i = 0; i < keys; ++i) {
          for (size_t n = 0; n < kCount; ++n) {
            Vector s;
            load(state + i * stride + n * kWidth, s);
            known[n] += w[i * w_step] * s * k[i];
          }
        }
        for (size_t n = 0; n < kCount; ++n) value[n] = value[n] - known[n];
      }
      if (factor != nullptr) {
        for (size_t n = 0; n < kCount; ++n) value[n] = value[n] * *factor;
      }
      for (size_t i = 0; i < keys; ++i) {
        if (asks) ask_for_columns(state + i * stride + kRecurrenceColumns);
        for (size_t n = 0; n < kCount; ++n) {
          Vector s;
          load(state + i * stride + n * kWidth, s);
          if (read == Read::kBefore) sum[n] += s * q[i];
          s = w[i * w_step] * s;
          if (rank_one) s += b[i] * seen[n];
          s += k[i] * value[n];
          if (read == Read::kAfter) sum[n] += s * q[i];
          store(s, state + i * stride + n * kWidth);
        }
      }
    } else {
      for (size_t i = 0; i < keys; ++i) {
        for (size_t n = 0; n < kCount; ++n) {
          Vector s;
          load(state + i * stride + n * kWidth, s);
          sum[n] += s * q[i];
        }
      }
    }
    if (read == Read::kNone) continue;
    float* y = tile.y + t * tile.y_stride + first;
    const float* divisor = token(tile.divisor, t);
    for (size_t n = 0; n < kCount; ++n) {
      if (divisor != nullptr) sum[n] = sum[n] / *divisor;
      store(sum[n], y + n * kWidth);
    }
  }
}

inline Read read_of(const RecurrenceTile& tile) {
  if (tile.q.data == nullptr) return Read::kNone;
  return tile.read_before ? Read::kBefore : Read::kAfter;
}

/// What is left beside the 32s: seldom, so one copy asks at run time what the copies for 32 columns know.
[[gnu::noinline]] inline void run_narrow(const RecurrenceTile& tile, size_t c) {
  const Read read = read_of(tile);
  const bool rank_one = tile.a.data != nullptr;
  for (; c + 8 <= tile.columns; c += 8) run_columns<Eight, 1>(tile, c, read, rank_one);
  for (; c < tile.columns; ++c) run_columns<float, 1>(tile, c, read, rank_one);
}

template <Read kRead>
[[gnu::always_inline]] inline void run_tile(const RecurrenceTile& tile) {
  size_t c = 0;
  if (tile.a.data == nullptr) {
    for (; c + kRecurrenceColumns <= tile.columns; c += kRecurrenceColumns)
      run_columns<Columns, kSide>(tile, c, kRead, false);
  } else {
    for (; c + kRecurrenceColumns <= tile.columns; c += kRecurrenceColumns)
      run_columns<Columns, kSide>(tile, c, kRead, true);
  }
  if (c < tile.columns) run_narrow(tile, c);
}

[[gnu::always_inline]] inline void recurrence(const RecurrenceTile& tile) {
  switch (read_of(tile)) {
    case Read::kNone:
      return run_tile<Read::kNone>(tile);
    case Read::kBefore:
      return run_tile<Read::kBefore>(tile);
    case Read::kAfter:
      return run_tile<Read::kAfter>(tile);
  }
}

}  // namespace
}  // namespace oxbow

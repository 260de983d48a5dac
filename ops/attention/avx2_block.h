#pragma once

// Blocks of queries with AVX2. int8: keys are laid side by side, pairs of neighbouring elements of eight keys in a
// vector, and values by pairs of keys; then both are products of pairs of 16 bits, six queries by two vectors at a
// time, as in ops/linear/avx2.cc. MultiplyAdd::add adds such products to the sums of one query.

#include "ops/attention/avx2.h"
#include "ops/attention/block.h"

namespace oxbow {
namespace {

/// Elements of a head whose keys or values are laid out at a time, and queries of a tile of sums.
constexpr size_t kPart = 64;
constexpr size_t kTileQueries = 6;
static_assert(kBlockQueries % kTileQueries == 0);

/// Two bytes each of eight rows to eight columns of two bytes, in both halves.
[[gnu::always_inline]] inline void transpose_pairs(__m256i (&r)[8]) {
  __m256i t[8], u[8];
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (size_t i = 0; i < 2; ++i) {
#pragma GCC unroll 2
    for (size_t high = 0; high < 2; ++high) {
      u[4 * i + 2 * high] = _mm256_unpacklo_epi32(t[4 * i + high], t[4 * i + 2 + high]);
      u[4 * i + 2 * high + 1] = _mm256_unpackhi_epi32(t[4 * i + high], t[4 * i + 2 + high]);
    }
  }
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; ++i) {
    r[2 * i] = _mm256_unpacklo_epi64(u[i], u[i + 4]);
    r[2 * i + 1] = _mm256_unpackhi_epi64(u[i], u[i + 4]);
  }
}

inline void store_wide(__m128i codes, int32_t* to) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(to), _mm256_cvtepi8_epi16(codes));
}

/// Elements [0, width) of `count` keys: wide[pair of elements][key]. Behind the last key it comes again, up to a
/// multiple of 16.
[[gnu::noinline]] void lay_keys(const int8_t* rows, size_t stride, size_t count, size_t width,
                                int32_t* wide) {
  for (size_t j = 0; j < count; j += 16) {
    const auto row = [=](size_t i) { return rows + (j + i < count ? j + i : count - 1) * stride; };
    for (size_t d = 0; d < width; d += 16) {
      __m256i r[8];
#pragma GCC unroll 8
      for (size_t i = 0; i < 8; ++i) {
        r[i] = _mm256_set_m128i(load_16(row(i + 8) + d), load_16(row(i) + d));
      }
      transpose_pairs(r);
#pragma GCC unroll 8
      for (size_t i = 0; i < 8; ++i) {
        int32_t* to = wide + (d / 2 + i) * kAttentionTile + j;
        store_wide(_mm256_castsi256_si128(r[i]), to);
        store_wide(_mm256_extracti128_si256(r[i], 1), to + 8);
      }
    }
  }
}

/// Elements [0, width) of `count` values: wide[pair of keys][element], kPart to a pair. A last key alone meets zeros.
[[gnu::noinline]] void lay_values(const int8_t* rows, size_t stride, size_t count, size_t width,
                                  int32_t* wide) {
  for (size_t j = 0; j < count; j += 2, rows += 2 * stride, wide += kPart) {
    for (size_t d = 0; d < width; d += 16) {
      const __m128i v0 = load_16(rows + d);
      const __m128i v1 = j + 1 < count ? load_16(rows + stride + d) : _mm_setzero_si128();
      store_wide(_mm_unpacklo_epi8(v0, v1), wide + d);
      store_wide(_mm_unpackhi_epi8(v0, v1), wide + d + 8);
    }
  }
}

inline int32_t pair_at(const int16_t* x, size_t pair) {
  int32_t two;
  __builtin_memcpy(&two, x + 2 * pair, sizeof(two));
  return two;
}

/// sums[query][16] += over `pairs`: x[query][pair] . wide[pair][16].
template <typename MultiplyAdd, size_t kQueries>
[[gnu::noinline]] void add_pairs(const int16_t* const* x, const int32_t* wide, size_t stride,
                                 size_t pairs, int32_t* const* sums) {
  __m256i acc[kQueries][2];
#pragma GCC unroll 6
  for (size_t q = 0; q < kQueries; ++q) {
    acc[q][0] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums[q]));
    acc[q][1] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums[q] + 8));
  }
  for (size_t p = 0; p < pairs; ++p, wide += stride) {
    const __m256i wide0 = _mm256_load_si256(reinterpret_cast<const __m256i*>(wide));
    const __m256i wide1 = _mm256_load_si256(reinterpret_cast<const __m256i*>(wide + 8));
#pragma GCC unroll 6
    for (size_t q = 0; q < kQueries; ++q) {
      MultiplyAdd::add(wide0, wide1, pair_at(x[q], p), acc[q]);
    }
  }
#pragma GCC unroll 6
  for (size_t q = 0; q < kQueries; ++q) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums[q]), acc[q][0]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums[q] + 8), acc[q][1]);
  }
}

template <typename MultiplyAdd>
constexpr decltype(&add_pairs<MultiplyAdd, 1>) kAddPairs[kTileQueries] = {
    add_pairs<MultiplyAdd, 1>, add_pairs<MultiplyAdd, 2>, add_pairs<MultiplyAdd, 3>,
    add_pairs<MultiplyAdd, 4>, add_pairs<MultiplyAdd, 5>, add_pairs<MultiplyAdd, 6>};

/// combine_sums of four registers, in their order.
inline void store_sums(__m256 s0, __m256 s1, __m256 s2, __m256 s3, float* to) {
  const __m256 even =
      _mm256_add_ps(_mm256_permute2f128_ps(s0, s2, 0x20), _mm256_permute2f128_ps(s0, s2, 0x31));
  const __m256 odd =
      _mm256_add_ps(_mm256_permute2f128_ps(s1, s3, 0x20), _mm256_permute2f128_ps(s1, s3, 0x31));
  const __m256 quarters =
      _mm256_add_ps(_mm256_unpacklo_ps(even, odd), _mm256_unpackhi_ps(even, odd));
  const __m256 all = _mm256_add_ps(quarters, _mm256_permute_ps(quarters, _MM_SHUFFLE(1, 0, 3, 2)));
  _mm_storel_pi(reinterpret_cast<__m64*>(to), _mm256_castps256_ps128(all));
  _mm_storel_pi(reinterpret_cast<__m64*>(to + 2), _mm256_extractf128_ps(all, 1));
}

/// Four keys with kQueries queries.
template <size_t kQueries>
[[gnu::noinline]] void dots_f32_block(const float* const* x, const float* rows, size_t stride,
                                      size_t head_width, float* dots) {
  __m256 acc[kQueries][4];
#pragma GCC unroll 4
  for (size_t q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) acc[q][j] = _mm256_setzero_ps();
  }
  for (size_t d = 0; d < head_width; d += kLanes) {
    __m256 part[kQueries];
#pragma GCC unroll 4
    for (size_t q = 0; q < kQueries; ++q) part[q] = _mm256_loadu_ps(x[q] + d);
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      const __m256 key = _mm256_loadu_ps(rows + j * stride + d);
#pragma GCC unroll 4
      for (size_t q = 0; q < kQueries; ++q) {
        acc[q][j] = _mm256_add_ps(acc[q][j], _mm256_mul_ps(part[q], key));
      }
    }
  }
#pragma GCC unroll 4
  for (size_t q = 0; q < kQueries; ++q) {
    store_sums(acc[q][0], acc[q][1], acc[q][2], acc[q][3], dots + q * kBlockStride);
  }
}

/// Sixteen elements of kQueries queries from `at` on, the keys one after the other.
template <size_t kQueries>
[[gnu::noinline]] void accumulate_f32_block(const float* weights, const float* values, size_t count,
                                            float* const* acc, size_t at) {
  __m256 sums[kQueries][2];
#pragma GCC unroll 6
  for (size_t q = 0; q < kQueries; ++q) {
    sums[q][0] = _mm256_loadu_ps(acc[q] + at);
    sums[q][1] = _mm256_loadu_ps(acc[q] + at + 8);
  }
  for (size_t j = 0; j < count; ++j, values += 16) {
    const __m256 value0 = _mm256_load_ps(values), value1 = _mm256_load_ps(values + 8);
#pragma GCC unroll 6
    for (size_t q = 0; q < kQueries; ++q) {
      const __m256 weight = _mm256_broadcast_ss(weights + q * kBlockStride + j);
      sums[q][0] = _mm256_add_ps(sums[q][0], _mm256_mul_ps(weight, value0));
      sums[q][1] = _mm256_add_ps(sums[q][1], _mm256_mul_ps(weight, value1));
    }
  }
#pragma GCC unroll 6
  for (size_t q = 0; q < kQueries; ++q) {
    _mm256_storeu_ps(acc[q] + at, sums[q][0]);
    _mm256_storeu_ps(acc[q] + at + 8, sums[q][1]);
  }
}

constexpr decltype(&accumulate_f32_block<1>) kAccumulateF32[kTileQueries] = {
    accumulate_f32_block<1>, accumulate_f32_block<2>, accumulate_f32_block<3>,
    accumulate_f32_block<4>, accumulate_f32_block<5>, accumulate_f32_block<6>};

/// exp_f32 in each lane, of numbers that are not positive: 2^n is then one factor, and what is too small need not be
/// bounded, since it becomes 0 in the end.
[[gnu::always_inline]] inline __m256 exp_lanes(__m256 x) {
  const __m256 magic = _mm256_set1_ps(kRoundMagic);
  const __m256 shifted =
      _mm256_add_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504088896341f)), magic);
  const __m256 n = _mm256_sub_ps(shifted, magic);
  const __m256 r = _mm256_sub_ps(_mm256_sub_ps(x, _mm256_mul_ps(n, _mm256_set1_ps(0.693359375f))),
                                 _mm256_mul_ps(n, _mm256_set1_ps(-2.12194440e-4f)));
  constexpr float kFactors[] = {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                                1.6666665459e-1f, 5.0000001201e-1f};
  __m256 p = _mm256_set1_ps(1.9875691500e-4f);
#pragma GCC unroll 5
  for (float factor : kFactors) p = _mm256_add_ps(_mm256_mul_ps(p, r), _mm256_set1_ps(factor));
  const __m256 e =
      _mm256_add_ps(_mm256_add_ps(_mm256_mul_ps(p, _mm256_mul_ps(r, r)), r), _mm256_set1_ps(1.0f));
  const __m256i exponent =
      _mm256_sub_epi32(_mm256_castps_si256(shifted), _mm256_castps_si256(magic));
  const __m256i power = _mm256_slli_epi32(_mm256_add_epi32(exponent, _mm256_set1_epi32(127)), 23);
  return _mm256_andnot_ps(_mm256_cmp_ps(x, _mm256_set1_ps(-87.33654f), _CMP_LT_OQ),
                          _mm256_mul_ps(e, _mm256_castsi256_ps(power)));
}

/// The largest lane, none of which is NaN.
inline float max_lane(__m256 x) {
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

/// Whole tiles; operands of max and min in the order of math.h, which decides about NaN.
struct Avx2Rows : Avx2 {
  static float scale_and_max(size_t count, float scale, float floor, float* row) {
    if (count != kAttentionTile) return RowLoops::scale_and_max(count, scale, floor, row);
    __m256 largest = _mm256_set1_ps(floor);
#pragma GCC unroll 8
    for (size_t j = 0; j < kAttentionTile; j += 8) {
      const __m256 x = _mm256_mul_ps(_mm256_loadu_ps(row + j), _mm256_set1_ps(scale));
      _mm256_storeu_ps(row + j, x);
      largest = _mm256_max_ps(x, largest);
    }
    return max_lane(largest);
  }

  static float exp_and_sum(size_t count, float largest, float* row) {
    if (count != kAttentionTile) return RowLoops::exp_and_sum(count, largest, row);
    __m256 sum = _mm256_setzero_ps();
#pragma GCC unroll 2
    for (size_t j = 0; j < kAttentionTile; j += 8) {
      const __m256 x = exp_lanes(_mm256_sub_ps(_mm256_loadu_ps(row + j), _mm256_set1_ps(largest)));
      _mm256_storeu_ps(row + j, x);
      sum = _mm256_add_ps(sum, x);
    }
    alignas(32) float lanes[kLanes];
    _mm256_store_ps(lanes, sum);
    return combine_sums(lanes);
  }

  static float multiply_and_absmax(size_t count, const float* factors, float* row) {
    if (count != kAttentionTile) return RowLoops::multiply_and_absmax(count, factors, row);
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 largest = _mm256_setzero_ps();
#pragma GCC unroll 8
    for (size_t j = 0; j < kAttentionTile; j += 8) {
      const __m256 x = _mm256_mul_ps(_mm256_loadu_ps(row + j), _mm256_loadu_ps(factors + j));
      _mm256_storeu_ps(row + j, x);
      largest = _mm256_max_ps(_mm256_andnot_ps(sign, x), largest);
    }
    return max_lane(largest);
  }

  static void quantize(size_t count, const float* row, float inverse, int16_t* codes) {
    if (count != kAttentionTile) return RowLoops::quantize(count, row, inverse, codes);
    const auto code = [=](size_t j) {
      __m256 x = _mm256_mul_ps(_mm256_loadu_ps(row + j), _mm256_set1_ps(inverse));
      x = _mm256_max_ps(_mm256_set1_ps(-kWeightMax), _mm256_min_ps(_mm256_set1_ps(kWeightMax), x));
      x = _mm256_and_ps(x, _mm256_cmp_ps(x, x, _CMP_EQ_OQ));
      const __m256 magic = _mm256_set1_ps(kRoundMagic);
      return _mm256_sub_epi32(_mm256_castps_si256(_mm256_add_ps(x, magic)),
                              _mm256_castps_si256(magic));
    };
#pragma GCC unroll 4
    for (size_t j = 0; j < kAttentionTile; j += 16) {
      // The halves of a register are packed each by themselves.
      const __m256i both = _mm256_packs_epi32(code(j), code(j + 8));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + j),
                          _mm256_permute4x64_epi64(both, _MM_SHUFFLE(3, 1, 2, 0)));
    }
  }
};

/// Widths that are no multiple of a vector go one query at a time. `Rows` has the loops over a row of scores.
template <typename MultiplyAdd, typename Rows = Avx2Rows>
struct Avx2Blocks : Rows {
  static void dots_block(const float* const* x, size_t queries, const float* rows, size_t stride,
                         size_t count, size_t head_width, float* dots) {
    const size_t fours = head_width % kLanes == 0 ? count / 4 * 4 : 0;
    // A few keys for all queries: all keys of a tile for a few would meet in the same lines of the cache.
    for (size_t j = 0; j < fours; j += 4) {
      for (size_t q = 0; q < queries; q += 3) {
        const auto tile = queries - q == 1   ? dots_f32_block<1>
                          : queries - q == 2 ? dots_f32_block<2>
                                             : dots_f32_block<3>;
        tile(x + q, rows + j * stride, stride, head_width, dots + q * kBlockStride + j);
      }
    }
    if (fours == count) return;
    for (size_t q = 0; q < queries; ++q) {
      dots_one(x[q], rows + fours * stride, stride, count - fours, head_width,
               dots + q * kBlockStride + fours);
    }
  }

  static void accumulate_block(const float* weights, size_t queries, const float* rows,
                               size_t stride, size_t count, size_t width, float* const* acc) {
    const size_t whole = width / 16 * 16;
    // Side by side: where they lie they may meet in the same lines of the cache.
    alignas(64) float values[kAttentionTile * 16];
    for (size_t d = 0; d < whole; d += 16) {
      for (size_t j = 0; j < count; ++j) {
        const float* row = rows + j * stride + d;
        _mm256_store_ps(values + 16 * j, _mm256_loadu_ps(row));
        _mm256_store_ps(values + 16 * j + 8, _mm256_loadu_ps(row + 8));
      }
      for (size_t q = 0; q < queries; q += kTileQueries) {
        const size_t height = queries - q < kTileQueries ? queries - q : kTileQueries;
        kAccumulateF32[height - 1](weights + q * kBlockStride, values, count, acc + q, d);
      }
    }
    if (whole == width) return;
    for (size_t q = 0; q < queries; ++q) {
      Avx2::accumulate(weights + q * kBlockStride, rows + whole, stride, count, width - whole,
                       acc[q] + whole);
    }
  }

  static void dots_block(const int16_t* const* x, size_t queries, const int8_t* rows, size_t stride,
                         size_t count, size_t head_width, int32_t* dots) {
    if (head_width % 16 != 0) {
      for (size_t q = 0; q < queries; ++q) {
        dots_one(x[q], rows, stride, count, head_width, dots + q * kBlockStride);
      }
      return;
    }
    for (size_t q = 0; q < queries; ++q) {
      for (size_t j = 0; j < count; j += 16) {
        for (size_t i = 0; i < 16; ++i) dots[q * kBlockStride + j + i] = 0;
      }
    }
    alignas(64) int32_t wide[kPart / 2 * kAttentionTile];
    for (size_t d = 0; d < head_width; d += kPart) {
      const size_t part = head_width - d < kPart ? head_width - d : kPart;
      lay_keys(rows + d, stride, count, part, wide);
      const int16_t* codes[kBlockQueries];
      int32_t* sums[kBlockQueries];
      for (size_t q = 0; q < queries; ++q) codes[q] = x[q] + d;
      for (size_t j = 0; j < count; j += 16) {
        for (size_t q = 0; q < queries; ++q) sums[q] = dots + q * kBlockStride + j;
        add_tiles(codes, queries, wide + j, kAttentionTile, part / 2, sums);
      }
    }
  }

  static void accumulate_block(const int16_t* weights, size_t queries, const int8_t* rows,
                               size_t stride, size_t count, size_t width, int32_t* const* acc) {
    alignas(64) int32_t wide[kAttentionTile / 2 * kPart];
    const int16_t* codes[kBlockQueries];
    int32_t* sums[kBlockQueries];
    for (size_t q = 0; q < queries; ++q) codes[q] = weights + q * kBlockStride;
    const size_t whole = width / 16 * 16, pairs = (count + 1) / 2;
    for (size_t first = 0; first < whole; first += kPart) {
      const size_t part = whole - first < kPart ? whole - first : kPart;
      lay_values(rows + first, stride, count, part, wide);
      for (size_t d = 0; d < part; d += 16) {
        for (size_t q = 0; q < queries; ++q) sums[q] = acc[q] + first + d;
        add_tiles(codes, queries, wide + d, kPart, pairs, sums);
      }
    }
    if (whole == width) return;
    for (size_t q = 0; q < queries; ++q) {
      Avx2::accumulate(codes[q], rows + whole, stride, count, width - whole, acc[q] + whole);
    }
  }

 private:
  template <typename X, typename Row, typename Dot>
  static void dots_one(const X* x, const Row* rows, size_t stride, size_t count, size_t head_width,
                       Dot* dots_of_query) {
    Avx2::dots(x, rows, static_cast<ptrdiff_t>(stride), count, head_width, dots_of_query);
  }

  static void add_tiles(const int16_t* const* x, size_t queries, const int32_t* wide, size_t stride,
                        size_t pairs, int32_t* const* sums) {
    for (size_t q = 0; q < queries; q += kTileQueries) {
      const size_t height = queries - q < kTileQueries ? queries - q : kTileQueries;
      kAddPairs<MultiplyAdd>[height - 1](x + q, wide, stride, pairs, sums + q);
    }
  }
};

}  // namespace
}  // namespace oxbow

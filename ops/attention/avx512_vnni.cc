// AVX512-VNNI: as AVX2, but blocks of queries multiply and add in registers of 512 bits, and rows of scores are taken
// sixteen at a time. What is added up still goes to eight sums, in their order. Products of int8 queries and keys are those
// of ops/linear/vnni.h: keys k become unsigned as k + 128, and each sum starts at -128 times the sum of its query.

#include "ops/attention/avx2_block.h"
#include "ops/common/avx512.h"

namespace oxbow {
namespace {

/// Of what is left of widths, in registers of 256 bits.
struct MultiplyAdd {
  [[gnu::always_inline]] static inline void add(__m256i weight0, __m256i weight1, int32_t pair,
                                                __m256i (&acc)[2]) {
    const __m256i columns = _mm256_set1_epi32(pair);
    acc[0] = _mm256_dpwssd_epi32(acc[0], weight0, columns);
    acc[1] = _mm256_dpwssd_epi32(acc[1], weight1, columns);
  }
};

constexpr size_t kWideQueries = 12;
static_assert(kBlockQueries % kWideQueries == 0);
/// Heads as wide, and no wider, have their queries laid out.
constexpr size_t kWidestHead = 256;

/// exp_lanes of avx2_block.h.
[[gnu::always_inline]] inline __m512 exp_16(__m512 x) {
  const __m512 magic = _mm512_set1_ps(kRoundMagic);
  const __m512 shifted =
      _mm512_add_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504088896341f)), magic);
  const __m512 n = _mm512_sub_ps(shifted, magic);
  const __m512 r = _mm512_sub_ps(_mm512_sub_ps(x, _mm512_mul_ps(n, _mm512_set1_ps(0.693359375f))),
                                 _mm512_mul_ps(n, _mm512_set1_ps(-2.12194440e-4f)));
  constexpr float kFactors[] = {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                                1.6666665459e-1f, 5.0000001201e-1f};
  __m512 p = _mm512_set1_ps(1.9875691500e-4f);
#pragma GCC unroll 5
  for (float factor : kFactors) p = _mm512_add_ps(_mm512_mul_ps(p, r), _mm512_set1_ps(factor));
  const __m512 e =
      _mm512_add_ps(_mm512_add_ps(_mm512_mul_ps(p, _mm512_mul_ps(r, r)), r), _mm512_set1_ps(1.0f));
  const __mmask16 counts = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-87.33654f), _CMP_NLT_UQ);
  return _mm512_maskz_scalef_ps(counts, e, n);
}

struct Avx512Rows : Avx2Rows {
  static float scale_and_max(size_t count, float scale, float floor, float* row) {
    if (count != kAttentionTile) return RowLoops::scale_and_max(count, scale, floor, row);
    __m512 largest = _mm512_set1_ps(floor);
#pragma GCC unroll 4
    for (size_t j = 0; j < kAttentionTile; j += 16) {
      const __m512 x = _mm512_mul_ps(_mm512_loadu_ps(row + j), _mm512_set1_ps(scale));
      _mm512_storeu_ps(row + j, x);
      largest = _mm512_max_ps(x, largest);
    }
    return max_lane(_mm256_max_ps(low_half(largest), high_half(largest)));
  }

  static float exp_and_sum(size_t count, float largest, float* row) {
    if (count != kAttentionTile) return RowLoops::exp_and_sum(count, largest, row);
    __m256 sum = _mm256_setzero_ps();
#pragma GCC unroll 4
    for (size_t j = 0; j < kAttentionTile; j += 16) {
      const __m512 x = exp_16(_mm512_sub_ps(_mm512_loadu_ps(row + j), _mm512_set1_ps(largest)));
      _mm512_storeu_ps(row + j, x);
      sum = _mm256_add_ps(_mm256_add_ps(sum, low_half(x)), high_half(x));
    }
    alignas(32) float lanes[kLanes];
    _mm256_store_ps(lanes, sum);
    return combine_sums(lanes);
  }

  static float multiply_and_absmax(size_t count, const float* factors, float* row) {
    if (count != kAttentionTile) return RowLoops::multiply_and_absmax(count, factors, row);
    __m512 largest = _mm512_setzero_ps();
#pragma GCC unroll 4
    for (size_t j = 0; j < kAttentionTile; j += 16) {
      const __m512 x = _mm512_mul_ps(_mm512_loadu_ps(row + j), _mm512_loadu_ps(factors + j));
      _mm512_storeu_ps(row + j, x);
      largest = _mm512_max_ps(_mm512_abs_ps(x), largest);
    }
    return max_lane(_mm256_max_ps(low_half(largest), high_half(largest)));
  }

  static void quantize(size_t count, const float* row, float inverse, int16_t* codes) {
    if (count != kAttentionTile) return RowLoops::quantize(count, row, inverse, codes);
    const __m512 most = _mm512_set1_ps(kWeightMax), magic = _mm512_set1_ps(kRoundMagic);
#pragma GCC unroll 4
    for (size_t j = 0; j < kAttentionTile; j += 16) {
      __m512 x = _mm512_mul_ps(_mm512_loadu_ps(row + j), _mm512_set1_ps(inverse));
      x = _mm512_max_ps(_mm512_set1_ps(-kWeightMax), _mm512_min_ps(most, x));
      x = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, x, _CMP_EQ_OQ), x);
      const __m512i code = _mm512_sub_epi32(_mm512_castps_si512(_mm512_add_ps(x, magic)),
                                            _mm512_castps_si512(magic));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + j), _mm512_cvtepi32_epi16(code));
    }
  }

 private:
  static __m256 low_half(__m512 x) { return _mm512_castps512_ps256(x); }
  static __m256 high_half(__m512 x) {
    return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1));
  }
};

/// sums[query][32] += over `groups` of four bytes: x[query][group] . wide[group][32], by Products.
template <typename Products, size_t kQueries>
[[gnu::noinline]] void add_wide(const std::byte* const* x, const int32_t* wide, size_t stride,
                                size_t groups, int32_t* const* sums) {
  __m512i acc[kQueries][2];
#pragma GCC unroll 12
  for (size_t q = 0; q < kQueries; ++q) {
    acc[q][0] = _mm512_loadu_si512(sums[q]);
    acc[q][1] = _mm512_loadu_si512(sums[q] + 16);
  }
  for (size_t g = 0; g < groups; ++g, wide += stride) {
    const __m512i wide0 = _mm512_load_si512(wide), wide1 = _mm512_load_si512(wide + 16);
#pragma GCC unroll 12
    for (size_t q = 0; q < kQueries; ++q) {
      int32_t group;
      __builtin_memcpy(&group, x[q] + 4 * g, sizeof(group));
      const __m512i columns = _mm512_set1_epi32(group);
      acc[q][0] = Products::add(acc[q][0], wide0, columns);
      acc[q][1] = Products::add(acc[q][1], wide1, columns);
    }
  }
#pragma GCC unroll 12
  for (size_t q = 0; q < kQueries; ++q) {
    _mm512_storeu_si512(sums[q], acc[q][0]);
    _mm512_storeu_si512(sums[q] + 16, acc[q][1]);
  }
}

/// Pairs of int16.
struct PairProducts {
  static __m512i add(__m512i sums, __m512i wide, __m512i columns) {
    return _mm512_dpwssd_epi32(sums, wide, columns);
  }
};

/// Fours of bytes, the keys' unsigned.
struct FourProducts {
  static __m512i add(__m512i sums, __m512i wide, __m512i columns) {
    return _mm512_dpbusd_epi32(sums, wide, columns);
  }
};

/// function.operator()<count>() for 1 to kWideQueries.
template <size_t kCount = kWideQueries, typename Function>
[[gnu::always_inline]] inline void by_queries(size_t count, const Function& function) {
  if constexpr (kCount == 1) {
    function.template operator()<1>();
  } else {
    if (count == kCount) return function.template operator()<kCount>();
    by_queries<kCount - 1>(count, function);
  }
}

/// Elements [0, width) of `count` keys: fours[four elements][key]. Behind the last key it comes again, up to a multiple
/// of 32.
[[gnu::noinline]] void lay_keys_in_fours(const int8_t* rows, size_t stride, size_t count,
                                         size_t width, int32_t* fours) {
  const __m512i high = _mm512_set1_epi8(-128);
  for (size_t j = 0; j < round_up(count, kBlockPadding); j += 16) {
    const auto row = [=](size_t i) { return rows + (j + i < count ? j + i : count - 1) * stride; };
    for (size_t d = 0; d < width; d += 16) {
      __m512i r[4];
#pragma GCC unroll 4
      for (size_t i = 0; i < 4; ++i) {
        r[i] = _mm512_castsi128_si512(load_16(row(i) + d));
        r[i] = _mm512_inserti32x4(r[i], load_16(row(i + 4) + d), 1);
        r[i] = _mm512_inserti32x4(r[i], load_16(row(i + 8) + d), 2);
        r[i] = _mm512_inserti32x4(r[i], load_16(row(i + 12) + d), 3);
        r[i] = _mm512_xor_si512(r[i], high);
      }
      const __m512i a = _mm512_unpacklo_epi32(r[0], r[1]), b = _mm512_unpackhi_epi32(r[0], r[1]);
      const __m512i c = _mm512_unpacklo_epi32(r[2], r[3]), e = _mm512_unpackhi_epi32(r[2], r[3]);
      int32_t* to = fours + d / 4 * kAttentionTile + j;
      _mm512_store_si512(to, _mm512_unpacklo_epi64(a, c));
      _mm512_store_si512(to + kAttentionTile, _mm512_unpackhi_epi64(a, c));
      _mm512_store_si512(to + 2 * kAttentionTile, _mm512_unpacklo_epi64(b, e));
      _mm512_store_si512(to + 3 * kAttentionTile, _mm512_unpackhi_epi64(b, e));
    }
  }
}

/// Lanes of pairs of queries with four keys.
struct PairSums {
  __m512 lanes[kWideQueries / 2][4];
};

/// Four keys with pairs of queries: x[group of eight elements][pair]. With more than this one loop GCC keeps sums in memory.
template <size_t kPairs>
[[gnu::noinline]] void dots_of_pairs(const __m512* x, const float* rows, size_t stride,
                                     size_t head_width, PairSums* sums) {
  __m512 acc[kPairs][4];
#pragma GCC unroll 6
  for (size_t p = 0; p < kPairs; ++p) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) acc[p][j] = _mm512_setzero_ps();
  }
  for (size_t d = 0; d < head_width; d += kLanes, x += kPairs) {
    __m512 keys[4];
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) keys[j] = twice(_mm256_loadu_ps(rows + j * stride + d));
#pragma GCC unroll 6
    for (size_t p = 0; p < kPairs; ++p) add_four_products(x[p], keys, acc[p]);
  }
#pragma GCC unroll 6
  for (size_t p = 0; p < kPairs; ++p) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) sums->lanes[p][j] = acc[p][j];
  }
}

/// Rows of dots are kBlockStride apart.
void store_dots(const PairSums& sums, size_t queries, float* dots) {
  for (size_t q = 0; q < queries; q += 4) {
    for_four_rows(
        combine_four_rows(sums.lanes[q / 2], sums.lanes[q / 2 + 1]),
        [&](size_t i, __m128 of_query) __attribute__((always_inline)) {
          if (q + i < queries) _mm_storeu_ps(dots + (q + i) * kBlockStride, of_query);
        });
  }
}

/// 32 elements of kQueries queries from `at` on, the keys one after the other.
template <size_t kQueries>
[[gnu::noinline]] void accumulate_wide(const float* weights, const float* values, size_t count,
                                       float* const* acc, size_t at) {
  __m512 sums[kQueries][2];
#pragma GCC unroll 12
  for (size_t q = 0; q < kQueries; ++q) {
    sums[q][0] = _mm512_loadu_ps(acc[q] + at);
    sums[q][1] = _mm512_loadu_ps(acc[q] + at + 16);
  }
  for (size_t j = 0; j < count; ++j, values += 32) {
    const __m512 value0 = _mm512_load_ps(values), value1 = _mm512_load_ps(values + 16);
#pragma GCC unroll 12
    for (size_t q = 0; q < kQueries; ++q) {
      const __m512 weight = _mm512_set1_ps(weights[q * kBlockStride + j]);
      sums[q][0] = _mm512_add_ps(sums[q][0], _mm512_mul_ps(weight, value0));
      sums[q][1] = _mm512_add_ps(sums[q][1], _mm512_mul_ps(weight, value1));
    }
  }
#pragma GCC unroll 12
  for (size_t q = 0; q < kQueries; ++q) {
    _mm512_storeu_ps(acc[q] + at, sums[q][0]);
    _mm512_storeu_ps(acc[q] + at + 16, sums[q][1]);
  }
}

struct Avx512Blocks : Avx2Blocks<MultiplyAdd, Avx512Rows> {
  using Narrow = Avx2Blocks<MultiplyAdd, Avx512Rows>;

  static void dots_block(const float* const* x, size_t queries, const float* rows, size_t stride,
                         size_t count, size_t head_width, float* dots) {
    const size_t fours = count / 4 * 4, groups = head_width / kLanes;
    if (head_width % kLanes != 0 || head_width > kWidestHead) {
      return Narrow::dots_block(x, queries, rows, stride, count, head_width, dots);
    }
    __m512 pairs[kBlockQueries / 2 * kWidestHead / kLanes];
    for_tiles(queries, [&](size_t first, size_t height) {
      const size_t width = (height + 1) / 2;
      for (size_t p = 0; p < width; ++p) {
        const float* a = x[first + 2 * p];
        const float* b = 2 * p + 1 < height ? x[first + 2 * p + 1] : a;
        __m512* to = pairs + first / 2 * groups + p;
        for (size_t d = 0; d < head_width; d += kLanes, to += width) {
          *to = side_by_side(_mm256_loadu_ps(a + d), _mm256_loadu_ps(b + d));
        }
      }
    });
    PairSums sums = {};
    for (size_t j = 0; j < fours; j += 4) {
      for_tiles(queries, [&](size_t first, size_t height) {
        static constexpr decltype(&dots_of_pairs<1>) kTiles[kWideQueries / 2] = {
            dots_of_pairs<1>, dots_of_pairs<2>, dots_of_pairs<3>,
            dots_of_pairs<4>, dots_of_pairs<5>, dots_of_pairs<6>};
        kTiles[(height + 1) / 2 - 1](pairs + first / 2 * groups, rows + j * stride, stride,
                                     head_width, &sums);
        store_dots(sums, height, dots + first * kBlockStride + j);
      });
    }
    if (fours == count) return;
    Narrow::dots_block(x, queries, rows + fours * stride, stride, count - fours, head_width,
                       dots + fours);
  }

  static void accumulate_block(const float* weights, size_t queries, const float* rows,
                               size_t stride, size_t count, size_t width, float* const* acc) {
    const size_t whole = width / 32 * 32;
    alignas(64) float values[kAttentionTile * 32];
    for (size_t d = 0; d < whole; d += 32) {
      for (size_t j = 0; j < count; ++j) {
        const float* row = rows + j * stride + d;
        _mm512_store_ps(values + 32 * j, _mm512_loadu_ps(row));
        _mm512_store_ps(values + 32 * j + 16, _mm512_loadu_ps(row + 16));
      }
      for_tiles(queries, [&](size_t first, size_t height) {
        by_queries(height, [&]<size_t kQueries>() {
          accumulate_wide<kQueries>(weights + first * kBlockStride, values, count, acc + first, d);
        });
      });
    }
    if (whole == width) return;
    float* rest[kBlockQueries];
    for (size_t q = 0; q < queries; ++q) rest[q] = acc[q] + whole;
    Narrow::accumulate_block(weights, queries, rows + whole, stride, count, width - whole, rest);
  }

  static void dots_block(const int16_t* const* x, size_t queries, const int8_t* rows, size_t stride,
                         size_t count, size_t head_width, int32_t* dots) {
    if (head_width % 16 != 0 || head_width > kWidestHead) {
      return Narrow::dots_block(x, queries, rows, stride, count, head_width, dots);
    }
    const size_t padded = round_up(count, kBlockPadding);
    alignas(64) int8_t codes[kBlockQueries][kWidestHead];
    alignas(64) int32_t fours[kWidestHead / 4 * kAttentionTile];
    const std::byte* of_query[kBlockQueries];
    for (size_t q = 0; q < queries; ++q) {
      __m512i sum = _mm512_setzero_si512();
      for (size_t d = 0; d < head_width; d += 16) {
        const __m256i wide = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x[q] + d));
        sum = _mm512_add_epi32(sum, _mm512_cvtepi16_epi32(wide));
        _mm_store_si128(reinterpret_cast<__m128i*>(codes[q] + d), _mm256_cvtepi16_epi8(wide));
      }
      const __m512i start = _mm512_set1_epi32(-128 * _mm512_reduce_add_epi32(sum));
      for (size_t j = 0; j < padded; j += 16) {
        _mm512_storeu_si512(dots + q * kBlockStride + j, start);
      }
      of_query[q] = reinterpret_cast<const std::byte*>(codes[q]);
    }
    lay_keys_in_fours(rows, stride, count, head_width, fours);
    for (size_t j = 0; j < padded; j += 32) {
      add_tiles<FourProducts>(of_query, queries, fours + j, kAttentionTile, head_width / 4,
                              [=](size_t q) { return dots + q * kBlockStride + j; });
    }
  }

  static void accumulate_block(const int16_t* weights, size_t queries, const int8_t* rows,
                               size_t stride, size_t count, size_t width, int32_t* const* acc) {
    alignas(64) int32_t wide[kAttentionTile / 2 * kPart];
    const std::byte* pairs[kBlockQueries];
    int32_t* rest[kBlockQueries];
    const size_t whole = width / 32 * 32;
    for (size_t q = 0; q < queries; ++q) {
      pairs[q] = reinterpret_cast<const std::byte*>(weights + q * kBlockStride);
      rest[q] = acc[q] + whole;
    }
    for (size_t first = 0; first < whole; first += kPart) {
      const size_t part = whole - first < kPart ? whole - first : kPart;
      lay_values(rows + first, stride, count, part, wide);
      for (size_t d = 0; d < part; d += 32) {
        add_tiles<PairProducts>(pairs, queries, wide + d, kPart, (count + 1) / 2,
                                [=](size_t q) { return acc[q] + first + d; });
      }
    }
    if (whole == width) return;
    Narrow::accumulate_block(weights, queries, rows + whole, stride, count, width - whole, rest);
  }

 private:
  template <typename Visit>
  static void for_tiles(size_t queries, const Visit& visit) {
    for (size_t q = 0; q < queries; q += kWideQueries) {
      visit(q, queries - q < kWideQueries ? queries - q : kWideQueries);
    }
  }

  template <typename Products, typename SumsOf>
  static void add_tiles(const std::byte* const* x, size_t queries, const int32_t* wide,
                        size_t stride, size_t groups, const SumsOf& sums_of) {
    int32_t* sums[kBlockQueries];
    for (size_t q = 0; q < queries; ++q) sums[q] = sums_of(q);
    for_tiles(queries, [&](size_t first, size_t height) {
      by_queries(height, [&]<size_t kQueries>() {
        add_wide<Products, kQueries>(x + first, wide, stride, groups, sums + first);
      });
    });
  }
};

}  // namespace

const AttentionKernel<float> attention_f32_f32_f32_avx512_vnni =
    with_blocks(FloatAttention<Avx2>::kKernel, float_block<Avx512Blocks>);
const AttentionKernel<int8_t> attention_f32_i8_f32_avx512_vnni =
    with_blocks(Int8Attention<Avx2>::kKernel, int8_block<Avx512Blocks>);

}  // namespace oxbow

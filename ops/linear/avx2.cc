// AVX2: tiles of rows by blocks of eight channels, with all sums of a tile in registers.

#include <immintrin.h>

#include "ops/linear/linear.h"
#include "runtime/base/math.h"
#include "runtime/base/tensor.h"

namespace oxbow {
namespace {

constexpr size_t kBlock = kBlockRows * kBlockColumns;

size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

// int8 . int8, exact.
//
// A block holds eight channels by four columns: as 16-bit words, channel c is words 2c and 2c + 1,
// with columns 0 and 2 in the low bytes and 1 and 3 in the high bytes. A shift by eight, or a mask,
// leaves the even or odd columns as words of 256 times the code. pmaddwd with the same two columns
// of x in every pair then gives eight channels in eight lanes, in order. The factor 256 is shifted
// out before sums can overflow: a group of four columns adds at most 2^8 * 4 * 2^14 = 2^24, so 127
// groups fit.
//
// x is spread beforehand into two arrays of pairs, even columns and odd columns as words.

constexpr size_t kTileRows = 4;
constexpr size_t kTileBlocks = 8;
/// Groups of four columns spread at a time, and summed at a time.
constexpr size_t kSpreadGroups = 256;
constexpr size_t kSumGroups = 64;
static_assert(kSumGroups <= 127 && kSpreadGroups % kSumGroups == 0);

/// A little longer than needed, so that the arrays of a tile do not compete for the same cache lines.
struct SpreadRow {
  alignas(32) int32_t even[kSpreadGroups + 16];
  alignas(32) int32_t odd[kSpreadGroups + 16];
};

/// `columns` is a multiple of 16, at most 4 * kSpreadGroups.
void spread(const int8_t* x, size_t columns, SpreadRow* row) {
  size_t i = 0;
  for (; i + 32 <= columns; i += 32) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8);
    _mm256_store_si256(reinterpret_cast<__m256i*>(row->even + i / 4), even);
    _mm256_store_si256(reinterpret_cast<__m256i*>(row->odd + i / 4), _mm256_srai_epi16(v, 8));
  }
  if (i < columns) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i));
    const __m128i even = _mm_srai_epi16(_mm_slli_epi16(v, 8), 8);
    _mm_store_si128(reinterpret_cast<__m128i*>(row->even + i / 4), even);
    _mm_store_si128(reinterpret_cast<__m128i*>(row->odd + i / 4), _mm_srai_epi16(v, 8));
  }
}

/// The value itself. Compilers keep the order of these, and so do not start products of several rows
/// at once or add even and odd products first, for which there are too few registers.
[[gnu::always_inline]] inline __m256i in_order(__m256i v) {
  asm volatile("" : "+x"(v));
  return v;
}

/// sums[row][block], kTileBlocks to a row, += x . weight over `groups` groups, or = if `fresh`;
/// `stride` bytes from block to block.
template <size_t kRows, size_t kBlocks>
[[gnu::noinline]] void add_tile(const SpreadRow* x, const int8_t* weight, size_t stride,
                                size_t groups, bool fresh, __m256i* sums) {
  const __m256i high_bytes = _mm256_set1_epi16(static_cast<int16_t>(0xff00));
  for (size_t begin = 0; begin < groups; begin += kSumGroups) {
    const size_t end = smaller(groups, begin + kSumGroups);
    __m256i acc[kRows][kBlocks];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (size_t b = 0; b < kBlocks; ++b) acc[r][b] = _mm256_setzero_si256();
    }
    const int8_t* w = weight + begin * kBlock;
    for (size_t g = begin; g < end; ++g, w += kBlock) {
      __m256i part[kBlocks];
#pragma GCC unroll 8
      for (size_t b = 0; b < kBlocks; ++b) {
        part[b] = _mm256_slli_epi16(
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w + b * stride)), 8);
      }
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) {
        const __m256i pair = in_order(_mm256_set1_epi32(x[r].even[g]));
#pragma GCC unroll 8
        for (size_t b = 0; b < kBlocks; ++b) {
          acc[r][b] = in_order(_mm256_add_epi32(acc[r][b], _mm256_madd_epi16(part[b], pair)));
        }
      }
#pragma GCC unroll 8
      for (size_t b = 0; b < kBlocks; ++b) {
        part[b] = _mm256_and_si256(
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w + b * stride)), high_bytes);
      }
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) {
        const __m256i pair = in_order(_mm256_set1_epi32(x[r].odd[g]));
#pragma GCC unroll 8
        for (size_t b = 0; b < kBlocks; ++b) {
          acc[r][b] = in_order(_mm256_add_epi32(acc[r][b], _mm256_madd_epi16(part[b], pair)));
        }
      }
    }
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (size_t b = 0; b < kBlocks; ++b) {
        __m256i& sum = sums[r * kTileBlocks + b];
        const __m256i part = _mm256_srai_epi32(acc[r][b], 8);
        sum = fresh ? part : _mm256_add_epi32(sum, part);
      }
    }
    fresh = false;
  }
}

/// All `blocks` of a piece. For one or two rows, four blocks at a time: four distant streams read
/// memory at its full rate.
template <size_t kRows>
void add_blocks(const SpreadRow* x, const int8_t* weight, size_t stride, size_t groups,
                size_t blocks, bool fresh, __m256i* sums) {
  constexpr size_t kStep = kRows <= 2 ? 4 : 2;
  size_t b = 0;
  for (; b + kStep <= blocks; b += kStep) {
    add_tile<kRows, kStep>(x, weight + b * stride, stride, groups, fresh, sums + b);
  }
  for (; b < blocks; ++b) {
    add_tile<kRows, 1>(x, weight + b * stride, stride, groups, fresh, sums + b);
  }
}

/// sum * (x_scale * weight_scale) + bias for the channels of one block.
void store_block(__m256i sums, const LinearSlice<int8_t, int8_t>& s, size_t row, size_t channel) {
  float* y = s.y + row * s.y_stride + channel;
  const size_t count = s.channels - channel;
  if (count >= kBlockRows) {
    const __m256 scales =
        _mm256_mul_ps(_mm256_set1_ps(s.x_scales[row]), _mm256_loadu_ps(s.weight_scales + channel));
    const __m256 bias = s.bias == nullptr ? _mm256_setzero_ps() : _mm256_loadu_ps(s.bias + channel);
    _mm256_storeu_ps(y, _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(sums), scales), bias));
    return;
  }
  alignas(32) int32_t lanes[kBlockRows];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sums);
  for (size_t c = 0; c < count; ++c) {
    const float scale = s.x_scales[row] * s.weight_scales[channel + c];
    y[c] = static_cast<float>(lanes[c]) * scale + (s.bias == nullptr ? 0.0f : s.bias[channel + c]);
  }
}

// Float . float. A register is the eight lanes of one sum, so that the order is the reference's;
// speed comes from several sums at once. The end of a row is read under a mask: lanes past it add
// +0, which leaves any sum that began as +0 as it is.

/// combine_sums of four registers.
__m128 combine_four(__m256 a, __m256 b, __m256 c, __m256 d) {
  __m128 r0 = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  __m128 r1 = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  __m128 r2 = _mm_add_ps(_mm256_castps256_ps128(c), _mm256_extractf128_ps(c, 1));
  __m128 r3 = _mm_add_ps(_mm256_castps256_ps128(d), _mm256_extractf128_ps(d, 1));
  _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
  return _mm_add_ps(_mm_add_ps(r0, r2), _mm_add_ps(r1, r3));
}

__m256i first_lanes(size_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/// Rows by channels; kChannels is a multiple of four, or one.
template <size_t kRows, size_t kChannels>
void f32_tile(const LinearSlice<float, float>& s, size_t row, size_t channel) {
  const float* x = s.x + row * s.x_stride;
  const float* w = s.weight + channel * s.depth;
  __m256 acc[kRows][kChannels];
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (size_t c = 0; c < kChannels; ++c) acc[r][c] = _mm256_setzero_ps();
  }
  size_t i = 0;
  for (; i + kLanes <= s.depth; i += kLanes) {
    __m256 xs[kRows];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) xs[r] = _mm256_loadu_ps(x + r * s.x_stride + i);
#pragma GCC unroll 8
    for (size_t c = 0; c < kChannels; ++c) {
      const __m256 ws = _mm256_loadu_ps(w + c * s.depth + i);
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) {
        acc[r][c] = _mm256_add_ps(acc[r][c], _mm256_mul_ps(xs[r], ws));
      }
    }
  }
  if (i < s.depth) {
    const __m256i mask = first_lanes(s.depth - i);
#pragma GCC unroll 8
    for (size_t c = 0; c < kChannels; ++c) {
      const __m256 ws = _mm256_maskload_ps(w + c * s.depth + i, mask);
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) {
        const __m256 xs = _mm256_maskload_ps(x + r * s.x_stride + i, mask);
        acc[r][c] = _mm256_add_ps(acc[r][c], _mm256_mul_ps(xs, ws));
      }
    }
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
    float* y = s.y + (row + r) * s.y_stride + channel;
    if constexpr (kChannels == 1) {
      const __m256 a = acc[r][0];
      *y = _mm_cvtss_f32(combine_four(a, a, a, a)) + (s.bias == nullptr ? 0.0f : s.bias[channel]);
    } else {
#pragma GCC unroll 8
      for (size_t c = 0; c < kChannels; c += 4) {
        const __m128 bias =
            s.bias == nullptr ? _mm_setzero_ps() : _mm_loadu_ps(s.bias + channel + c);
        const __m128 sums = combine_four(acc[r][c], acc[r][c + 1], acc[r][c + 2], acc[r][c + 3]);
        _mm_storeu_ps(y + c, _mm_add_ps(sums, bias));
      }
    }
  }
}

template <size_t kRows, size_t kChannels>
void f32_rows(const LinearSlice<float, float>& s, size_t row) {
  size_t n = 0;
  for (; n + kChannels <= s.channels; n += kChannels) f32_tile<kRows, kChannels>(s, row, n);
  for (; n < s.channels; ++n) f32_tile<kRows, 1>(s, row, n);
}

// Float . int8. The eight lanes of a channel's sum come from two groups of four columns, so a
// register holds half the lanes of two channels: even groups in one register, odd in another.

/// Rows by the four channels of half a block.
template <size_t kRows>
void f32_i8_tile(const LinearSlice<float, int8_t>& s, size_t row, size_t channel) {
  const size_t groups = (s.depth + kBlockColumns - 1) / kBlockColumns;
  const float* x = s.x + row * s.x_stride;
  const int8_t* w =
      s.weight + channel / kBlockRows * groups * kBlock + channel % kBlockRows * kBlockColumns;
  __m256 acc[kRows][2][2];  // [row][even or odd groups][channels 0, 1 or 2, 3]
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) acc[r][i / 2][i % 2] = _mm256_setzero_ps();
  }
  // `columns` of group g, which is even or odd as `parity` says; all four when inlined in the loop.
  const auto add_group = [&](size_t g, size_t parity, size_t columns)
      __attribute__((always_inline)) {
    __m256 ws[2];
#pragma GCC unroll 2
    for (size_t i = 0; i < 2; ++i) {
      const int8_t* codes = w + g * kBlock + i * 8;
      ws[i] = _mm256_cvtepi32_ps(
          _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes))));
    }
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      const float* begin = x + r * s.x_stride + g * kBlockColumns;
      const __m128 four =
          columns == kBlockColumns
              ? _mm_loadu_ps(begin)
              : _mm_maskload_ps(begin, _mm256_castsi256_si128(first_lanes(columns)));
      const __m256 xs = _mm256_set_m128(four, four);
#pragma GCC unroll 2
      for (size_t i = 0; i < 2; ++i) {
        acc[r][parity][i] = _mm256_add_ps(acc[r][parity][i], _mm256_mul_ps(ws[i], xs));
      }
    }
  };
  size_t g = 0;
  for (; (g + 2) * kBlockColumns <= s.depth; g += 2) {
    add_group(g, 0, kBlockColumns);
    add_group(g + 1, 1, kBlockColumns);
  }
  if (g < groups) add_group(g, 0, smaller(kBlockColumns, s.depth - g * kBlockColumns));
  if (g + 1 < groups) add_group(g + 1, 1, s.depth - (g + 1) * kBlockColumns);
  const size_t count = smaller(4, s.channels - channel);
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
    __m256 lanes[4];
#pragma GCC unroll 2
    for (size_t i = 0; i < 2; ++i) {
      lanes[2 * i] = _mm256_permute2f128_ps(acc[r][0][i], acc[r][1][i], 0x20);
      lanes[2 * i + 1] = _mm256_permute2f128_ps(acc[r][0][i], acc[r][1][i], 0x31);
    }
    alignas(16) float sums[4];
    _mm_store_ps(sums, combine_four(lanes[0], lanes[1], lanes[2], lanes[3]));
    float* y = s.y + (row + r) * s.y_stride + channel;
    for (size_t c = 0; c < count; ++c) {
      y[c] =
          sums[c] * s.weight_scales[channel + c] + (s.bias == nullptr ? 0.0f : s.bias[channel + c]);
    }
  }
}

}  // namespace

void linear_f32_f32_f32_avx2(const LinearSlice<float, float>& s) {
  size_t m = 0;
  for (; m + 3 <= s.rows; m += 3) f32_rows<3, 4>(s, m);
  if (m + 2 == s.rows) f32_rows<2, 4>(s, m);
  if (m + 1 == s.rows) f32_rows<1, 8>(s, m);
}

void linear_f32_i8_f32_avx2(const LinearSlice<float, int8_t>& s) {
  for (size_t n = 0; n < s.channels; n += 4) {
    size_t m = 0;
    for (; m + 3 <= s.rows; m += 3) f32_i8_tile<3>(s, m, n);
    if (m + 2 == s.rows) f32_i8_tile<2>(s, m, n);
    if (m + 1 == s.rows) f32_i8_tile<1>(s, m, n);
  }
}

void linear_i8_i8_f32_avx2(const LinearSlice<int8_t, int8_t>& s) {
  const size_t groups = (s.depth + kBlockColumns - 1) / kBlockColumns;
  const size_t stride = groups * kBlock;
  SpreadRow x[kTileRows];
  __m256i sums[kTileRows * kTileBlocks];
  for (size_t n = 0; n < s.channels; n += kTileBlocks * kBlockRows) {
    const size_t blocks = smaller(kTileBlocks, (s.channels - n + kBlockRows - 1) / kBlockRows);
    for (size_t m = 0; m < s.rows; m += kTileRows) {
      const size_t rows = smaller(kTileRows, s.rows - m);
      for (size_t g = 0; g < groups; g += kSpreadGroups) {
        const size_t part = smaller(kSpreadGroups, groups - g);
        for (size_t r = 0; r < rows; ++r) {
          spread(s.x + (m + r) * s.x_stride + g * kBlockColumns, (part + 3) / 4 * 16, x + r);
        }
        const int8_t* weight = s.weight + n * groups * kBlockColumns + g * kBlock;
        switch (rows) {
          case 1:
            add_blocks<1>(x, weight, stride, part, blocks, g == 0, sums);
            break;
          case 2:
            add_blocks<2>(x, weight, stride, part, blocks, g == 0, sums);
            break;
          case 3:
            add_blocks<3>(x, weight, stride, part, blocks, g == 0, sums);
            break;
          default:
            add_blocks<4>(x, weight, stride, part, blocks, g == 0, sums);
            break;
        }
      }
      for (size_t r = 0; r < rows; ++r) {
        for (size_t b = 0; b < blocks; ++b)
          store_block(sums[r * kTileBlocks + b], s, m + r, n + b * kBlockRows);
      }
    }
  }
}

}  // namespace oxbow

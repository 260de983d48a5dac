// AVX2: tiles of rows by blocks of eight channels, with all sums of a tile in registers.

#include <immintrin.h>

#include "ops/linear/float_avx2.h"
#include "ops/linear/linear.h"
#include "runtime/base/math.h"
#include "runtime/base/tensor.h"

namespace oxbow {
namespace {

constexpr size_t kBlock = kBlockRows * kBlockColumns;

size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

// int8 . int8, exact, in one of two ways.
//
// A few rows: what limits them is reading the weights. pmaddubsw multiplies unsigned by signed bytes,
// so the signs of x move to the weights; 128 * 127 twice fits its 16 bits. Four distant streams of
// blocks are read at once, which memory serves at its full rate; neighbouring blocks it does not.
//
// Many rows: what limits them are the multipliers. Weights and x are first widened to 16 bits, the
// weights of two blocks at a time for all rows, and pmaddwd does the rest. As 16-bit words, channel c
// of a block is words 2c and 2c + 1, with columns 0 and 2 in the low bytes and 1 and 3 in the high
// bytes. So even and odd columns are widened each by themselves, and with the same two columns of x
// in every pair pmaddwd gives eight channels in eight lanes, in order.

constexpr size_t kStreams = 4;

/// sums[row][stream] of the blocks that lie `distance` bytes apart from `weight` on.
template <size_t kRows, size_t kBlocks>
[[gnu::noinline]] void few_rows_tile(const int8_t* x, size_t x_stride, const int8_t* weight,
                                     size_t distance, size_t groups, __m256i (*sums)[kStreams]) {
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i acc[kRows][kBlocks];
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (size_t b = 0; b < kBlocks; ++b) acc[r][b] = _mm256_setzero_si256();
  }
  const auto add_group = [&](size_t g) __attribute__((always_inline)) {
    __m256i columns[kRows], sizes[kRows];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      int32_t four;
      __builtin_memcpy(&four, x + r * x_stride + g * kBlockColumns, sizeof(four));
      columns[r] = _mm256_set1_epi32(four);
      sizes[r] = _mm256_abs_epi8(columns[r]);
    }
#pragma GCC unroll 4
    for (size_t b = 0; b < kBlocks; ++b) {
      const __m256i codes =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weight + b * distance + g * kBlock));
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        const __m256i pairs = _mm256_maddubs_epi16(sizes[r], _mm256_sign_epi8(codes, columns[r]));
        acc[r][b] = _mm256_add_epi32(acc[r][b], _mm256_madd_epi16(pairs, ones));
      }
    }
  };
  size_t g = 0;
  for (; g + 2 <= groups; g += 2) {
#pragma GCC unroll 4
    for (size_t b = 0; b < kBlocks; ++b) {
      _mm_prefetch(
          reinterpret_cast<const char*>(weight + b * distance + g * kBlock) + kPrefetchBytes,
          _MM_HINT_T0);
    }
    add_group(g);
    add_group(g + 1);
  }
  if (g < groups) add_group(g);
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (size_t b = 0; b < kBlocks; ++b) sums[r][b] = acc[r][b];
  }
}

constexpr size_t kTileRows = 6;
constexpr size_t kTileBlocks = 2;
/// What is widened at a time: rows, groups of four columns, and blocks of sums kept meanwhile.
constexpr size_t kPanelRows = 48;
constexpr size_t kPanelGroups = 128;
constexpr size_t kPanelBlocks = 32;
/// Groups that lie side by side in a widened row: as many as a register has lanes.
constexpr size_t kStrip = 8;
static_assert(kPanelGroups % kStrip == 0 && kPanelBlocks % kTileBlocks == 0);

/// Strips of one row of a tile, even columns then odd ones. Strips of the rows of a tile alternate, so
/// that what a tile reads at a time lies side by side.
struct alignas(64) WideStrip {
  int32_t even[kStrip];
  int32_t odd[kStrip];
};

/// Widened weights of one group: even columns of both blocks, then odd ones.
struct WideGroup {
  __m256i even[kTileBlocks];
  __m256i odd[kTileBlocks];
};

/// Row r of a tile of `rows`: strips r, r + rows, ... of the tile.
void widen_row(const int8_t* x, size_t groups, size_t rows, WideStrip* strip) {
  const auto widen = [](__m256i codes, WideStrip* to) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to->even),
                       _mm256_srai_epi16(_mm256_slli_epi16(codes, 8), 8));
    _mm256_store_si256(reinterpret_cast<__m256i*>(to->odd), _mm256_srai_epi16(codes, 8));
  };
  for (; groups > kStrip / 2; strip += rows, x += kStrip * kBlockColumns) {
    widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)), strip);
    groups = groups < kStrip ? 0 : groups - kStrip;
  }
  if (groups == 0) return;
  // Rows are padded to 16 elements, half a strip.
  widen(_mm256_zextsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x))), strip);
}

/// Both blocks of a group, `stride` bytes apart.
[[gnu::always_inline]] inline void widen_group(const int8_t* weight, size_t stride,
                                               WideGroup* wide) {
#pragma GCC unroll 2
  for (size_t b = 0; b < kTileBlocks; ++b) {
    const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weight + b * stride));
    wide->even[b] = _mm256_srai_epi16(_mm256_slli_epi16(codes, 8), 8);
    wide->odd[b] = _mm256_srai_epi16(codes, 8);
  }
}

/// acc[b] += weights[b] . pair for two blocks. In this order the core keeps its pipes busiest, and in
/// these registers twelve sums fit without a move; compilers keep neither.
[[gnu::always_inline]] inline void add_products(const __m256i* weights, int32_t pair,
                                                __m256i* acc) {
  __m256i columns = _mm256_set1_epi32(pair), products;
  asm("vpmaddwd %[columns], %[weights0], %[products]\n\t"
      "vpmaddwd %[columns], %[weights1], %[columns]\n\t"
      "vpaddd %[products], %[acc0], %[acc0]\n\t"
      "vpaddd %[columns], %[acc1], %[acc1]"
      :
      [acc0] "+x"(acc[0]), [acc1] "+x"(acc[1]), [columns] "+x"(columns), [products] "=&x"(products)
      : [weights0] "x"(weights[0]), [weights1] "x"(weights[1]));
}

/// sums[row][block], kPanelBlocks to a row, += x . weight over `groups` groups, or = if `fresh`. The
/// first tile of a panel also widens its weights, from blocks `stride` bytes apart: beside its
/// products the stores cost nothing.
template <size_t kRows, bool kWiden>
[[gnu::noinline]] void many_rows_tile(const WideStrip* x, const int8_t* codes, size_t stride,
                                      WideGroup* weight, size_t groups, bool fresh, __m256i* sums) {
  __m256i acc[kRows][kTileBlocks];
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (size_t b = 0; b < kTileBlocks; ++b) {
      acc[r][b] = fresh ? _mm256_setzero_si256() : sums[r * kPanelBlocks + b];
    }
  }
  for (; groups > 0; x += kRows) {
    const size_t strip = smaller(groups, kStrip);
    groups -= strip;
    for (size_t i = 0; i < strip; ++i, ++weight) {
      if constexpr (kWiden) {
        widen_group(codes, stride, weight);
        // The same of the next two blocks.
        _mm_prefetch(reinterpret_cast<const char*>(codes) + 2 * stride, _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(codes) + 3 * stride, _MM_HINT_T0);
        codes += kBlock;
      }
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) add_products(weight->even, x[r].even[i], acc[r]);
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) add_products(weight->odd, x[r].odd[i], acc[r]);
    }
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (size_t b = 0; b < kTileBlocks; ++b) sums[r * kPanelBlocks + b] = acc[r][b];
  }
}

template <bool kWiden>
constexpr decltype(&many_rows_tile<1, kWiden>) kManyRowsTiles[kTileRows] = {
    many_rows_tile<1, kWiden>, many_rows_tile<2, kWiden>, many_rows_tile<3, kWiden>,
    many_rows_tile<4, kWiden>, many_rows_tile<5, kWiden>, many_rows_tile<6, kWiden>};

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

template <size_t kRows>
void few_rows(const LinearSlice<int8_t, int8_t>& s) {
  const size_t groups = (s.depth + kBlockColumns - 1) / kBlockColumns;
  const size_t stride = groups * kBlock;
  const size_t blocks = (s.channels + kBlockRows - 1) / kBlockRows;
  const size_t length = blocks / kStreams;
  __m256i sums[kRows][kStreams];
  for (size_t i = 0; i < length; ++i) {
    // Needed after the sums: to wait for them then would stop the streams.
    for (size_t b = 0; b < kStreams; ++b) {
      const size_t channel = (i + b * length) * kBlockRows;
      _mm_prefetch(reinterpret_cast<const char*>(s.weight_scales + channel), _MM_HINT_T0);
      if (s.bias != nullptr) {
        _mm_prefetch(reinterpret_cast<const char*>(s.bias + channel), _MM_HINT_T0);
      }
    }
    few_rows_tile<kRows, kStreams>(s.x, s.x_stride, s.weight + i * stride, length * stride, groups,
                                   sums);
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t b = 0; b < kStreams; ++b) {
        store_block(sums[r][b], s, r, (i + b * length) * kBlockRows);
      }
    }
  }
  for (size_t i = kStreams * length; i < blocks; ++i) {
    few_rows_tile<kRows, 1>(s.x, s.x_stride, s.weight + i * stride, 0, groups, sums);
    for (size_t r = 0; r < kRows; ++r) store_block(sums[r][0], s, r, i * kBlockRows);
  }
}

/// `blocks` blocks of sums of each row, kPanelBlocks to a row, from `row` and `channel` on.
void store_panel(const __m256i* sums, const LinearSlice<int8_t, int8_t>& s, size_t row, size_t rows,
                 size_t channel, size_t blocks) {
  const float* bias = s.bias == nullptr ? nullptr : s.bias + channel;
  const size_t whole = smaller(blocks, (s.channels - channel) / kBlockRows);
  for (size_t r = 0; r < rows; ++r, ++row, sums += kPanelBlocks) {
    const __m256 x_scale = _mm256_set1_ps(s.x_scales[row]);
    float* y = s.y + row * s.y_stride + channel;
    for (size_t b = 0; b < whole; ++b) {
      const size_t at = b * kBlockRows;
      const __m256 scales = _mm256_mul_ps(x_scale, _mm256_loadu_ps(s.weight_scales + channel + at));
      const __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(sums[b]), scales);
      const __m256 add = bias == nullptr ? _mm256_setzero_ps() : _mm256_loadu_ps(bias + at);
      _mm256_storeu_ps(y + at, _mm256_add_ps(product, add));
    }
    if (whole < blocks) store_block(sums[whole], s, row, channel + whole * kBlockRows);
  }
}

/// Rows [row, row + rows) of the panel's blocks, in parts of the depth.
void sum_panel(const LinearSlice<int8_t, int8_t>& s, size_t row, size_t rows, size_t block,
               size_t blocks, __m256i* sums) {
  const size_t groups = (s.depth + kBlockColumns - 1) / kBlockColumns;
  const size_t stride = groups * kBlock;
  // Tiles of nearly the same height: a low one at the end would waste more.
  const size_t tiles = (rows + kTileRows - 1) / kTileRows;
  const auto tile_begin = [=](size_t tile) { return tile * rows / tiles; };
  WideStrip x[kPanelRows * kPanelGroups / kStrip];
  WideGroup weight[kPanelGroups];
  for (size_t g = 0; g < groups; g += kPanelGroups) {
    const size_t part = smaller(kPanelGroups, groups - g);
    const size_t strips = (part + kStrip - 1) / kStrip;
    for (size_t t = 0; t < tiles; ++t) {
      const size_t begin = tile_begin(t), height = tile_begin(t + 1) - begin;
      for (size_t r = 0; r < height; ++r) {
        widen_row(s.x + (row + begin + r) * s.x_stride + g * kBlockColumns, part, height,
                  x + begin * strips + r);
      }
    }
    for (size_t b = 0; b < blocks; b += kTileBlocks) {
      const int8_t* codes = s.weight + (block + b) * stride + g * kBlock;
      // Without a second block, the first is taken twice.
      const size_t distance = b + 1 < blocks ? stride : 0;
      for (size_t t = 0; t < tiles; ++t) {
        const size_t begin = tile_begin(t), height = tile_begin(t + 1) - begin;
        const auto tile = (t == 0 ? kManyRowsTiles<true> : kManyRowsTiles<false>)[height - 1];
        tile(x + begin * strips, codes, distance, weight, part, g == 0,
             sums + begin * kPanelBlocks + b);
      }
    }
  }
}

void many_rows(const LinearSlice<int8_t, int8_t>& s) {
  const size_t blocks = (s.channels + kBlockRows - 1) / kBlockRows;
  __m256i sums[kPanelRows * kPanelBlocks];
  for (size_t m = 0; m < s.rows; m += kPanelRows) {
    const size_t rows = smaller(kPanelRows, s.rows - m);
    for (size_t n = 0; n < blocks; n += kPanelBlocks) {
      const size_t panel = smaller(kPanelBlocks, blocks - n);
      sum_panel(s, m, rows, n, panel, sums);
      store_panel(sums, s, m, rows, n * kBlockRows, panel);
    }
  }
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
  FloatLinear<F32Weights>::run(s);
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
  by_rows(
      s.rows, [&]<size_t kRows>() { few_rows<kRows>(s); }, [&] { many_rows(s); });
}

}  // namespace oxbow

// Plain loops, with the arrays in the shape compilers turn into vectors: eight channels of a block,
// or eight lanes of a sum, are the inner loop.

#include <cstring>

#include "ops/linear/linear.h"
#include "runtime/base/checked.h"
#include "runtime/base/math.h"
#include "runtime/base/tensor.h"

namespace oxbow {
namespace {

constexpr size_t kBlock = kBlockRows * kBlockColumns;

size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

float bias_of(const float* bias, size_t channel) { return bias == nullptr ? 0.0f : bias[channel]; }

// sums[c][j] += w[c][j] * x[j] over one block of eight channels c and four columns j. The four x
// are copied next to all channels first: then it is one long loop, which even SSE2 does in vectors.
void add_products(const int8_t* w, const int8_t* x, int32_t (&sums)[kBlock]) {
  int8_t repeated[kBlock];
  for (size_t c = 0; c < kBlockRows; ++c)
    std::memcpy(repeated + c * kBlockColumns, x, kBlockColumns);
  // 16 bits hold any product of two int8.
  int16_t products[kBlock];
  for (size_t i = 0; i < kBlock; ++i) {
    products[i] = static_cast<int16_t>(int16_t{w[i]} * int16_t{repeated[i]});
  }
  for (size_t i = 0; i < kBlock; ++i) sums[i] += products[i];
}

void add_products(const int8_t* w, const float (&x)[kBlockColumns], float (&sums)[kBlock]) {
  for (size_t c = 0; c < kBlockRows; ++c) {
    for (size_t j = 0; j < kBlockColumns; ++j) {
      const size_t i = c * kBlockColumns + j;
      sums[i] += static_cast<float>(w[i]) * x[j];
    }
  }
}

}  // namespace

void linear_f32_f32_f32_ref(const LinearSlice<float, float>& s) {
  for (size_t n = 0; n < s.channels; ++n) {
    const float* weight = s.weight + n * s.depth;
    const float bias = bias_of(s.bias, n);
    for (size_t m = 0; m < s.rows; ++m) {
      s.y[m * s.y_stride + n] = dot_f32(s.x + m * s.x_stride, weight, s.depth) + bias;
    }
  }
}

void linear_f32_i8_f32_ref(const LinearSlice<float, int8_t>& s) {
  const size_t groups = ceil_div(s.depth, kBlockColumns);
  for (size_t n = 0; n < s.channels; n += kBlockRows) {
    const int8_t* block = s.weight + n * groups * kBlockColumns;
    for (size_t m = 0; m < s.rows; ++m) {
      const float* x = s.x + m * s.x_stride;
      // Lanes 0..3 of each channel's sum, which take the even groups of four, and lanes 4..7.
      float sums[2][kBlock] = {};
      for (size_t g = 0; g < groups; ++g) {
        // The row may end inside the last group; a lane that adds zero keeps its bits.
        float four[kBlockColumns] = {};
        const size_t begin = g * kBlockColumns;
        std::memcpy(four, x + begin, smaller(kBlockColumns, s.depth - begin) * sizeof(float));
        add_products(block + g * kBlock, four, sums[g % 2]);
      }
      for (size_t c = 0; c < smaller(kBlockRows, s.channels - n); ++c) {
        float lanes[kLanes];
        std::memcpy(lanes, sums[0] + c * kBlockColumns, sizeof(lanes) / 2);
        std::memcpy(lanes + kBlockColumns, sums[1] + c * kBlockColumns, sizeof(lanes) / 2);
        s.y[m * s.y_stride + n + c] =
            combine_sums(lanes) * s.weight_scales[n + c] + bias_of(s.bias, n + c);
      }
    }
  }
}

void linear_i8_i8_f32_ref(const LinearSlice<int8_t, int8_t>& s) {
  const size_t groups = ceil_div(s.depth, kBlockColumns);
  for (size_t n = 0; n < s.channels; n += kBlockRows) {
    const int8_t* block = s.weight + n * groups * kBlockColumns;
    for (size_t m = 0; m < s.rows; ++m) {
      const int8_t* x = s.x + m * s.x_stride;
      int32_t sums[kBlock] = {};
      for (size_t g = 0; g < groups; ++g) {
        add_products(block + g * kBlock, x + g * kBlockColumns, sums);
      }
      for (size_t c = 0; c < smaller(kBlockRows, s.channels - n); ++c) {
        const int32_t* four = sums + c * kBlockColumns;
        const int32_t dot = (four[0] + four[1]) + (four[2] + four[3]);
        s.y[m * s.y_stride + n + c] =
            static_cast<float>(dot) * (s.x_scales[m] * s.weight_scales[n + c]) +
            bias_of(s.bias, n + c);
      }
    }
  }
}

}  // namespace oxbow

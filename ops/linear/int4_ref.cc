// Int8 rows by weights of four bits: sums of 32 columns are exact integers, and are added as floats, one after the other.

#include <type_traits>

#include "ops/linear/linear.h"
#include "runtime/base/checked.h"

namespace oxbow {
namespace {

size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/// Of one row of a block, with the columns of x that there are.
template <typename Block>
int32_t dot(const Block& block, size_t row, const int8_t* x, size_t columns) {
  int32_t sum = 0;
  for (size_t i = 0; i < columns; ++i) sum += x[i] * code_of(block, row, i);
  return sum;
}

int32_t sum_of(const int8_t* x, size_t columns) {
  int32_t sum = 0;
  for (size_t i = 0; i < columns; ++i) sum += x[i];
  return sum;
}

float bias_of(const float* bias, size_t channel) { return bias == nullptr ? 0.0f : bias[channel]; }

template <typename Block>
void linear(const LinearSlice<int8_t, Block>& s) {
  const size_t blocks = ceil_div(s.depth, kI4BlockColumns);
  const bool grouped = s.x_groups != 1;
  for (size_t n = 0; n < s.channels; ++n) {
    const Block* weight = s.weight + n / kBlockRows * blocks;
    const size_t row = n % kBlockRows;
    for (size_t m = 0; m < s.rows; ++m) {
      const int8_t* x = s.x + m * s.x_stride;
      float sum = 0.0f;
      for (size_t b = 0; b < blocks; ++b) {
        const int8_t* columns = x + b * kI4BlockColumns;
        const size_t count = smaller(kI4BlockColumns, s.depth - b * kI4BlockColumns);
        float part =
            static_cast<float>(dot(weight[b], row, columns, count)) * to_f32(weight[b].scales[row]);
        if constexpr (std::is_same_v<Block, I4MinBlock>) {
          part = part + static_cast<float>(sum_of(columns, count)) * to_f32(weight[b].mins[row]);
        }
        sum = sum + (grouped ? part * s.x_scales[m * s.x_groups + b] : part);
      }
      s.y[m * s.y_stride + n] = (grouped ? sum : sum * s.x_scales[m]) + bias_of(s.bias, n);
    }
  }
}

}  // namespace

void linear_i8_i4_f32_ref(const LinearSlice<int8_t, I4Block>& s) { linear(s); }
void linear_i8_i4min_f32_ref(const LinearSlice<int8_t, I4MinBlock>& s) { linear(s); }

}  // namespace oxbow

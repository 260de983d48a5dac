// Every line of the list against the formula and the reference.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "ops/linear/linear.h"
#include "ops/linear/testing/formula.h"

namespace oxbow {
namespace {

using linear_test::Expected;
using linear_test::formula;
using testing::block_tensor;
using testing::f32_tensor;
using testing::i8_tensor;
using testing::TestTensor;
using testing::weight_tensor;

template <typename X, typename W>
struct Variant {
  LinearKernel<X, W> kernel;
  const char* name;
};

/// The list's lines for one pair of types; the reference is the last.
template <typename X, typename W>
std::vector<Variant<X, W>> variants() {
  std::vector<Variant<X, W>> result;
#define OXB_KERNEL(x, w, isa, fn)                               \
  if constexpr (std::is_same_v<x, X> && std::is_same_v<w, W>) { \
    if (cpu_supports(isa)) result.push_back({fn, #fn});         \
  }
#include "ops/linear/kernels.inc"
#undef OXB_KERNEL
  return result;
}

template <typename Element>
TestTensor rows_of(const char* name, uint32_t rows, uint32_t width, uint32_t groups) {
  if constexpr (std::is_same_v<Element, int8_t>) return i8_tensor(name, rows, width, groups);
  return f32_tensor(name, rows, width);
}

template <typename Element>
constexpr DataType kTypeOf = std::is_same_v<Element, int8_t>         ? DataType::kI8
                             : std::is_same_v<Element, F16>          ? DataType::kF16
                             : std::is_same_v<Element, BF16>         ? DataType::kBF16
                             : std::is_same_v<Element, I4Block>      ? DataType::kI4
                             : std::is_same_v<Element, I4MinBlock>   ? DataType::kI4Min
                             : std::is_same_v<Element, TernaryBlock> ? DataType::kTernary
                                                                     : DataType::kF32;

template <typename Element>
TestTensor weight_of(uint32_t channels, uint32_t depth) {
  return weight_tensor("weight", kTypeOf<Element>, channels, depth);
}

/// What int4 must give to the bit: groups one after the other.
template <typename Block>
float exact_i4(const TestTensor& x, size_t row, const TestTensor& weight, size_t channel,
               const TestTensor* bias) {
  float sum = 0;
  const auto* blocks = reinterpret_cast<const Block*>(weight.data) +
                       channel / kBlockRows * ceil_div(weight.width, kI4BlockColumns);
  for (size_t first = 0; first < x.width; first += kI4BlockColumns, ++blocks) {
    int32_t part = 0, sum_of_x = 0;
    for (size_t k = first; k < first + kI4BlockColumns && k < x.width; ++k) {
      part += x.code(row, k) * weight.code(channel, k);
      sum_of_x += x.code(row, k);
    }
    const size_t block = first / kI4BlockColumns;
    float product = static_cast<float>(part) * to_f32(blocks->scales[channel % kBlockRows]);
    if constexpr (std::is_same_v<Block, I4MinBlock>) {
      const float of_min =
          static_cast<float>(sum_of_x) * to_f32(blocks->mins[channel % kBlockRows]);
      product += of_min;
    }
    if (x.scale_groups != 1) product *= x.row_scales(row)[block];
    sum += product;
  }
  const float scaled = x.scale_groups == 1 ? sum * x.scales[row] : sum;
  return scaled + (bias == nullptr ? 0.0f : bias->f32()[channel]);
}

/// What int8 must give to the bit.
float exact_i8(const TestTensor& x, size_t row, const TestTensor& weight, size_t channel,
               const TestTensor* bias) {
  if (weight.type == DataType::kI4) return exact_i4<I4Block>(x, row, weight, channel, bias);
  if (weight.type == DataType::kI4Min) return exact_i4<I4MinBlock>(x, row, weight, channel, bias);
  int64_t sum = 0;
  for (size_t k = 0; k < x.width; ++k) sum += x.code(row, k) * weight.code(channel, k);
  const float scale = x.scales[row] * weight.scales[channel];
  return static_cast<float>(sum) * scale + (bias == nullptr ? 0.0f : bias->f32()[channel]);
}

template <typename X, typename W>
LinearSlice<X, W> slice_of(const TestTensor& x, const TestTensor& weight, const TestTensor* bias,
                           TestTensor& y) {
  return {.rows = x.rows,
          .channels = weight.rows,
          .depth = x.width,
          .x = reinterpret_cast<const X*>(x.data),
          .x_stride = x.stride() / sizeof(X),
          .x_scales = x.scales,
          .x_groups = x.scale_groups,
          .weight = reinterpret_cast<const W*>(weight.data),
          .weight_scales = weight.scales,
          .bias = bias == nullptr ? nullptr : bias->f32(),
          .y = y.f32(),
          .y_stride = y.width};
}

template <typename X, typename W>
void check_kernels(uint32_t rows, uint32_t channels, uint32_t depth, bool has_bias,
                   uint32_t groups = 1) {
  SCOPED_TRACE(::testing::Message() << rows << " x " << channels << " x " << depth);
  TestTensor x = rows_of<X>("x", rows, depth, groups), weight = weight_of<W>(channels, depth);
  TestTensor bias = f32_tensor("bias", 1, channels), expected = f32_tensor("y", rows, channels);
  fill_uniform(x, depth);
  fill_uniform(weight, depth + 1);
  fill_uniform(bias, depth + 2);
  const TestTensor* b = has_bias ? &bias : nullptr;
  const auto list = variants<X, W>();
  list.back().kernel(slice_of<X, W>(x, weight, b, expected));
  for (size_t m = 0; m < rows; ++m) {
    for (size_t n = 0; n < channels; ++n) {
      if constexpr (std::is_same_v<X, int8_t>) {
        ASSERT_EQ(expected.f32(m)[n], exact_i8(x, m, weight, n, b)) << m << ", " << n;
      } else {
        const Expected e = formula(x, m, weight, n, b);
        ASSERT_NEAR(expected.f32(m)[n], e.value, e.tolerance) << m << ", " << n;
      }
    }
  }
  for (const Variant<X, W>& variant : list) {
    SCOPED_TRACE(variant.name);
    TestTensor y = f32_tensor("y", rows, channels);
    variant.kernel(slice_of<X, W>(x, weight, b, y));
    for (size_t i = 0; i < size_t{rows} * channels; ++i) {
      ASSERT_EQ(y.f32()[i], expected.f32()[i]) << i;
    }
  }
}

template <typename X, typename W>
void check_all_sizes() {
  for (uint32_t size : testing::simd_sizes_up_to(257)) {
    check_kernels<X, W>(1, 9, size, true);
    check_kernels<X, W>(2, size, 19, false);
    check_kernels<X, W>(size % 7 + 1, 16, size, size % 2 == 0);
  }
  // Kernels take rows, channels and columns in parts.
  for (uint32_t depth : {511, 512, 513, 1024, 2100}) check_kernels<X, W>(13, 41, depth, true);
  for (uint32_t rows : {3, 4, 5, 6, 8, 12, 16, 17, 48, 49, 101}) {
    check_kernels<X, W>(rows, 24, 65, true);
  }
  for (uint32_t channels : {127, 128, 129, 300}) check_kernels<X, W>(7, channels, 35, false);
}

/// Row counts around the tiles of every ISA, which have up to 16 rows in parts of 32, and shapes that
/// nobody thought of.
template <typename X, typename W>
void check_rows_and_random_shapes() {
  for (uint32_t rows = 1; rows <= 34; ++rows) check_kernels<X, W>(rows, 19 + rows % 3, 37, true);
  std::mt19937 random(11);
  for (int i = 0; i < 40; ++i) {
    const auto rows = static_cast<uint32_t>(1 + random() % 40);
    const auto channels = static_cast<uint32_t>(1 + random() % 100);
    const auto depth = static_cast<uint32_t>(1 + random() % (i % 10 == 0 ? 1100 : 90));
    check_kernels<X, W>(rows, channels, depth, random() % 2 == 0);
  }
}

TEST(LinearKernels, F32FollowTheFormula) { check_all_sizes<float, float>(); }
TEST(LinearKernels, WeightOnlyInt8FollowTheFormula) { check_all_sizes<float, int8_t>(); }
TEST(LinearKernels, Int8AreExact) { check_all_sizes<int8_t, int8_t>(); }

TEST(LinearKernels, SixteenBitsFollowTheFormula) {
  check_all_sizes<float, F16>();
  check_all_sizes<float, BF16>();
}
// Depths that are taken in parts, by more rows and channels than are computed at a time.
TEST(LinearKernels, FloatsAgreeInPartsOfADepth) {
  check_kernels<float, float>(13, 67, 600, false);
  check_kernels<float, float>(49, 35, 1024, true);
  check_kernels<float, F16>(13, 35, 1040, true);
}
TEST(LinearKernels, Int4AreExact) { check_all_sizes<int8_t, I4Block>(); }
TEST(LinearKernels, Int4WithMinsAreExact) { check_all_sizes<int8_t, I4MinBlock>(); }
TEST(LinearKernels, Int4OfRowsWithAScaleForEachGroupAreExact) {
  for (const uint32_t groups : {2u, 3u, 18u}) {
    for (const uint32_t rows : {1u, 2u, 3u, 4u, 7u, 12u, 13u, 25u}) {
      check_kernels<int8_t, I4Block>(rows, 41, 32 * groups, true, groups);
      check_kernels<int8_t, I4MinBlock>(rows, 41, 32 * groups, false, groups);
    }
  }
  // Deeper than VNNI has room for.
  check_kernels<int8_t, I4Block>(2, 9, 32 * 600, true, 600);
}
TEST(LinearKernels, TernaryAreExact) { check_all_sizes<int8_t, TernaryBlock>(); }

TEST(LinearKernels, SixteenBitsAgreeForAnyNumberOfRows) {
  check_rows_and_random_shapes<float, F16>();
  check_rows_and_random_shapes<float, BF16>();
}
TEST(LinearKernels, Int4AgreeForAnyNumberOfRows) {
  check_rows_and_random_shapes<int8_t, I4Block>();
}
TEST(LinearKernels, Int4WithMinsAgreeForAnyNumberOfRows) {
  check_rows_and_random_shapes<int8_t, I4MinBlock>();
}
TEST(LinearKernels, TernaryAgreeForAnyNumberOfRows) {
  check_rows_and_random_shapes<int8_t, TernaryBlock>();
}

template <typename W>
void check_bits_of_rounded_floats() {
  for (uint32_t depth : {1, 7, 8, 9, 37, 600}) {
    for (uint32_t rows : {1, 2, 3, 5}) {
      TestTensor x = f32_tensor("x", rows, depth), weight = weight_of<W>(21, depth);
      TestTensor rounded = f32_tensor("rounded", 21, depth);
      fill_uniform(x, depth);
      fill_uniform(weight, rows);
      // Also what is too small for a normal half. As BF16 it is a subnormal float, which 32-bit NEON takes for zero.
#if defined(__arm__)
      constexpr bool kSubnormal = std::is_same_v<W, F16>;
#else
      constexpr bool kSubnormal = true;
#endif
      if (kSubnormal) {
        reinterpret_cast<uint16_t*>(weight.data)[0] = 3;
        reinterpret_cast<uint16_t*>(weight.data)[depth] = 0x8001;
      }
      for (size_t n = 0; n < 21; ++n) {
        for (size_t k = 0; k < depth; ++k) {
          rounded.f32(n)[k] = static_cast<float>(weight.value(n, k));
        }
      }
      TestTensor expected = f32_tensor("y", rows, 21);
      linear_f32_f32_f32_ref(slice_of<float, float>(x, rounded, nullptr, expected));
      for (const auto& variant : variants<float, W>()) {
        SCOPED_TRACE(variant.name);
        TestTensor y = f32_tensor("y", rows, 21);
        variant.kernel(slice_of<float, W>(x, weight, nullptr, y));
        EXPECT_EQ(std::memcmp(y.data, expected.data, y.elements_bytes()), 0);
      }
    }
  }
}

TEST(LinearKernels, SixteenBitsGiveTheBitsOfTheSameNumbersAsFloats) {
  check_bits_of_rounded_floats<F16>();
  check_bits_of_rounded_floats<BF16>();
}

/// Every bit of the weight set, and x as a file might have it: sums of 16 bits must hold the worst.
template <typename W>
void check_worst_codes(int code) {
  for (const int x_code : {-128, 127}) {
    for (const uint32_t rows : {1u, 2u, 4u, 7u}) {
      const uint32_t depth = rows == 1 ? kMaxI8Depth : 4096;
      TestTensor x = i8_tensor("x", rows, depth), weight = weight_of<W>(40, depth);
      std::memset(x.data, x_code, x.elements_bytes());
      fill_uniform(weight, 1);
      if constexpr (!std::is_same_v<W, TernaryBlock>) {
        auto* blocks = reinterpret_cast<W*>(weight.data);
        std::memset(weight.data, 0, weight.elements_bytes());
        for (size_t i = 0; i < weight.elements_bytes() / sizeof(W); ++i) {
          std::memset(blocks[i].codes, 0xff, sizeof(blocks[i].codes));
          for (F16& scale : blocks[i].scales) scale = to_f16(1);
        }
      } else {
        std::memset(weight.data, 0xff, weight.elements_bytes());
        for (size_t n = 0; n < 40; ++n) weight.scales[n] = 1.0f;
      }
      // As all rows are padded.
      for (size_t m = 0; m < rows; ++m) {
        std::memset(x.i8(m) + depth, 0, x.stride() - depth);
        x.scales[m] = 1.0f;
      }
      ASSERT_EQ(weight.code(1, 1), code);
      TestTensor expected = f32_tensor("y", rows, 40);
      const auto list = variants<int8_t, W>();
      list.back().kernel(slice_of<int8_t, W>(x, weight, nullptr, expected));
      if (depth == 4096) {
        EXPECT_EQ(expected.f32()[0], static_cast<float>(4096 * code * x_code));
      }
      for (const auto& variant : list) {
        SCOPED_TRACE(variant.name);
        TestTensor y = f32_tensor("y", rows, 40);
        variant.kernel(slice_of<int8_t, W>(x, weight, nullptr, y));
        for (size_t i = 0; i < rows * 40; ++i) ASSERT_EQ(y.f32()[i], expected.f32()[i]) << i;
      }
    }
  }
}

TEST(LinearKernels, Int4AndTernaryDoNotOverflowWithTheWorstCodes) {
  check_worst_codes<I4Block>(7);
  check_worst_codes<I4MinBlock>(15);
  check_worst_codes<TernaryBlock>(2);
}

TEST(LinearKernels, F32AgreeForAnyNumberOfRows) { check_rows_and_random_shapes<float, float>(); }
TEST(LinearKernels, WeightOnlyInt8AgreeForAnyNumberOfRows) {
  check_rows_and_random_shapes<float, int8_t>();
}
TEST(LinearKernels, Int8AgreeForAnyNumberOfRows) { check_rows_and_random_shapes<int8_t, int8_t>(); }

TEST(LinearKernels, Int8AreExactForTheCodeThatOnlyAFileHas) {
  // See linear.h for weights of -128.
  constexpr int8_t kLeastWeight = OXB_BUILD_AVX2 ? -127 : -128;
  for (uint32_t rows : {1, 2, 5, 8, 19}) {
    for (uint32_t depth : {3, 16, 37, 600}) {
      TestTensor x = i8_tensor("x", rows, depth), weight = block_tensor("weight", 21, depth);
      fill_uniform(x, depth);
      fill_uniform(weight, rows);
      std::mt19937 random(depth);
      for (size_t m = 0; m < rows; ++m) {
        for (size_t k = 0; k < depth; ++k) {
          if (random() % 3 == 0) reinterpret_cast<int8_t*>(x.data)[m * x.stride() + k] = -128;
        }
      }
      for (size_t i = 0; i < weight.elements_bytes(); ++i) {
        if (random() % 3 == 0) reinterpret_cast<int8_t*>(weight.data)[i] = kLeastWeight;
      }
      const auto list = variants<int8_t, int8_t>();
      TestTensor expected = f32_tensor("y", rows, 21);
      list.back().kernel(slice_of<int8_t, int8_t>(x, weight, nullptr, expected));
      for (const auto& variant : list) {
        SCOPED_TRACE(variant.name);
        TestTensor y = f32_tensor("y", rows, 21);
        variant.kernel(slice_of<int8_t, int8_t>(x, weight, nullptr, y));
        for (size_t i = 0; i < rows * 21; ++i) ASSERT_EQ(y.f32()[i], expected.f32()[i]) << i;
      }
    }
  }
}

TEST(LinearKernels, Int8DoNotOverflowAtTheLargestDepthWithTheWorstCodes) {
  // -128 is no code that quantising gives, but x may come from a file.
  for (auto [rows, x_code, code] : {std::array{1, -128, -127},
                                    {1, -128, 127},
                                    {1, 127, 127},
                                    {2, -128, -127},
                                    {9, -128, -127},
                                    {9, -128, 127}}) {
    SCOPED_TRACE(rows);
    const auto count = static_cast<uint32_t>(rows);
    TestTensor x = i8_tensor("x", count, kMaxI8Depth);
    TestTensor weight = block_tensor("weight", 8, kMaxI8Depth);
    std::memset(x.data, x_code, x.elements_bytes());
    std::memset(weight.data, code, weight.elements_bytes());
    for (size_t m = 0; m < count; ++m) x.scales[m] = 1.0f;
    for (size_t n = 0; n < 8; ++n) weight.scales[n] = 1.0f;
    // The padding holds the code too, as in a hostile file: round_up(depth, 4) columns count.
    const int64_t sum = int64_t{x_code} * code * static_cast<int64_t>(round_up(kMaxI8Depth, 4));
    for (const auto& variant : variants<int8_t, int8_t>()) {
      SCOPED_TRACE(variant.name);
      TestTensor y = f32_tensor("y", count, 8);
      variant.kernel(slice_of<int8_t, int8_t>(x, weight, nullptr, y));
      for (size_t i = 0; i < count * 8; ++i) EXPECT_EQ(y.f32()[i], static_cast<float>(sum));
    }
  }
}

}  // namespace
}  // namespace oxbow

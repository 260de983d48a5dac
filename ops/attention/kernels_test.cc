// Every line of the list against the reference, for every head width around those of vectors.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/attention/key_ranges.h"
#include "ops/attention/testing/test_case.h"

namespace oxbow {
namespace {

using namespace attention_test;

const AttentionKernel<float>& reference_of(float) { return attention_f32_f32_f32_ref; }
const AttentionKernel<int8_t>& reference_of(int8_t) { return attention_f32_i8_f32_ref; }

/// One head of one query over 100 keys in two ranges, every `step`-th of them.
template <typename Element>
struct KernelCase {
  KernelCase(uint32_t width, uint32_t distances, size_t split, uint32_t value_width = 0)
      : attention(make(width, distances, value_width)) {
    Attention& a = attention;
    const bool i8 = std::is_same_v<Element, int8_t>;
    const size_t stride = i8 ? a.k[0]->stride() : width;
    shape.head_width = width;
    shape.value_width = a.v[0]->width;
    shape.scale = 0.3f;
    shape.key_stride = stride;
    shape.value_stride = i8 ? a.v[0]->stride() : shape.value_width;
    shape.scale_stride = i8 ? 1 : 0;
    shape.distances = distances;
    shape.relative_zero = distances / 2;
    terms.alibi.slopes = &kSlope;
    terms.segments = {&kType, a.segment_table->f32(), a.segment_bias->f32(), width};
    terms.kinds = bit(schema::TermKind::Alibi) | bit(schema::TermKind::Segments);
    if (distances != 0) {
      terms.relative = {a.table->data,       a.table->scales, a.bias->f32(),
                        a.query_bias->f32(), stride,          1};
      terms.relative_keys = {a.table->data, a.table->scales, stride, 1};
      terms.kinds |= bit(schema::TermKind::Relative) | bit(schema::TermKind::RelativeKeys);
    }
    ranges.count = 0;
    for (size_t s = 0; s < 2; ++s) {
      KeyRange<Element>& range = ranges.ranges[s];
      range.first = s * split;
      range.end = s == 0 ? split : 100;
      const size_t row = s * split;
      range.k = reinterpret_cast<const Element*>(a.k[0]->data) + row * stride;
      range.v = reinterpret_cast<const Element*>(a.v[0]->data) + row * shape.value_stride;
      range.k_scales = i8 ? a.k[0]->scales + row : nullptr;
      range.v_scales = i8 ? a.v[0]->scales + row : nullptr;
      range.row = kNoRow;
      range.pinned = s == 0;
      range.reach = UINT64_MAX;
      ++ranges.count;
    }
    query.q = a.q->f32();
    query.pinned_q = a.pinned_query->f32();
    query.position = 90;
  }

  void with_adaptive_span(const float* span) {
    terms.adaptive_span = {span, 20.0f, 10};
    terms.kinds |= bit(schema::TermKind::AdaptiveSpan);
  }

  void run(const AttentionKernel<Element>& kernel, size_t step, TestTensor& out) {
    testing::Buffer scratch(attention_scratch_bytes(shape, true));
    HeadTask task;
    task.query = query;
    task.state.scratch = scratch.data();
    task.out = out.f32();
    const PositionSpan span = {1, 98 / step, step};
    attend_spans<Element>(kernel, shape, terms, ranges, {&task, 1}, {&span, 1});
    sum = task.state.sum;
  }

  static constexpr float kSlope = 0.05f;
  static constexpr int32_t kType = 1;

  Attention attention;
  AttentionShape shape;
  AttentionTerms terms;
  KeyRanges<Element> ranges;
  AttentionQuery query;
  /// What the last run divided by.
  float sum = 0;

 private:
  static uint32_t bit(schema::TermKind kind) { return 1u << static_cast<unsigned>(kind); }

  static Case make(uint32_t width, uint32_t distances, uint32_t value_width) {
    Case c;
    c.type = std::is_same_v<Element, int8_t> ? DataType::kI8 : DataType::kF32;
    c.heads = c.kv_heads = 1;
    c.head_width = width;
    c.value_width = value_width;
    c.rings = {{100, 0, 100}};
    c.distances = distances;
    c.pinned_query = c.segments = true;
    c.seed = width;
    return c;
  }
};

template <typename Element>
void expect_bits_of_reference(Isa isa, const char* name, const AttentionKernel<Element>& kernel) {
  if (isa != Isa::kNone && !cpu_supports(isa)) return;
  std::mt19937 random(5);
  for (uint32_t width : testing::simd_sizes_up_to(130)) {
    for (uint32_t distances : {0, 20}) {
      // Values as wide as keys, and of any other width.
      const uint32_t value_width = 1 + random() % 130;
      for (uint32_t values : {width, value_width}) {
        KernelCase<Element> test(width, distances, 1 + random() % 99, values);
        const float span = 40.0f;
        if (values != width) test.with_adaptive_span(&span);
        for (size_t step : {1, 3}) {
          TestTensor got = f32_tensor("got", 1, values), want = f32_tensor("want", 1, values);
          test.run(kernel, step, got);
          const float sum = test.sum;
          test.run(reference_of(Element{}), step, want);
          ASSERT_EQ(0, std::memcmp(got.data, want.data, want.elements.size()))
              << name << " " << width << " values " << values << " step " << step;
          ASSERT_EQ(sum, test.sum);
        }
      }
    }
  }
}

TEST(AttentionKernels, GiveTheBitsOfTheReference) {
#define OXB_KERNEL(element, isa, name) expect_bits_of_reference<element>(isa, #name, name);
#include "ops/attention/kernels.inc"
#undef OXB_KERNEL
}

/// What only a hostile file has: keys and values of -128, and scales that are negative.
void expect_bits_with_the_worst_codes(Isa isa, const char* name,
                                      const AttentionKernel<int8_t>& kernel) {
  if (isa != Isa::kNone && !cpu_supports(isa)) return;
  for (uint32_t width : {7, 16, 40, 64, 75, 128}) {
    for (float scale : {1.0f, -1.0f}) {
      KernelCase<int8_t> test(width, 20, 37);
      Attention& a = test.attention;
      for (TestTensor* tensor : {&*a.k[0], &*a.v[0], &*a.table}) {
        std::memset(tensor->data, -128, tensor->elements_bytes());
      }
      for (size_t j = 0; j < 100; ++j) a.v[0]->scales[j] = scale;
      TestTensor got = f32_tensor("got", 1, width), want = f32_tensor("want", 1, width);
      test.run(kernel, 1, got);
      test.run(attention_f32_i8_f32_ref, 1, want);
      ASSERT_EQ(0, std::memcmp(got.data, want.data, want.elements.size())) << name << " " << width;
      // Every value is the same, so that their mean is.
      ASSERT_NEAR(got.f32()[0], -128.0f * scale, 0.02f);
    }
  }
}
void expect_bits_with_the_worst_codes(Isa, const char*, const AttentionKernel<float>&) {}

TEST(AttentionKernels, GiveTheBitsOfTheReferenceForTheWorstCodes) {
#define OXB_KERNEL(element, isa, name) expect_bits_with_the_worst_codes(isa, #name, name);
#include "ops/attention/kernels.inc"
#undef OXB_KERNEL
}

/// Blocks of every height, of queries that see all keys or the first ones only, against one query after the other.
template <typename Element>
void expect_bits_of_single_queries(Isa isa, const char* name,
                                   const AttentionKernel<Element>& kernel) {
  if ((isa != Isa::kNone && !cpu_supports(isa)) || kernel.block == nullptr) return;
  std::mt19937 random(6);
  for (uint32_t width : {1, 7, 8, 16, 24, 32, 48, 64, 65, 80, 128, 144}) {
    for (uint32_t distances : {0, 20}) {
      const uint32_t values = distances == 0 ? width : 1 + random() % 130;
      KernelCase<Element> test(width, distances, 1 + random() % 99, values);
      test.ranges.ranges[0].pinned = false;
      // Must not matter to queries that do not see it.
      if constexpr (std::is_same_v<Element, float>) test.attention.v[0]->f32(59)[0] = NAN;
      const size_t count = 1 + random() % kBlockQueries, step = 1 + random() % 2;
      std::vector<float> q(count * width);
      for (float& x : q) x = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
      testing::Buffer scratch(count * attention_scratch_bytes(test.shape, false));
      std::vector<float> got(count * values), want(count * values);
      HeadTask tasks[kBlockQueries];
      for (size_t i = 0; i < count; ++i) {
        HeadTask& task = tasks[i];
        task.query.q = q.data() + i * width;
        task.query.position = 90 + i;
        task.state.scratch = scratch.data() + i * attention_scratch_bytes(test.shape, false);
        task.out = want.data() + i * values;
        task.to_come = random() % 2 == 0 ? random() % 48 : 97 / step;
        const PositionSpan own = {1, task.to_come, step};
        attend_spans<Element>(reference_of(Element{}), test.shape, test.terms, test.ranges,
                              {&task, 1}, {&own, 1});
        task.out = got.data() + i * values;
      }
      const PositionSpan all = {1, 97 / step, step};
      attend_spans<Element>(kernel, test.shape, test.terms, test.ranges, {tasks, count}, {&all, 1},
                            true);
      ASSERT_EQ(0, std::memcmp(got.data(), want.data(), got.size() * sizeof(float)))
          << name << " " << width << " values " << values << " queries " << count;
    }
  }
}

TEST(AttentionKernels, GiveTheBitsOfSingleQueriesInBlocks) {
#define OXB_KERNEL(element, isa, name) expect_bits_of_single_queries<element>(isa, #name, name);
#include "ops/attention/kernels.inc"
#undef OXB_KERNEL
}

TEST(AttentionKernels, GiveZeroForNoKeys) {
#define OXB_KERNEL(element, isa, name)                                  \
  if (isa == Isa::kNone || cpu_supports(isa)) {                         \
    KernelCase<element> test(9, 0, 50);                                 \
    TestTensor out = f32_tensor("out", 1, 9);                           \
    test.ranges.count = 0;                                              \
    testing::Buffer scratch(attention_scratch_bytes(test.shape, true)); \
    AttentionState state = {};                                          \
    state.scratch = scratch.data();                                     \
    name.begin(test.query, test.shape, test.terms, &state, out.f32());  \
    name.end(test.shape, test.terms, &state, out.f32());                \
    for (size_t d = 0; d < 9; ++d) EXPECT_EQ(out.f32()[d], 0.0f);       \
  }
#include "ops/attention/kernels.inc"
#undef OXB_KERNEL
}

}  // namespace
}  // namespace oxbow

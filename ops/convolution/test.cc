#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "ops/convolution/convolution.h"
#include "ops/testing/kernel_test.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::i8_tensor;
using testing::OpRunner;
using testing::TestTensor;

constexpr testing::Variant<ConvolutionKernel> kVariants[] = {
#define OXB_KERNEL(isa, fn) {isa, fn, #fn},
#include "ops/convolution/kernels.inc"
#undef OXB_KERNEL
};

TEST(Convolution, ReferenceFollowsTheFormulaAndEveryVariantTheReference) {
  for (uint32_t channels : testing::simd_sizes_up_to(130)) {
    for (uint32_t heads : {1u, 3u, 70u}) {
      SCOPED_TRACE(::testing::Message() << channels << " channels, " << heads << " heads");
      const ConvolutionParams params = {size_t{channels} * heads, heads, 5};
      TestTensor x = f32_tensor("x", 3, channels * heads), taps = f32_tensor("k", heads, 5);
      TestTensor y = f32_tensor("y", 1, channels * heads);
      fill_uniform(x, channels);
      fill_uniform(taps, channels + 1);
      fill_uniform(y, channels + 2);
      std::vector<double> expected(y.width);
      for (uint32_t c = 0; c < y.width; ++c) {
        expected[c] = y.value(0, c);
        for (uint32_t a = 0; a < 3; ++a) {
          expected[c] += taps.value(c / channels, a + 1) * x.value(a, c);
        }
      }
      const std::vector<float> start(y.f32(), y.f32() + y.width);
      convolution_f32_f32_f32_ref(x.f32(), 3, taps.f32() + 1, params, y.f32());
      // Three products below 1 and sums below 4.
      for (uint32_t c = 0; c < y.width; ++c) ASSERT_NEAR(y.f32()[c], expected[c], 15 * 0x1p-24);
      testing::for_each_variant(kVariants, [&](ConvolutionKernel kernel) {
        TestTensor z = f32_tensor("z", 1, y.width);
        fill(z, start);
        kernel(x.f32(), 3, taps.f32() + 1, params, z.f32());
        for (uint32_t c = 0; c < y.width; ++c) ASSERT_EQ(z.f32()[c], y.f32()[c]) << c;
      });
    }
  }
}

/// Up to 9 rows of 24 channels; a ring of `left` rows. Symbol 0: rows.
struct Fixture {
  Fixture(uint32_t heads, uint32_t taps, uint32_t left, bool dynamic, bool has_memory, bool i8)
      : k(dynamic ? f32_tensor("k", 9, heads * taps) : f32_tensor("k", heads, taps)),
        memory(i8 ? i8_tensor("memory", std::max(left, 1u), 24, 3)
                  : f32_tensor("memory", std::max(left, 1u), 24)) {
    fill_uniform(x, 1);
    fill_uniform(k, 2, -2, 2);
    fill_uniform(memory, 3);
    op.inputs = {&x.with_symbol(0), &k};
    if (dynamic) k.rows_symbol = 0;
    if (has_memory) op.inputs.push_back(&memory.with_ring(0));
    op.outputs = {&y.with_symbol(0)};
    op.symbols = {9};
    op.symbol_maxima = {9};
    op.rings = {{0, 0}};
    op.ring_capacities = {left};
    options.heads = heads;
    options.taps = taps;
    options.left = left;
    options.dynamic = dynamic;
    options.has_memory = has_memory;
    set();
  }
  Fixture() : Fixture(4, 5, 4, false, true, false) {}
  void set() { op.options(options); }
  void add_bias() {
    fill_uniform(bias, 4);
    options.has_bias = true;
    op.inputs.push_back(&bias);
    set();
  }

  double row_before(int64_t row, size_t channel) const {
    const RingPosition& ring = op.rings[0];
    if (row >= 0) return row < op.symbols[0] ? x.value(static_cast<size_t>(row), channel) : 0;
    const int64_t held = options.has_memory ? ring.count : 0;
    if (held + row < 0) return 0;
    return memory.value((ring.head + static_cast<size_t>(held + row)) % memory.rows, channel);
  }
  double formula(size_t row, size_t channel) const {
    const size_t head = channel / (24 / options.heads);
    double sum = 0, total = 0;
    for (size_t a = 0; a < options.taps; ++a) {
      double tap = options.dynamic ? k.value(row, head * options.taps + a) : k.value(head, a);
      if (options.softmax) tap = std::exp(tap);
      total += tap;
      sum += tap * row_before(static_cast<int64_t>(row + a) - options.left, channel);
    }
    if (options.softmax) sum /= total;
    return options.has_bias ? sum + bias.value(0, channel) : sum;
  }
  TestTensor x = f32_tensor("x", 9, 24), y = f32_tensor("y", 9, 24), k, memory;
  TestTensor bias = f32_tensor("bias", 1, 24);
  OpRunner op{bind_convolution};
  schema::ConvolutionOptionsT options;
};

TEST(Convolution, FollowsTheFormulaForAnyTapsMemoryAndRun) {
  std::mt19937 random(5);
  constexpr uint32_t kHeads[] = {1, 2, 4, 8, 24};
  for (int round = 0; round < 600; ++round) {
    const uint32_t taps = 1 + random() % 7, left = random() % 9;
    const bool has_memory = left > 0 && random() % 2 == 0;
    Fixture s(kHeads[random() % 5], taps, left, random() % 2 == 0, has_memory, random() % 2 == 0);
    s.options.softmax = random() % 2 == 0;
    s.set();
    if (random() % 2 == 0) s.add_bias();
    s.op.symbols[0] = random() % 10;
    if (left > 0) {
      s.op.rings[0].head = random() % left;
      s.op.rings[0].count = random() % (left + 1);
    }
    s.op.threads = 1 + random() % 3;
    SCOPED_TRACE(::testing::Message()
                 << "round " << round << ": " << taps << " taps, left " << left << ", memory "
                 << has_memory << ", softmax " << s.options.softmax << ", dynamic "
                 << s.options.dynamic << ", rows " << s.op.symbols[0]);
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    for (size_t row = 0; row < 9; ++row) {
      for (size_t c = 0; c < 24; ++c) {
        if (row < s.op.symbols[0]) {
          // Seven products below 2, each rounded, and sums below 14.
          ASSERT_NEAR(s.y.f32(row)[c], s.formula(row, c), 4e-6) << row << " " << c;
        } else {
          ASSERT_TRUE(std::isnan(s.y.f32(row)[c])) << "untouched";
        }
      }
    }
  }
}

TEST(Convolution, OfPiecesWithTheRingPushedBetweenIsThatOfTheWhole) {
  Fixture whole(4, 5, 4, true, true, false);
  ASSERT_EQ(whole.op.bind_and_run(), Status::kOk) << whole.op.message();
  for (uint32_t cut = 1; cut < 9; ++cut) {
    Fixture second(4, 5, 4, true, true, false);
    // What the ring holds after the first `cut` rows, and the rest as a run of its own.
    const uint32_t held = std::min(cut, 4u);
    second.op.rings[0] = {1, held};
    for (uint32_t r = 0; r < held; ++r) {
      std::memcpy(second.memory.f32((1 + r) % 4), whole.x.f32(cut - held + r), 24 * sizeof(float));
    }
    for (uint32_t r = cut; r < 9; ++r) {
      std::memcpy(second.x.f32(r - cut), whole.x.f32(r), 24 * sizeof(float));
      std::memcpy(second.k.f32(r - cut), whole.k.f32(r), whole.k.stride());
    }
    second.op.symbols[0] = 9 - cut;
    ASSERT_EQ(second.op.bind_and_run(), Status::kOk) << second.op.message();
    for (uint32_t r = cut; r < 9; ++r) {
      for (size_t c = 0; c < 24; ++c) ASSERT_EQ(second.y.f32(r - cut)[c], whole.y.f32(r)[c]);
    }
  }
}

TEST(Convolution, ThreadsAndKernelsDoNotChangeTheBits) {
  testing::Buffer memory(ThreadPool::bytes(3));
  ThreadPool* pool = nullptr;
  ASSERT_EQ(ThreadPool::create(memory.data(), 3, nullptr, &pool), Status::kOk);
  for (bool dynamic : {false, true}) {
    Fixture one(8, 5, 3, dynamic, true, true), three(8, 5, 3, dynamic, true, true);
    for (Fixture* s : {&one, &three}) {
      s->options.softmax = true;
      s->set();
      s->op.rings[0] = {2, 3};
    }
    three.op.pool = pool;
    three.op.threads = 3;
    three.op.reference_only = false;
    ASSERT_EQ(one.op.bind_and_run(), Status::kOk) << one.op.message();
    ASSERT_EQ(three.op.bind_and_run(), Status::kOk) << three.op.message();
    for (size_t i = 0; i < 9 * 24; ++i) ASSERT_EQ(one.y.f32()[i], three.y.f32()[i]);
    // 72 floats of memory on 5 lines, 40 taps on 3, once or for each thread.
    EXPECT_EQ(three.op.scratch_bytes(), dynamic ? (5 + 3 * 3) * 64u : (5 + 3) * 64u);
  }
  ThreadPool::destroy(pool);
}

TEST(Convolution, NanStaysInItsChannelAndWithinReach) {
  Fixture s(4, 5, 4, false, false, false);
  s.x.f32(3)[7] = std::nanf("");
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk);
  for (size_t row = 0; row < 9; ++row) {
    for (size_t c = 0; c < 24; ++c) {
      EXPECT_EQ(std::isnan(s.y.f32(row)[c]), c == 7 && row >= 3 && row <= 7) << row << " " << c;
    }
  }
}

TEST(Convolution, ReachesFarBackWithoutAMemoryAndFindsNothing) {
  Fixture s(4, 5, 4, false, false, false);
  s.options.left = INT32_MAX;
  s.set();
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (size_t i = 0; i < 9 * 24; ++i) ASSERT_EQ(s.y.f32()[i], 0.0f);
}

void change(Fixture& s, void (*change_options)(schema::ConvolutionOptionsT&)) {
  change_options(s.options);
  s.set();
}

TEST(Convolution, RefusesStepsThatMakeNoSense) {
  using Options = schema::ConvolutionOptionsT;
  testing::expect_refusals<Fixture>({
      {"no options", [](Fixture& s) { s.op.step.options.Reset(); }, "no ConvolutionOptions"},
      {"wrong options", [](Fixture& s) { s.op.options(schema::LinearOptionsT()); },
       "no ConvolutionOptions"},
      {"no memory", [](Fixture& s) { s.op.inputs.pop_back(); }, "has 2 inputs"},
      {"a memory too many", [](Fixture& s) { change(s, [](Options& o) { o.has_memory = false; }); },
       "has 3 inputs"},
      {"no bias", [](Fixture& s) { change(s, [](Options& o) { o.has_bias = true; }); },
       "has 3 inputs"},
      {"bias width",
       [](Fixture& s) {
         s.add_bias();
         s.bias.width = 23;
       },
       "expected a width of 24"},
      {"bias rows",
       [](Fixture& s) {
         s.add_bias();
         s.bias.rows = 2;
       },
       "exactly one row"},
      {"outputs", [](Fixture& s) { s.op.outputs.clear(); }, "0 outputs"},
      {"no heads", [](Fixture& s) { change(s, [](Options& o) { o.heads = 0; }); }, "0 heads"},
      {"no taps", [](Fixture& s) { change(s, [](Options& o) { o.taps = 0; }); }, "0 taps"},
      {"heads that do not divide",
       [](Fixture& s) {
         s.k.rows = 5;
         change(s, [](Options& o) { o.heads = 5; });
       },
       "expected a divisor of 24"},
      {"too far back", [](Fixture& s) { change(s, [](Options& o) { o.left = 0x80000000u; }); },
       "reaches back 2147483648"},
      {"x type", [](Fixture& s) { s.x.type = DataType::kI32; }, "'x' is I32"},
      {"x ring", [](Fixture& s) { s.x.ring = 0; }, "in a ring"},
      {"k type", [](Fixture& s) { s.k.type = DataType::kI8; }, "'k' is I8"},
      {"k ring", [](Fixture& s) { s.k.ring = 0; }, "in a ring"},
      {"k rows", [](Fixture& s) { s.k.rows = 3; }, "expected 4 rows"},
      {"k width", [](Fixture& s) { s.k.width = 4; }, "expected a width of 5"},
      {"k symbol", [](Fixture& s) { s.k.rows_symbol = 0; }, "expected 4 rows"},
      {"dynamic k without rows",
       [](Fixture& s) {
         s.k.width = 20;
         change(s, [](Options& o) { o.dynamic = true; });
       },
       "expected equal rows"},
      {"dynamic k of another width",
       [](Fixture& s) {
         s.k.rows = 9;
         s.k.rows_symbol = 0;
         s.k.width = 21;
         change(s, [](Options& o) { o.dynamic = true; });
       },
       "expected a width of 20"},
      {"dynamic k of which the width wraps",
       [](Fixture& s) {
         s.k.rows = 9;
         s.k.rows_symbol = 0;
         s.k.width = 4;
         change(s, [](Options& o) {
           o.dynamic = true;
           o.taps = 0x40000001u;
         });
       },
       "expected a width of 4294967300"},
      {"memory without a ring", [](Fixture& s) { s.memory.ring = -1; }, "expected rows in a ring"},
      {"memory in blocks", [](Fixture& s) { s.memory.layout = Layout::kBlock8x4; },
       "expected plain rows"},
      {"memory smaller than left", [](Fixture& s) { change(s, [](Options& o) { o.left = 5; }); },
       "a ring of 5"},
      {"memory larger than left", [](Fixture& s) { change(s, [](Options& o) { o.left = 3; }); },
       "a ring of 3"},
      {"memory smaller than its ring", [](Fixture& s) { s.memory.rows = 3; }, "a ring of 4"},
      {"memory symbol", [](Fixture& s) { s.memory.rows_symbol = 0; }, "a ring of 4"},
      {"pinned memory", [](Fixture& s) { s.memory.pinned = 1; }, "none pinned"},
      {"memory type", [](Fixture& s) { s.memory.type = DataType::kI32; }, "expected F32 or I8"},
      {"memory scales",
       [](Fixture& s) {
         s.memory.type = DataType::kI8;
         s.memory.scale_groups = 5;
       },
       "divide the width"},
      {"memory width", [](Fixture& s) { s.memory.width = 23; }, "expected a width of 24"},
      {"y type", [](Fixture& s) { s.y.type = DataType::kI32; }, "'y' is I32"},
      {"y width", [](Fixture& s) { s.y.width = 23; }, "expected a width of 24"},
      {"y rows", [](Fixture& s) { s.y.rows_symbol = -1; }, "expected equal rows"},
  });
}

}  // namespace
}  // namespace oxbow

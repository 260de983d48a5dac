#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "ops/recurrence/recurrence.h"
#include "ops/testing/op_runner.h"
#include "ops/testing/team.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::TestTensor;

struct Variant {
  Isa isa;
  ChunkRowsKernel rows;
  ChunksKernel run;
};

constexpr Variant kVariants[] = {
#define OXB_CHUNKS(isa, name) {isa, recurrence_chunk_rows_##name, recurrence_chunks_##name},
#include "ops/recurrence/chunks.inc"
#undef OXB_CHUNKS
};

/// One head; keys are no longer than 1, as those of delta rules are.
struct Head {
  uint32_t tokens, keys, columns;
  TestTensor q, k, v, w, f, state, y;

  Head(uint32_t t, uint32_t dk, uint32_t n)
      : tokens(t),
        keys(dk),
        columns(n),
        q(f32_tensor("q", t, dk)),
        k(f32_tensor("k", t, dk)),
        v(f32_tensor("v", t, n)),
        w(f32_tensor("w", t, 1)),
        f(f32_tensor("f", t, 1)),
        state(f32_tensor("state", dk, n)),
        y(f32_tensor("y", t, n)) {
    const float longest = 1.0f / std::sqrt(static_cast<float>(dk));
    fill_uniform(q, 1);
    fill_uniform(k, 2, -longest, longest);
    fill_uniform(v, 3);
    fill_uniform(w, 4, 0.5f, 1.0f);
    fill_uniform(f, 5, 0.1f, 1.0f);
    fill_uniform(state, 6);
  }

  RecurrenceTile tile(bool decays, bool factors, bool delta) {
    RecurrenceTile tile;
    tile.tokens = tokens;
    tile.keys = keys;
    tile.columns = columns;
    tile.state = state.f32();
    tile.state_stride = columns;
    tile.q = {q.f32(), keys};
    tile.k = {k.f32(), keys};
    tile.v = {v.f32(), columns};
    if (decays) tile.decay = {w.f32(), 1};
    if (factors) tile.factor = {f.f32(), 1}, tile.divisor = {f.f32(), 1};
    tile.delta = delta;
    tile.y = y.f32();
    tile.y_stride = columns;
    return tile;
  }
};

void expect_near(const TestTensor& got, const TestTensor& expected) {
  for (size_t i = 0; i < size_t{got.rows} * got.width; ++i) {
    const double want = expected.f32()[i];
    ASSERT_NEAR(got.f32()[i], want, kRecurrenceChunkError * (1 + std::fabs(want))) << i;
  }
}

TEST(RecurrenceChunks, GiveWhatTokensOneByOneGiveAndTheSameBitsOnAllInstructionSets) {
  for (const uint32_t tokens : {1u, 16u, 70u, 128u}) {
    for (const uint32_t keys : {1u, 13u, 64u}) {
      for (const uint32_t columns : {1u, 8u, 31u, 32u}) {
        for (int bits = 0; bits < 8; ++bits) {
          const bool decays = (bits & 1) != 0, factors = (bits & 2) != 0, delta = (bits & 4) != 0;
          SCOPED_TRACE(::testing::Message()
                       << tokens << " " << keys << " " << columns << " " << bits);
          Head expected(tokens, keys, columns);
          std::optional<Head> reference;
          recurrence_f32_f32_ref(expected.tile(decays, factors, delta));
          for (const Variant& variant : kVariants) {
            if (!cpu_supports(variant.isa)) continue;
            Head head(tokens, keys, columns);
            const RecurrenceTile tile = head.tile(decays, factors, delta);
            std::vector<ChunkRow> rows(tokens);
            for (size_t t = 0; t < tokens; t += kRecurrenceChunk)
              variant.rows(tile, t, rows.data());
            variant.run(tile, rows.data());
            expect_near(head.y, expected.y);
            expect_near(head.state, expected.state);
            if (reference) {
              ASSERT_TRUE(testing::same_bits(head.y, reference->y));
              ASSERT_TRUE(testing::same_bits(head.state, reference->state));
            }
            reference.emplace(std::move(head));
          }
        }
      }
    }
  }
}

/// Two heads through the op.
struct Step {
  static constexpr uint32_t kTokens = 90, kHeads = 2, kKeys = kRecurrenceChunkKeys + 1,
                            kValues = 70;
  TestTensor q = f32_tensor("q", kTokens, kHeads*kKeys), k = f32_tensor("k", kTokens, q.width),
             v = f32_tensor("v", kTokens, kHeads*kValues),
             state = f32_tensor("state", kHeads*kKeys, kValues),
             decay = f32_tensor("decay", kTokens, kHeads),
             factor = f32_tensor("factor", kTokens, kHeads), y = f32_tensor("y", kTokens, v.width);
  testing::OpRunner op{bind_recurrence};

  Step() {
    fill_uniform(q, 1);
    fill_uniform(k, 2, -0.1f, 0.1f);
    fill_uniform(v, 3);
    fill_uniform(state, 4);
    for (TestTensor* tensor : {&decay, &factor}) fill_uniform(*tensor, 5, 0.2f, 0.9f);
    for (TestTensor* tensor : {&q, &k, &v, &decay, &factor, &y}) tensor->rows_symbol = 0;
    schema::RecurrenceOptionsT options;
    options.heads = options.key_heads = kHeads;
    options.has_decay = options.has_factor = options.delta = true;
    op.inputs = {&q, &k, &v, &state, &decay, &factor};
    op.outputs = {&y, &state};
    op.symbols = {kTokens};
    op.options(options);
  }
};

TEST(RecurrenceChunks, LongRunsGiveTheSameBitsWithAnyNumberOfThreads) {
  Step one, three;
  const testing::Team team(3);
  three.op.pool = team.pool();
  three.op.threads = 3;
  three.op.reference_only = false;
  ASSERT_EQ(one.op.bind_and_run(), Status::kOk) << one.op.message();
  ASSERT_EQ(three.op.bind_and_run(), Status::kOk) << three.op.message();
  EXPECT_TRUE(testing::same_bits(one.y, three.y));
  EXPECT_TRUE(testing::same_bits(one.state, three.state));
}

TEST(RecurrenceChunks, ShortRunsOfALongStepTakeTokensOneByOne) {
  Step whole, cut;
  whole.op.symbols = {kRecurrenceChunked - 1};
  ASSERT_EQ(whole.op.bind_and_run(), Status::kOk) << whole.op.message();
  cut.op.symbols = {1};
  ASSERT_EQ(cut.op.bind_and_run(), Status::kOk) << cut.op.message();
  for (size_t i = 0; i < cut.y.width; ++i) ASSERT_EQ(cut.y.f32()[i], whole.y.f32()[i]) << i;
}

}  // namespace
}  // namespace oxbow

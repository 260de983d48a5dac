// Blocks that are listed, segments with a dilation, and chunks in a circle, of rows as they are or sorted.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "ops/attention/seen.h"
#include "ops/attention/testing/test_case.h"
#include "ops/testing/team.h"

namespace oxbow {
namespace {

using attention_test::Attention;
using attention_test::Case;
using Kind = schema::PatternKind;
using testing::f32_tensor;
using testing::i32_tensor;
using testing::TestTensor;

std::vector<uint64_t> shown(const PatternParams& p, uint64_t head, uint64_t query,
                            uint64_t positions) {
  struct Keys : std::vector<uint64_t> {
    uint64_t positions;
    void push(const PositionSpan& span) {
      ASSERT_GT(span.count, 0u);
      ASSERT_LE(span.first + (span.count - 1) * span.step, positions - 1);
      for (uint64_t i = 0; i < span.count; ++i) push_back(span.first + i * span.step);
    }
  } keys;
  keys.positions = positions;
  visit_of(p.kind)(p, head, query, positions, sink_of(keys));
  std::sort(keys.begin(), keys.end());
  return keys;
}

TEST(ListedBlocks, AreSeenBesideTheOwnTheFirstAndTheLastAsOftenAsListed) {
  constexpr uint64_t kBlocks = 9, kListed = 3, kHeads = 2, kLength = 4;
  std::mt19937 random(5);
  std::vector<int32_t> list(kHeads * (kBlocks - 2) * kListed);
  for (int32_t& block : list) block = static_cast<int32_t>(random() % kBlocks);
  for (bool given : {false, true}) {
    PatternParams p;
    p.kind = Kind::ListedBlocks;
    p.length = kLength;
    p.listed = kListed;
    p.full_up_to = 20;
    p.list = given ? list.data() : nullptr;
    for (uint64_t positions : {1u, 20u, 36u}) {
      for (uint64_t head = 0; head < kHeads; ++head) {
        for (uint64_t query = 0; query < positions; ++query) {
          const uint64_t block = query / kLength;
          std::vector<uint64_t> want;
          for (uint64_t key = 0; key < positions; ++key) {
            const uint64_t of = key / kLength;
            uint64_t times = 1;
            if (positions > 20 && block != 0 && block != kBlocks - 1) {
              times = of == 0 || of == kBlocks - 1 || (of + 1 >= block && of <= block + 1) ? 1 : 0;
              for (uint64_t i = 0; i < kListed; ++i) {
                const uint64_t at = (head * (kBlocks - 2) + block - 1) * kListed + i;
                times += (given ? static_cast<uint64_t>(list[at]) : 0) == of ? 1 : 0;
              }
            }
            want.insert(want.end(), times, key);
          }
          ASSERT_EQ(shown(p, head, query, positions), want) << positions << " " << query;
        }
      }
    }
  }
}

TEST(Segments, ShowEachGroupOfHeadsItsOwnPositionsFromTheStartOfTheStreamOn) {
  for (uint32_t dilation : {1u, 2u, 3u, 5u}) {
    PatternParams p;
    p.kind = Kind::Segments;
    p.length = 6;
    p.dilation = &dilation;
    p.dilations = 1;
    p.heads = 4;
    for (uint64_t origin : {0u, 1u, 4u, 9u}) {
      p.origin = origin;
      for (uint64_t head = 0; head < 4; ++head) {
        const uint64_t group = head / ((4 + dilation - 1) / dilation);
        for (uint64_t query = 0; query < 20; ++query) {
          std::vector<uint64_t> want;
          for (uint64_t key = 0; key <= query; ++key) {
            const uint64_t at = origin + key, own = origin + query;
            if (at / 6 == own / 6 && at % 6 % dilation == group && own % 6 % dilation == group) {
              want.push_back(key);
            }
          }
          ASSERT_EQ(shown(p, head, query, 20), want) << dilation << origin << head << query;
        }
      }
    }
  }
}

TEST(Circle, ShowsNeighbouringChunksAsOftenAsTheyAreMet) {
  for (bool causal : {false, true}) {
    for (uint32_t before : {0u, 1u, 2u, 5u}) {
      for (uint32_t after : {0u, 1u, 3u}) {
        PatternParams p;
        p.kind = Kind::Circle;
        p.length = p.full_up_to = 4;
        p.before = before;
        p.after = after;
        p.causal = causal;
        for (int64_t chunks : {1, 2, 3, 7}) {
          const int64_t positions = 4 * chunks;
          for (int64_t query = 0; query < positions; ++query) {
            std::vector<uint64_t> want;
            for (int64_t key = 0; key < positions; ++key) {
              if (causal && key > query) continue;
              int64_t times = chunks == 1 ? 1 : 0;
              for (int64_t i = -int64_t{before}; chunks > 1 && i <= int64_t{after}; ++i) {
                const int64_t away = std::abs(i) >= chunks ? 0 : i;
                const int64_t chunk = ((query / 4 + away) % chunks + chunks) % chunks;
                times += chunk == key / 4 ? 1 : 0;
              }
              want.insert(want.end(), static_cast<size_t>(times), static_cast<uint64_t>(key));
            }
            ASSERT_EQ(shown(p, 0, static_cast<uint64_t>(query), static_cast<uint64_t>(positions)),
                      want);
          }
        }
      }
    }
  }
}

/// A step over sorted rows: 2 heads of 8, 3 rounds, chunks of 4.
struct Sorted {
  static constexpr uint32_t kRounds = 3, kLength = 4;
  Attention a;
  TestTensor order;

  static Case sorted_case(DataType type, uint32_t rows, bool causal, bool masked) {
    Case c;
    c.type = type;
    c.rows = rows;
    c.max_rows = 24;
    c.key_mask = masked;
    c.pattern.emplace();
    c.pattern->kind = Kind::Circle;
    c.pattern->length = c.pattern->full_up_to = kLength;
    c.pattern->before = 1;
    c.pattern->rounds = kRounds;
    c.pattern->causal = causal;
    return c;
  }

  Sorted(DataType type, uint32_t rows, bool causal, bool masked, uint32_t seed = 9)
      : a(sorted_case(type, rows, causal, masked)),
        order(i32_tensor("order", 2 * kRounds * 24, 1)) {
    order.with_symbol(1);
    a.op.symbols.push_back(2 * kRounds * rows);
    a.op.symbol_maxima.push_back(2 * kRounds * 24);
    a.op.settable_symbols.push_back(true);
    a.op.inputs.push_back(&order);
    a.add_term(schema::TermKind::Order, 1);
    a.add_term(schema::TermKind::OwnScore, 0).value = -1e5f;
    std::mt19937 random(seed);
    for (uint32_t list = 0; list < 2 * kRounds; ++list) {
      int32_t* of = order.i32() + list * rows;
      std::iota(of, of + rows, 0);
      std::shuffle(of, of + rows, random);
    }
  }

  /// By the words of the schema, in double.
  std::vector<double> formula(size_t row, size_t head) const {
    const size_t rows = a.test.rows, chunks = rows / kLength * kRounds;
    const int32_t* of = order.i32() + head * kRounds * rows;
    double sum = 0;
    std::vector<double> out(8);
    // Rounds that are mixed by their log-sum-exp are one softmax over all their keys.
    std::vector<std::pair<double, size_t>> scores;
    for (size_t slot = 0; slot < rows * kRounds; ++slot) {
      if (static_cast<size_t>(of[slot]) != row) continue;
      const size_t chunk = slot / kLength;
      for (size_t other : {(chunk + chunks - 1) % chunks, chunk}) {
        for (size_t i = 0; i < kLength; ++i) {
          const auto key = static_cast<size_t>(of[other * kLength + i]);
          if (a.test.pattern->causal && key > row) continue;
          if (a.mask != nullptr && a.mask->i32()[key] == 0) continue;
          double score = 0;
          for (size_t d = 0; d < 8; ++d) {
            score += a.q->value(row, head * 8 + d) * a.k[0]->value(key, head * 8 + d);
          }
          scores.emplace_back(key == row ? -1e5 : score / std::sqrt(8.0), key);
        }
      }
    }
    double most = -1e30;
    for (const auto& [score, key] : scores) most = std::max(most, score);
    for (const auto& [score, key] : scores) {
      const double weight = std::exp(score - most);
      sum += weight;
      for (size_t d = 0; d < 8; ++d) out[d] += weight * a.v[0]->value(key, head * 8 + d);
    }
    for (double& value : out) value = sum == 0 ? 0 : value / sum;
    return out;
  }
};

TEST(SortedRows, MixTheirRoundsAsTheFormulaSays) {
  for (bool causal : {false, true}) {
    for (bool masked : {false, true}) {
      for (uint32_t rows : {8u, 12u, 24u}) {
        Sorted s(DataType::kF32, rows, causal, masked);
        ASSERT_EQ(s.a.bind_and_run(), Status::kOk) << s.a.op.message();
        for (size_t row = 0; row < rows; ++row) {
          for (size_t head = 0; head < 2; ++head) {
            const std::vector<double> want = s.formula(row, head);
            for (size_t d = 0; d < 8; ++d) {
              ASSERT_NEAR(s.a.out->value(row, head * 8 + d), want[d], 2e-6) << row << " " << head;
            }
          }
        }
      }
    }
  }
}

TEST(SortedRows, OfOneRoundInTheirOwnOrderAreAPlainCircleToTheBit) {
  for (DataType type : {DataType::kF32, DataType::kI8}) {
    for (bool reference : {true, false}) {
      Sorted s(type, 24, true, true);
      s.a.options.pattern->rounds = 1;
      s.a.op.symbols[1] = 2 * 24;
      for (int32_t list = 0; list < 2; ++list)
        std::iota(s.order.i32() + 24 * list, s.order.i32() + 24 * (list + 1), 0);
      s.a.op.reference_only = reference;
      ASSERT_EQ(s.a.bind_and_run(), Status::kOk) << s.a.op.message();
      Case plain = Sorted::sorted_case(type, 24, true, true);
      plain.pattern->rounds = 1;
      Attention other(plain);
      other.add_term(schema::TermKind::OwnScore, 0).value = -1e5f;
      other.op.reference_only = reference;
      ASSERT_EQ(other.bind_and_run(), Status::kOk) << other.op.message();
      EXPECT_EQ(s.a.result(), other.result());
    }
  }
}

TEST(SortedRows, AreTheSameBitsForEveryKernelAndNumberOfThreadsInInt8) {
  Sorted reference(DataType::kI8, 24, true, true);
  ASSERT_EQ(reference.a.bind_and_run(), Status::kOk) << reference.a.op.message();
  for (size_t threads : {1u, 2u, 5u}) {
    testing::Team team(threads);
    Sorted s(DataType::kI8, 24, true, true);
    s.a.op.reference_only = false;
    s.a.op.threads = threads;
    s.a.op.pool = team.pool();
    ASSERT_EQ(s.a.bind_and_run(), Status::kOk) << s.a.op.message();
    EXPECT_EQ(s.a.result(), reference.a.result()) << threads << " threads";
  }
}

TEST(SortedRows, OfAShortRunAreNotSorted) {
  Sorted s(DataType::kF32, 4, true, false);
  s.a.op.symbols[1] = 0;
  ASSERT_EQ(s.a.bind_and_run(), Status::kOk) << s.a.op.message();
  // The first row sees only itself, the second only the first.
  for (size_t d = 0; d < 8; ++d) {
    EXPECT_EQ(s.a.out->value(0, d), s.a.v[0]->value(0, d));
    EXPECT_EQ(s.a.out->value(1, d), s.a.v[0]->value(0, d));
  }
}

TEST(SortedRows, RefuseAnOrderThatIsNone) {
  Sorted short_order(DataType::kF32, 8, true, false);
  short_order.a.op.symbols[1] = 8;
  EXPECT_EQ(short_order.a.bind_and_run(), Status::kInvalidArgument);
  Sorted wrong(DataType::kF32, 8, true, false);
  wrong.order.i32()[5] = 8;
  EXPECT_EQ(wrong.a.bind_and_run(), Status::kFileCorrupt);
  // Two threads would write what it gives.
  Sorted twice(DataType::kF32, 8, true, false);
  twice.order.i32()[5] = twice.order.i32()[2];
  EXPECT_EQ(twice.a.bind_and_run(), Status::kFileCorrupt);
  Sorted odd(DataType::kF32, 8, true, false);
  odd.a.op.symbols[0] = 7;
  EXPECT_EQ(odd.a.bind_and_run(), Status::kInvalidArgument);
}

TEST(ListedBlocks, OfACallerAreChecked) {
  for (int32_t wrong : {-1, 5, 0}) {
    Case c;
    c.rows = c.max_rows = 17;
    c.key_mask = c.mask_queries = true;
    c.pattern.emplace();
    c.pattern->kind = Kind::ListedBlocks;
    c.pattern->length = 4;
    c.pattern->listed = 1;
    Attention a(c);
    TestTensor list = i32_tensor("list", 6, 1);
    list.with_symbol(1);
    std::fill_n(list.i32(), 6, 2);
    list.i32()[3] = wrong;
    a.op.symbols.push_back(wrong == 0 ? 5 : 6);
    a.op.symbol_maxima.push_back(6);
    a.op.settable_symbols.push_back(true);
    a.op.inputs.push_back(&list);
    a.add_term(schema::TermKind::Blocks, 1);
    EXPECT_EQ(a.bind_and_run(), Status::kInvalidArgument) << wrong;
    a.op.symbols[1] = 6;
    list.i32()[3] = 4;
    EXPECT_EQ(a.bind_and_run(), Status::kOk) << a.op.message();
  }
}

}  // namespace
}  // namespace oxbow

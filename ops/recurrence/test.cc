#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/recurrence/recurrence.h"
#include "ops/testing/refusals.h"
#include "ops/testing/team.h"

namespace oxbow {
namespace {

using schema::Normaliser;
using testing::f32_tensor;
using testing::OpRunner;
using testing::TestTensor;

struct Variant {
  Isa isa;
  RecurrenceKernel kernel;
  const char* name;
};

constexpr Variant kVariants[] = {
#define OXB_KERNEL(isa, fn) {isa, fn, #fn},
#include "ops/recurrence/kernels.inc"
#undef OXB_KERNEL
};

constexpr uint32_t kTokens = 6, kHeads = 4, kKeyHeads = 2;

/// A step of every kind, by what its options say.
struct Fixture {
  schema::RecurrenceOptionsT options;
  uint32_t keys, values;
  TestTensor q, k, v, state, decay, factor, a, b, norm, floor, y;
  OpRunner op{bind_recurrence};

  explicit Fixture(const schema::RecurrenceOptionsT& from = gated_delta(), uint32_t dk = 5,
                   uint32_t dv = 7, bool per_key = false)
      : options(from),
        keys(dk),
        values(dv),
        q(f32_tensor("q", kTokens, kKeyHeads * dk)),
        k(f32_tensor("k", kTokens, kKeyHeads * dk)),
        v(f32_tensor("v", kTokens, kHeads * dv)),
        state(f32_tensor("state", kHeads * dk, dv)),
        decay(f32_tensor("decay", kTokens, per_key ? kHeads * dk : kHeads)),
        factor(f32_tensor("factor", kTokens, kHeads)),
        a(f32_tensor("a", kTokens, kHeads * dk)),
        b(f32_tensor("b", kTokens, kHeads * dk)),
        norm(options.normaliser == Normaliser::Decays ? f32_tensor("norm", 1, kHeads)
                                                      : f32_tensor("norm", kHeads, dk)),
        floor(f32_tensor("floor", kTokens, kHeads)),
        y(f32_tensor("y", kTokens, kHeads * dv)) {
    uint64_t seed = 1;
    for (TestTensor* tensor : {&q, &k, &v, &state, &a, &b}) fill_uniform(*tensor, seed++);
    for (TestTensor* tensor : {&decay, &factor, &norm, &floor})
      fill_uniform(*tensor, seed++, 0.2f, 0.9f);
    for (TestTensor* tensor : {&q, &k, &v, &decay, &factor, &a, &b, &floor, &y}) {
      tensor->rows_symbol = 0;
    }
    op.symbols = {kTokens};
    connect();
  }

  static schema::RecurrenceOptionsT gated_delta() {
    schema::RecurrenceOptionsT value;
    value.heads = kHeads;
    value.key_heads = kKeyHeads;
    value.has_decay = value.has_factor = value.delta = true;
    return value;
  }

  void connect() {
    op.inputs.clear();
    op.outputs.clear();
    if (options.reads) op.inputs.push_back(&q);
    if (options.writes) op.inputs.insert(op.inputs.end(), {&k, &v});
    op.inputs.push_back(&state);
    if (options.has_decay) op.inputs.push_back(&decay);
    if (options.has_factor) op.inputs.push_back(&factor);
    if (options.rank_one) op.inputs.insert(op.inputs.end(), {&a, &b});
    if (options.normaliser != Normaliser::None) op.inputs.push_back(&norm);
    if (options.normaliser == Normaliser::Floored) op.inputs.push_back(&floor);
    if (options.reads) op.outputs.push_back(&y);
    if (options.writes) op.outputs.push_back(&state);
    if (options.writes && options.normaliser != Normaliser::None) op.outputs.push_back(&norm);
    op.options(options);
  }
};

using Matrix = std::vector<double>;

Matrix values_of(const TestTensor& tensor) {
  Matrix out;
  for (size_t row = 0; row < tensor.rows; ++row) {
    for (size_t i = 0; i < tensor.width; ++i) out.push_back(tensor.value(row, i));
  }
  return out;
}

/// The rule of the schema in double. S is kept as the op keeps it; normalised by decays, it is the
/// state itself that is multiplied here, and divided only when it is looked at.
struct Formula {
  Matrix state, norm, y;

  Formula(const Fixture& s, size_t tokens) : state(values_of(s.state)), norm(values_of(s.norm)) {
    y.assign(size_t{kTokens} * kHeads * s.values, 0.0);
    for (size_t h = 0; h < kHeads; ++h) {
      const auto& o = s.options;
      const size_t dk = s.keys, dv = s.values, g = h / (kHeads / kKeyHeads);
      Matrix S(state.begin() + static_cast<ptrdiff_t>(h * dk * dv),
               state.begin() + static_cast<ptrdiff_t>((h + 1) * dk * dv));
      const bool decays = o.normaliser == Normaliser::Decays;
      const bool floored = o.normaliser == Normaliser::Floored;
      const bool by_keys = o.normaliser == Normaliser::Keys || floored;
      if (decays) {
        for (double& x : S) x *= std::sqrt(norm[h]);
      }
      for (size_t t = 0; t < tokens; ++t) {
        const auto read = [&] {
          double divisor = decays ? std::sqrt(norm[h]) : 1.0;
          if (by_keys) {
            double sum = 0;
            for (size_t i = 0; i < dk; ++i) sum += norm[h * dk + i] * s.q.value(t, g * dk + i);
            divisor = floored ? std::max(std::fabs(sum), s.floor.value(t, h)) + double{o.epsilon}
                              : std::max(std::fabs(sum), double{o.epsilon});
          }
          for (size_t c = 0; c < dv; ++c) {
            double sum = 0;
            for (size_t i = 0; i < dk; ++i) sum += S[i * dv + c] * s.q.value(t, g * dk + i);
            y[(t * kHeads + h) * dv + c] = sum / divisor;
          }
        };
        if (o.reads && (o.read_before || !o.writes)) read();
        if (!o.writes) continue;
        const auto w = [&](size_t i) {
          if (!o.has_decay) return 1.0;
          const size_t row = s.decay.rows_symbol < 0 ? 0 : t;
          return s.decay.width == kHeads ? s.decay.value(row, h) : s.decay.value(row, h * dk + i);
        };
        Matrix old = S;
        for (size_t c = 0; c < dv; ++c) {
          double seen = 0, known = 0;
          for (size_t i = 0; i < dk; ++i) {
            seen += old[i * dv + c] * s.a.value(t, h * dk + i);
            known += w(i) * old[i * dv + c] * s.k.value(t, g * dk + i);
          }
          double value = s.v.value(t, h * dv + c) - (o.delta ? known : 0);
          if (o.has_factor) value *= s.factor.value(t, h);
          for (size_t i = 0; i < dk; ++i) {
            S[i * dv + c] = w(i) * old[i * dv + c] + s.k.value(t, g * dk + i) * value;
            if (o.rank_one) S[i * dv + c] += s.b.value(t, h * dk + i) * seen;
          }
        }
        for (size_t i = 0; by_keys && i < dk; ++i) {
          const double factor = floored && o.has_factor ? s.factor.value(t, h) : 1.0;
          norm[h * dk + i] = w(i) * norm[h * dk + i] + factor * s.k.value(t, g * dk + i);
        }
        if (decays) norm[h] = w(0) * norm[h] + 1;
        if (o.reads && !o.read_before) read();
      }
      for (size_t i = 0; i < dk * dv; ++i) {
        state[h * dk * dv + i] = S[i] / (decays ? std::sqrt(norm[h]) : 1.0);
      }
    }
  }
};

/// Every rule that a model of ours has, and then some.
std::vector<schema::RecurrenceOptionsT> all_rules() {
  std::vector<schema::RecurrenceOptionsT> rules;
  for (int bits = 0; bits < 32; ++bits) {
    schema::RecurrenceOptionsT rule;
    rule.heads = kHeads;
    rule.key_heads = kKeyHeads;
    rule.has_decay = (bits & 1) != 0;
    rule.has_factor = (bits & 2) != 0;
    rule.delta = (bits & 4) != 0;
    rule.rank_one = (bits & 8) != 0;
    rule.read_before = (bits & 16) != 0;
    rule.epsilon = 1e-3f;
    rules.push_back(rule);
    rule.normaliser = Normaliser::Keys;
    if (!rule.delta) rules.push_back(rule);
    rule.normaliser = Normaliser::Floored;
    if (!rule.delta) rules.push_back(rule);
    rule.normaliser = Normaliser::Decays;
    if (!rule.delta && !rule.rank_one && !rule.read_before) rules.push_back(rule);
  }
  for (const Normaliser normaliser : {Normaliser::None, Normaliser::Keys}) {
    schema::RecurrenceOptionsT rule;
    rule.heads = kHeads;
    rule.key_heads = kKeyHeads;
    rule.normaliser = normaliser;
    rule.epsilon = 1e-3f;
    rule.writes = false;
    rules.push_back(rule);
    rule.writes = true;
    rule.reads = false;
    rules.push_back(rule);
  }
  return rules;
}

void expect_near(const TestTensor& got, const Matrix& expected, size_t rows, double tolerance) {
  for (size_t i = 0; i < rows * got.width; ++i) {
    ASSERT_NEAR(got.f32()[i], expected[i], tolerance * (1 + std::fabs(expected[i])))
        << got.name << " at " << i;
  }
}

TEST(Recurrence, EveryRuleFollowsTheFormula) {
  for (const schema::RecurrenceOptionsT& rule : all_rules()) {
    for (const bool per_key : {false, true}) {
      if (per_key && (!rule.has_decay || rule.normaliser == Normaliser::Decays)) continue;
      Fixture s(rule, 5, 7, per_key);
      const Formula expected(s, kTokens);
      ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
      // Six tokens of a few dozen roundings each, on values that a rank-one update without decay lets
      // grow a hundredfold; a divisor of 1e-3 and up multiplies them once more.
      const double tolerance = 2e-5 * (rule.normaliser == Normaliser::Keys ? 20 : 1);
      if (rule.reads) expect_near(s.y, expected.y, kTokens, tolerance);
      expect_near(s.state, expected.state, s.state.rows, 2e-5);
      if (rule.normaliser != Normaliser::None) {
        expect_near(s.norm, expected.norm, s.norm.rows, 1e-6);
      }
    }
  }
}

TEST(Recurrence, OneDecayCanServeAllTokens) {
  Fixture s;
  s.decay.rows_symbol = -1;
  s.decay.rows = 1;
  const Formula expected(s, kTokens);
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  expect_near(s.y, expected.y, kTokens, 2e-5);
}

TEST(Recurrence, EveryVariantGivesTheBitsOfTheReference) {
  for (const uint32_t columns : testing::simd_sizes_up_to(kRecurrenceColumns)) {
    for (const uint32_t keys : {1u, 4u, 13u}) {
      for (int bits = 0; bits < 32; ++bits) {
        TestTensor q = f32_tensor("q", 3, keys), k = f32_tensor("k", 3, keys),
                   a = f32_tensor("a", 3, keys), b = f32_tensor("b", 3, keys),
                   w = f32_tensor("w", 3, keys), f = f32_tensor("f", 3, 1),
                   v = f32_tensor("v", 3, columns);
        uint64_t seed = columns;
        for (TestTensor* tensor : {&q, &k, &a, &b, &w, &f, &v}) fill_uniform(*tensor, ++seed);
        RecurrenceTile tile;
        tile.tokens = 3;
        tile.keys = keys;
        tile.columns = columns;
        tile.state_stride = columns;
        if ((bits & 3) != 1) tile.q = {q.f32(), keys};
        if ((bits & 3) != 2) tile.k = {k.f32(), keys}, tile.v = {v.f32(), columns};
        tile.read_before = (bits & 3) == 3;
        if ((bits & 4) != 0) tile.decay = {w.f32(), keys}, tile.decay_per_key = true;
        if ((bits & 8) != 0) tile.factor = {f.f32(), 1}, tile.divisor = {f.f32(), 1};
        if ((bits & 16) != 0) tile.a = {a.f32(), keys}, tile.b = {b.f32(), keys};
        tile.delta = (bits & 20) == 20;
        tile.y_stride = columns;
        std::vector<TestTensor> states, outputs;
        for (const Variant& variant : kVariants) {
          if (!cpu_supports(variant.isa)) continue;
          TestTensor state = f32_tensor("state", keys, columns);
          fill_uniform(state, 99);
          TestTensor y = f32_tensor("y", 3, columns);
          tile.state = state.f32();
          tile.y = y.f32();
          variant.kernel(tile);
          states.push_back(std::move(state));
          outputs.push_back(std::move(y));
        }
        for (size_t i = 0; i < states.size(); ++i) {
          ASSERT_TRUE(testing::same_bits(states[i], states.back())) << columns << " " << bits;
          ASSERT_TRUE(testing::same_bits(outputs[i], outputs.back())) << columns << " " << bits;
        }
      }
    }
  }
}

TEST(Recurrence, GivesTheSameBitsHoweverTheStreamIsCutAndWithAnyNumberOfThreads) {
  for (const Normaliser normaliser : {Normaliser::None, Normaliser::Keys, Normaliser::Decays}) {
    schema::RecurrenceOptionsT rule = Fixture::gated_delta();
    rule.delta = normaliser == Normaliser::None;
    rule.normaliser = normaliser;
    rule.epsilon = 1e-6f;
    Fixture whole(rule, 9, 67), cut(rule, 9, 67);
    const testing::Team team(3);
    cut.op.pool = team.pool();
    cut.op.threads = 3;
    cut.op.reference_only = false;
    ASSERT_EQ(whole.op.bind_and_run(), Status::kOk) << whole.op.message();
    for (const uint32_t first : {0u, 1u, 3u}) {
      const uint32_t next = first == 0 ? 1 : first == 1 ? 3 : kTokens;
      Fixture piece(rule, 9, 67);
      for (TestTensor* tensor :
           {&piece.q, &piece.k, &piece.v, &piece.decay, &piece.factor, &piece.y}) {
        if (tensor == &piece.y) continue;
        std::copy_n(tensor->f32(first), (next - first) * tensor->width, tensor->f32());
      }
      std::copy_n(cut.state.f32(), cut.state.rows * cut.state.width, piece.state.f32());
      std::copy_n(cut.norm.f32(), cut.norm.rows * cut.norm.width, piece.norm.f32());
      piece.op.symbols = {next - first};
      piece.op.pool = team.pool();
      piece.op.threads = 3;
      piece.op.reference_only = false;
      ASSERT_EQ(piece.op.bind_and_run(), Status::kOk) << piece.op.message();
      std::copy_n(piece.y.f32(), (next - first) * piece.y.width, cut.y.f32(first));
      std::copy_n(piece.state.f32(), cut.state.rows * cut.state.width, cut.state.f32());
      std::copy_n(piece.norm.f32(), cut.norm.rows * cut.norm.width, cut.norm.f32());
    }
    EXPECT_TRUE(testing::same_bits(whole.y, cut.y));
    EXPECT_TRUE(testing::same_bits(whole.state, cut.state));
    EXPECT_TRUE(testing::same_bits(whole.norm, cut.norm));
  }
}

TEST(Recurrence, RunsOverTheActualTokensOnlyEvenIfNone) {
  for (const uint32_t tokens : {0u, 2u}) {
    Fixture s, untouched;
    s.op.symbols = {tokens};
    const Formula expected(s, tokens);
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    expect_near(s.y, expected.y, tokens, 2e-5);
    EXPECT_TRUE(std::isnan(s.y.f32(tokens)[0])) << "untouched";
    EXPECT_EQ(testing::same_bits(s.state, untouched.state), tokens == 0);
  }
}

TEST(Recurrence, NanSpoilsItsOwnHeadOnly) {
  Fixture s;
  s.v.f32(1)[0] = std::nanf("");
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk);
  EXPECT_TRUE(std::isnan(s.y.f32(2)[0]));
  for (size_t i = 1; i < s.y.width; ++i) EXPECT_TRUE(std::isfinite(s.y.f32(5)[i])) << i;
}

template <auto kMember>
void set(Fixture& s, decltype(schema::RecurrenceOptionsT().*kMember) value) {
  s.options.*kMember = value;
  s.connect();
}

TEST(Recurrence, RefusesStepsThatMakeNoSense) {
  using Options = schema::RecurrenceOptionsT;
  testing::expect_refusals<Fixture>({
      {"no options", [](Fixture& s) { s.op.step.options.Reset(); }, "no RecurrenceOptions"},
      {"no heads", [](Fixture& s) { set<&Options::heads>(s, 0); }, "0 heads"},
      {"no key heads", [](Fixture& s) { set<&Options::key_heads>(s, 0); }, "0 key heads"},
      {"key heads", [](Fixture& s) { set<&Options::key_heads>(s, 3); }, "3 key heads"},
      {"more heads", [](Fixture& s) { set<&Options::heads>(s, 8); }, "'v' is"},
      {"more key heads", [](Fixture& s) { set<&Options::key_heads>(s, 4); }, "'q' is"},
      {"nothing to do",
       [](Fixture& s) {
         s.options.reads = s.options.writes = false;
         s.options.has_decay = s.options.has_factor = s.options.rank_one = false;
         s.connect();
       },
       "neither reads nor writes"},
      {"reads only", [](Fixture& s) { set<&Options::writes>(s, false); }, "says how to write"},
      {"normaliser", [](Fixture& s) { set<&Options::normaliser>(s, static_cast<Normaliser>(4)); },
       "normaliser is 4"},
      {"a floor without its epsilon",
       [](Fixture& s) { set<&Options::normaliser>(s, Normaliser::Floored); }, "epsilon is 0"},
      {"epsilon",
       [](Fixture& s) {
         s.options.delta = false;
         set<&Options::normaliser>(s, Normaliser::Keys);
       },
       "epsilon is 0"},
      {"delta and keys",
       [](Fixture& s) {
         s.options.epsilon = 1;
         set<&Options::normaliser>(s, Normaliser::Keys);
       },
       "delta rule"},
      {"norm of another shape",
       [](Fixture& s) {
         s.options.delta = false;
         set<&Options::normaliser>(s, Normaliser::Decays);
       },
       "'norm' is"},
      {"inputs", [](Fixture& s) { s.op.inputs.pop_back(); }, "has 5 inputs"},
      {"outputs", [](Fixture& s) { s.op.outputs.pop_back(); }, "1 outputs"},
      {"q type", [](Fixture& s) { s.q.type = DataType::kI8; }, "'q' is I8"},
      {"q width", [](Fixture& s) { s.q.width = 9; }, "'q' is"},
      {"no q width", [](Fixture& s) { s.q.width = 1; }, "expected a width of 2"},
      {"k width", [](Fixture& s) { s.k.width = 8; }, "'k' is"},
      {"k rows", [](Fixture& s) { s.k.rows_symbol = -1; }, "expected equal rows"},
      {"v width", [](Fixture& s) { s.v.width = 29; }, "'v' is"},
      {"v ring", [](Fixture& s) { s.v.ring = 0; }, "in a ring"},
      {"state type", [](Fixture& s) { s.state.type = DataType::kI8; }, "'state' is I8"},
      {"state rows", [](Fixture& s) { s.state.rows = 19; }, "expected 20 rows"},
      {"state ring", [](Fixture& s) { s.state.ring = 0; }, "in a ring"},
      {"state symbol", [](Fixture& s) { s.state.rows_symbol = 0; }, "20 rows in every run"},
      {"decay width", [](Fixture& s) { s.decay.width = 3; }, "'decay' is"},
      {"decay rows", [](Fixture& s) { s.decay.rows_symbol = -1; }, "expected equal rows"},
      {"factor width", [](Fixture& s) { s.factor.width = 3; }, "'factor' is"},
      {"y width", [](Fixture& s) { s.y.width = 27; }, "'y' is"},
      {"another state", [](Fixture& s) { s.op.outputs[1] = &s.a; }, "fixed rows"},
  });
}

TEST(Recurrence, RefusesOtherStatesThanItReads) {
  Fixture s;
  TestTensor other = f32_tensor("other", s.state.rows, s.state.width);
  s.op.outputs[1] = &other;
  EXPECT_EQ(s.op.bind(), Status::kFileCorrupt);
  EXPECT_NE(std::string(s.op.message()).find("'other' is written"), std::string::npos)
      << s.op.message();
}

}  // namespace
}  // namespace oxbow

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "ops/scan/scan.h"
#include "ops/testing/refusals.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::OpRunner;
using testing::TestTensor;

struct Variant {
  Isa isa;
  ScanKernel kernel;
  const char* name;
};

constexpr Variant kVariants[] = {
#define OXB_KERNEL(isa, fn) {isa, fn, #fn},
#include "ops/scan/kernels.inc"
#undef OXB_KERNEL
};

constexpr uint32_t kRows = 11, kDepth = 3, kWindow = 4;

/// One rule with kRows rows of `width` channels. Symbol 0: rows.
struct Fixture {
  explicit Fixture(ScanRule kind, uint32_t width = 70, uint32_t window = 1) : rule(kind) {
    const auto rows = [&](const char* name, uint64_t seed, float low, float high) {
      add(inputs, name, kRows, width, seed, low, high).rows_symbol = 0;
    };
    switch (rule) {
      case ScanRule::kWeightedAverage:
        rows("k", 1, -6, 6);
        rows("v", 2, -1, 1);
        add(inputs, "decay", 1, width, 3, -2, 0);
        if (window == 1) {
          add(inputs, "bonus", 1, width, 4, -3, 3);
        } else {
          add(inputs, "bonus", kRows, window, 4, -3, 3);
          add(inputs, "past_k", window - 1, width, 5, 0, 1).ring = 0;
          add(inputs, "past_v", window - 1, width, 6, 0, 1).ring = 0;
        }
        add(states, "num", 1, width, 0, 0, 0);
        add(states, "den", 1, width, 0, 0, 0);
        add(states, "most", 1, width, 0, -1e30f, -1e30f);
        break;
      case ScanRule::kSelective:
        rows("x", 1, -1, 1);
        rows("dt", 2, 0, 2);
        add(inputs, "B", kRows, kDepth, 3, -1, 1).rows_symbol = 0;
        add(inputs, "C", kRows, kDepth, 4, -1, 1).rows_symbol = 0;
        add(inputs, "A", kDepth, width, 5, -2, 0);
        add(inputs, "D", 1, width, 6, -1, 1);
        add(states, "S", kDepth, width, 7, -1, 1);
        break;
      case ScanRule::kGatedLinear:
        rows("x", 1, -1, 1);
        rows("i", 2, 0, 1);
        rows("r", 3, 0, 1);
        add(inputs, "rate", 1, width, 4, -3, 0);
        add(states, "h", 1, width, 5, -1, 1);
        break;
      case ScanRule::kExponentialGates:
        rows("i", 1, -9, 9);
        rows("f", 2, -9, 9);
        add(states, "m", 1, width, 3, 0, 0);
        break;
    }
    const size_t count = rule == ScanRule::kExponentialGates ? 3 : 1;
    for (size_t i = 0; i < count; ++i) {
      outputs.push_back(
          std::make_unique<TestTensor>(f32_tensor("y" + std::to_string(i), kRows, width)));
      outputs.back()->rows_symbol = 0;
    }
    for (const auto* list : {&inputs, &states}) {
      for (const auto& tensor : *list) op.inputs.push_back(tensor.get());
    }
    for (const auto* list : {&outputs, &states}) {
      for (const auto& tensor : *list) op.outputs.push_back(tensor.get());
    }
    op.symbols = op.symbol_maxima = {kRows};
    op.rings = {{0, 0}};
    op.ring_capacities = {window - 1};
    options.rule = static_cast<schema::ScanRule>(kind);
    options.window = window;
    op.options(options);
  }
  TestTensor& add(std::vector<std::unique_ptr<TestTensor>>& list, const char* name, uint32_t rows,
                  uint32_t width, uint64_t seed, float low, float high) {
    list.push_back(std::make_unique<TestTensor>(f32_tensor(name, rows, width)));
    fill_uniform(*list.back(), seed, low, high);
    return *list.back();
  }
  const TestTensor& in(size_t i) const { return *inputs[i]; }
  TestTensor& y(size_t i = 0) { return *outputs[i]; }

  ScanRule rule;
  std::vector<std::unique_ptr<TestTensor>> inputs, states, outputs;
  OpRunner op{bind_scan};
  schema::ScanOptionsT options;
};

double log_sigmoid(double x) { return std::fmin(x, 0) - std::log1p(std::exp(-std::fabs(x))); }

/// All outputs of one channel, row after row, and its states after the last.
struct Expected {
  std::vector<double> y[3];
  std::vector<double> states;
};

Expected formula(const Fixture& s, size_t c, size_t rows, bool starts) {
  Expected e;
  const auto in = [&](size_t i, size_t row, size_t column) { return s.in(i).value(row, column); };
  switch (s.rule) {
    case ScanRule::kWeightedAverage: {
      const size_t window = s.options.window;
      // Plain sums: the keys of these tests do not overflow a double.
      for (size_t t = 0; t < rows; ++t) {
        double num = 0, den = 0;
        for (size_t j = 0; j <= t; ++j) {
          const size_t d = t - j;
          double exponent = in(0, j, c);
          if (d < window) {
            exponent += window == 1 ? in(3, 0, c) : in(3, t, window - 1 - d);
          } else {
            exponent += static_cast<double>(d - window) * in(2, 0, c);
          }
          num += std::exp(exponent) * in(1, j, c);
          den += std::exp(exponent);
        }
        e.y[0].push_back(num / den);
      }
      break;
    }
    case ScanRule::kSelective: {
      double state[kDepth];
      for (size_t n = 0; n < kDepth; ++n) state[n] = s.states[0]->value(n, c);
      for (size_t t = 0; t < rows; ++t) {
        double y = in(5, 0, c) * in(0, t, c);
        for (size_t n = 0; n < kDepth; ++n) {
          state[n] = std::exp(in(1, t, c) * in(4, n, c)) * state[n] +
                     in(1, t, c) * in(2, t, n) * in(0, t, c);
          y += in(3, t, n) * state[n];
        }
        e.y[0].push_back(y);
      }
      e.states.assign(state, state + kDepth);
      break;
    }
    case ScanRule::kGatedLinear: {
      double h = s.states[0]->value(0, c);
      for (size_t t = 0; t < rows; ++t) {
        const double a = t == 0 && starts ? 0 : std::exp(in(3, 0, c) * in(2, t, c));
        h = a * h + std::sqrt(1 - a * a) * in(1, t, c) * in(0, t, c);
        e.y[0].push_back(h);
      }
      e.states = {h};
      break;
    }
    case ScanRule::kExponentialGates: {
      double m = s.states[0]->value(0, c);
      for (size_t t = 0; t < rows; ++t) {
        const double old = log_sigmoid(in(1, t, c)) + m;
        m = std::fmax(old, in(0, t, c));
        e.y[0].push_back(std::exp(old - m));
        e.y[1].push_back(std::exp(in(0, t, c) - m));
        e.y[2].push_back(std::exp(-m));
      }
      e.states = {m};
      break;
    }
  }
  return e;
}

struct Kind {
  ScanRule rule;
  uint32_t window;
};
constexpr Kind kKinds[] = {{ScanRule::kWeightedAverage, 1},
                           {ScanRule::kWeightedAverage, kWindow},
                           {ScanRule::kSelective, 1},
                           {ScanRule::kGatedLinear, 1},
                           {ScanRule::kExponentialGates, 1}};

TEST(Scan, EveryRuleFollowsItsFormulaOverTheActualRows) {
  for (const Kind& kind : kKinds) {
    for (const bool starts : {true, false}) {
      SCOPED_TRACE(static_cast<int>(kind.rule));
      Fixture s(kind.rule, 70, kind.window);
      // The positions of a window's bonus are the rows here.
      if (kind.rule != ScanRule::kWeightedAverage) s.op.position = starts ? 0 : 100;
      s.op.symbols[0] = kRows - 1;
      std::vector<Expected> expected;
      for (size_t c = 0; c < 70; ++c) expected.push_back(formula(s, c, kRows - 1, starts));
      ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
      for (size_t c = 0; c < 70; ++c) {
        for (size_t i = 0; i < s.outputs.size(); ++i) {
          for (size_t t = 0; t < kRows - 1; ++t) {
            const double want = expected[c].y[i][t];
            // Ten rows of a few roundings each of numbers up to 10, and of exponentials' arguments up to 20.
            ASSERT_NEAR(s.y(i).f32(t)[c], want, 2e-5 * (1 + std::fabs(want))) << t << " " << c;
          }
          ASSERT_TRUE(std::isnan(s.y(i).f32(kRows - 1)[c])) << "untouched";
        }
        for (size_t n = 0; n < expected[c].states.size(); ++n) {
          ASSERT_NEAR(s.states[0]->f32(n)[c], expected[c].states[n], 2e-5);
        }
      }
    }
  }
}

/// The kernel alone on channels [0, width) with the tensors of a fixture.
ScanArgs kernel_args(Fixture& s) {
  ScanArgs args;
  args.rule = s.rule;
  args.rows = kRows;
  args.width = s.in(0).width;
  args.depth = kDepth;
  args.window = s.options.window;
  args.last_position = kRows - 1;
  const size_t past = args.window == 1 ? 0 : 2;
  for (size_t i = 0; i + past < s.inputs.size(); ++i) args.in[i] = s.in(i).f32();
  if (past != 0) {
    args.past[0] = s.in(4).f32();
    args.past[1] = s.in(5).f32();
    args.ring = {1, kWindow - 2};
  }
  for (size_t i = 0; i < s.states.size(); ++i) args.state[i] = s.states[i]->f32();
  for (size_t i = 0; i < s.outputs.size(); ++i) args.out[i] = s.outputs[i]->f32();
  return args;
}

TEST(Scan, EveryVariantGivesTheBitsOfTheReference) {
  for (const Kind& kind : kKinds) {
    for (uint32_t size : testing::simd_sizes_up_to(kScanBlock)) {
      Fixture reference(kind.rule, size, kind.window);
      scan_f32_f32_ref(kernel_args(reference), 0, size);
      for (const Variant& variant : kVariants) {
        if (!cpu_supports(variant.isa)) continue;
        SCOPED_TRACE(::testing::Message() << variant.name << " rule " << static_cast<int>(kind.rule)
                                          << " size " << size);
        Fixture s(kind.rule, size, kind.window);
        variant.kernel(kernel_args(s), 0, size);
        for (size_t i = 0; i < s.outputs.size(); ++i) {
          for (size_t at = 0; at < size_t{kRows} * size; ++at) {
            ASSERT_EQ(s.y(i).f32()[at], reference.y(i).f32()[at]) << at;
          }
        }
        for (size_t i = 0; i < s.states.size(); ++i) {
          for (size_t at = 0; at < size_t{s.states[i]->rows} * size; ++at) {
            ASSERT_EQ(s.states[i]->f32()[at], reference.states[i]->f32()[at]) << at;
          }
        }
      }
    }
  }
}

/// Runs rows [first, first + count) and pushes them to the past as RingPush would.
void run_piece(Fixture& s, uint32_t first, uint32_t count) {
  std::vector<std::vector<float>> kept;
  for (const auto& tensor : s.inputs) {
    if (tensor->rows_symbol != 0) continue;
    kept.emplace_back(tensor->f32(), tensor->f32() + size_t{kRows} * tensor->width);
    std::copy(tensor->f32(first), tensor->f32(first) + size_t{count} * tensor->width,
              tensor->f32());
  }
  s.op.symbols[0] = count;
  s.op.position = first;
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  if (s.options.window > 1) {
    const uint32_t capacity = s.options.window - 1;
    RingPosition& ring = s.op.rings[0];
    for (uint32_t row = 0; row < count; ++row) {
      const size_t slot = (ring.head + ring.count) % capacity;
      for (size_t i = 0; i < 2; ++i) {
        std::copy(s.in(i).f32(row), s.in(i).f32(row) + s.in(i).width, s.inputs[4 + i]->f32(slot));
      }
      if (ring.count < capacity) {
        ++ring.count;
      } else {
        ring.head = (ring.head + 1) % capacity;
      }
    }
  }
  size_t next = 0;
  for (const auto& tensor : s.inputs) {
    if (tensor->rows_symbol != 0) continue;
    std::copy(kept[next].begin(), kept[next].end(), tensor->f32());
    ++next;
  }
}

TEST(Scan, CutsAndThreadsDoNotChangeTheBits) {
  testing::Buffer memory(ThreadPool::bytes(3));
  ThreadPool* pool = nullptr;
  ASSERT_EQ(ThreadPool::create(memory.data(), 3, nullptr, &pool), Status::kOk);
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(static_cast<int>(kind.rule));
    Fixture whole(kind.rule, 200, kind.window), cut(kind.rule, 200, kind.window);
    ASSERT_EQ(whole.op.bind_and_run(), Status::kOk) << whole.op.message();
    cut.op.pool = pool;
    cut.op.threads = 3;
    cut.op.reference_only = false;
    uint32_t first = 0;
    for (const uint32_t count : {1u, 5u, 0u, 2u, 3u}) {
      run_piece(cut, first, count);
      for (size_t i = 0; i < cut.outputs.size(); ++i) {
        for (size_t at = 0; at < size_t{count} * 200; ++at) {
          ASSERT_EQ(cut.y(i).f32()[at], whole.y(i).f32(first)[at]) << first << " " << at;
        }
      }
      first += count;
    }
    for (size_t i = 0; i < cut.states.size(); ++i) {
      for (size_t at = 0; at < 200; ++at) {
        ASSERT_EQ(cut.states[i]->f32()[at], whole.states[i]->f32()[at]);
      }
    }
  }
  ThreadPool::destroy(pool);
}

TEST(Scan, AveragesOfHugeKeysStayFinite) {
  Fixture s(ScanRule::kWeightedAverage);
  for (size_t i = 0; i < size_t{kRows} * 70; ++i) s.inputs[0]->f32()[i] *= 1e5f;
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk);
  for (size_t i = 0; i < size_t{kRows} * 70; ++i) {
    ASSERT_LE(std::fabs(s.y().f32()[i]), 1.0f) << "a mean of values up to 1";
  }
}

TEST(Scan, NanSpoilsItsOwnChannelOnly) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(static_cast<int>(kind.rule));
    Fixture s(kind.rule, 70, kind.window);
    s.inputs[1]->f32(2)[5] = std::nanf("");
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk);
    EXPECT_FALSE(std::isnan(s.y().f32(1)[5]));
    EXPECT_TRUE(std::isnan(s.y().f32(2)[5]) || kind.rule == ScanRule::kExponentialGates);
    EXPECT_FALSE(std::isnan(s.y().f32(2)[4]));
    EXPECT_FALSE(std::isnan(s.y().f32(kRows - 1)[6]));
  }
}

struct Average : Fixture {
  Average() : Fixture(ScanRule::kWeightedAverage, 70, kWindow) {}
};

TEST(Scan, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Average>({
      {"no options", [](Average& s) { s.op.step.options.Reset(); }, "no ScanOptions"},
      {"rule",
       [](Average& s) {
         s.options.rule = static_cast<schema::ScanRule>(4);
         s.op.options(s.options);
       },
       "rule is 4"},
      {"no window",
       [](Average& s) {
         s.options.window = 0;
         s.op.options(s.options);
       },
       "window is 0"},
      {"a window of another rule",
       [](Average& s) {
         s.options.rule = schema::ScanRule::GatedLinear;
         s.op.options(s.options);
       },
       "window is 4"},
      {"inputs", [](Average& s) { s.op.inputs.pop_back(); }, "has 8 inputs"},
      {"outputs", [](Average& s) { s.op.outputs.pop_back(); }, "3 outputs"},
      {"k type", [](Average& s) { s.inputs[0]->type = DataType::kI32; }, "'k' is I32"},
      {"v width", [](Average& s) { s.inputs[1]->width = 69; }, "expected a width of 70"},
      {"v rows", [](Average& s) { s.inputs[1]->rows_symbol = -1; }, "expected equal rows"},
      {"decay rows", [](Average& s) { s.inputs[2]->rows = 2; }, "exactly one row"},
      {"bonus width", [](Average& s) { s.inputs[3]->width = 3; }, "expected a width of 4"},
      {"bonus symbol", [](Average& s) { s.inputs[3]->rows_symbol = 0; }, "rows in every run"},
      {"past without a ring", [](Average& s) { s.inputs[4]->ring = -1; },
       "expected rows in a ring"},
      {"past of another size", [](Average& s) { s.op.ring_capacities = {4}; },
       "all rows of a ring of 3"},
      {"past type", [](Average& s) { s.inputs[5]->type = DataType::kI32; }, "expected F32"},
      {"past pinned", [](Average& s) { s.inputs[5]->pinned = 1; }, "1 pinned rows"},
      {"past width", [](Average& s) { s.inputs[5]->width = 71; }, "expected a width of 70"},
      {"two rings",
       [](Average& s) {
         s.inputs[5]->ring = 1;
         s.op.rings.push_back({});
         s.op.ring_capacities.push_back(3);
       },
       "must be in the same ring"},
      {"another state", [](Average& s) { std::swap(s.op.outputs[1], s.op.outputs[2]); },
       "expected the state that is read"},
      {"state rows", [](Average& s) { s.states[0]->rows = 2; }, "exactly one row"},
      {"state ring", [](Average& s) { s.states[1]->ring = 0; }, "in a ring"},
      {"state type", [](Average& s) { s.states[2]->type = DataType::kI8; }, "'most' is I8"},
      {"y width", [](Average& s) { s.outputs[0]->width = 71; }, "expected a width of 70"},
  });
}

struct Selective : Fixture {
  Selective() : Fixture(ScanRule::kSelective) {}
};

TEST(Scan, RefusesMatricesOfAnotherDepth) {
  testing::expect_refusals<Selective>({
      {"C", [](Selective& s) { s.inputs[3]->width = 4; }, "expected a width of 3"},
      {"B rows", [](Selective& s) { s.inputs[2]->rows_symbol = -1; }, "expected equal rows"},
      {"A rows", [](Selective& s) { s.inputs[4]->rows = 4; }, "expected 3 rows"},
      {"A width", [](Selective& s) { s.inputs[4]->width = 69; }, "expected a width of 70"},
      {"state rows", [](Selective& s) { s.states[0]->rows = 2; }, "expected 3 rows"},
  });
}

}  // namespace
}  // namespace oxbow

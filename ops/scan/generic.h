#pragma once

// The loops of all instruction sets: each compiles them with its flags, and as every channel takes the same
// steps the bits are the same. Channels are the inner loop, so that they fill vectors. In an unnamed
// namespace, so that no copy gets outside the file that includes this.

#include <cstddef>

#include "ops/scan/scan.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

[[gnu::always_inline]] inline float larger(float a, float b) { return a > b ? a : b; }

/// ln(1 / (1 + e^-x)).
[[gnu::always_inline]] inline float log_sigmoid(float x) {
  return (x < 0.0f ? x : 0.0f) - log1p_f32(exp_f32(-abs_f32(x)));
}

/// A row joins the sums: they are told as multiples of e^most.
[[gnu::always_inline]] inline void join_average(const ScanArgs& args, const float* __restrict k,
                                                const float* __restrict v, size_t begin,
                                                size_t count) {
  const float* __restrict decay = args.in[2] + begin;
  float* __restrict num = args.state[0] + begin;
  float* __restrict den = args.state[1] + begin;
  float* __restrict most = args.state[2] + begin;
  for (size_t c = 0; c < count; ++c) {
    const float old = most[c] + decay[c];
    const float top = larger(old, k[c]);
    const float keep = exp_f32(old - top), add = exp_f32(k[c] - top);
    num[c] = keep * num[c] + add * v[c];
    den[c] = keep * den[c] + add;
    most[c] = top;
  }
}

[[gnu::always_inline]] inline void average(const ScanArgs& args, size_t begin, size_t count) {
  const float* __restrict bonus = args.in[3] + begin;
  for (size_t row = 0; row < args.rows; ++row) {
    const float* __restrict k = args.in[0] + row * args.width + begin;
    const float* __restrict v = args.in[1] + row * args.width + begin;
    const float* __restrict num = args.state[0] + begin;
    const float* __restrict den = args.state[1] + begin;
    const float* __restrict most = args.state[2] + begin;
    float* __restrict y = args.out[0] + row * args.width + begin;
    for (size_t c = 0; c < count; ++c) {
      const float own = k[c] + bonus[c];
      const float top = larger(most[c], own);
      const float keep = exp_f32(most[c] - top), add = exp_f32(own - top);
      y[c] = (keep * num[c] + add * v[c]) / (keep * den[c] + add);
    }
    join_average(args, k, v, begin, count);
  }
}

/// Row `row` of keys (0) or values (1); negative: before the run.
[[gnu::always_inline]] inline const float* average_row(const ScanArgs& args, size_t which,
                                                       ptrdiff_t row) {
  if (row >= 0) return args.in[which] + static_cast<size_t>(row) * args.width;
  const size_t from_oldest = static_cast<size_t>(static_cast<ptrdiff_t>(args.ring.count) + row);
  return args.past[which] + ring_slot(args.ring, args.window - 1, 0, from_oldest) * args.width;
}

[[gnu::always_inline]] inline void windowed_average(const ScanArgs& args, size_t begin,
                                                    size_t count) {
  const auto held = static_cast<ptrdiff_t>(args.ring.count);
  const auto window = static_cast<ptrdiff_t>(args.window);
  for (size_t row = 0; row < args.rows; ++row) {
    const auto own = static_cast<ptrdiff_t>(row);
    const ptrdiff_t oldest = own - window + 1 < -held ? -held : own - window + 1;
    const uint64_t position = args.position + row;
    // The last element is the own row's.
    const float* bonus =
        args.in[3] + (position < args.last_position ? position : args.last_position) * args.window +
        (args.window - 1);
    float top[kScanBlock], above[kScanBlock], below[kScanBlock];
    const float* __restrict most = args.state[2] + begin;
    for (size_t c = 0; c < count; ++c) top[c] = most[c];
    for (ptrdiff_t at = oldest; at <= own; ++at) {
      const float* __restrict k = average_row(args, 0, at) + begin;
      const float more = bonus[at - own];
      for (size_t c = 0; c < count; ++c) top[c] = larger(top[c], k[c] + more);
    }
    const float* __restrict num = args.state[0] + begin;
    const float* __restrict den = args.state[1] + begin;
    for (size_t c = 0; c < count; ++c) {
      const float keep = exp_f32(most[c] - top[c]);
      above[c] = keep * num[c];
      below[c] = keep * den[c];
    }
    for (ptrdiff_t at = oldest; at <= own; ++at) {
      const float* __restrict k = average_row(args, 0, at) + begin;
      const float* __restrict v = average_row(args, 1, at) + begin;
      const float more = bonus[at - own];
      for (size_t c = 0; c < count; ++c) {
        const float add = exp_f32((k[c] + more) - top[c]);
        above[c] += add * v[c];
        below[c] += add;
      }
    }
    float* __restrict y = args.out[0] + row * args.width + begin;
    for (size_t c = 0; c < count; ++c) y[c] = above[c] / below[c];
    // It is out of the next row's window.
    if (own - oldest + 1 == window) {
      join_average(args, average_row(args, 0, oldest) + begin, average_row(args, 1, oldest) + begin,
                   begin, count);
    }
  }
}

/// Asks for as many columns as a block has. Rows lie too far apart for processors to see which lines come next.
[[gnu::always_inline]] inline void ask_for_block(const float* row) {
  for (size_t c = 0; c < kScanBlock; c += 16) __builtin_prefetch(row + c);
}

[[gnu::always_inline]] inline void selective(const ScanArgs& args, size_t begin, size_t count) {
  const float* __restrict skip = args.in[5] + begin;
  for (size_t row = 0; row < args.rows; ++row) {
    const float* __restrict x = args.in[0] + row * args.width + begin;
    const float* __restrict dt = args.in[1] + row * args.width + begin;
    const float* __restrict b = args.in[2] + row * args.depth;
    const float* __restrict read = args.in[3] + row * args.depth;
    float* __restrict y = args.out[0] + row * args.width + begin;
    float sum[kScanBlock];
    for (size_t c = 0; c < count; ++c) sum[c] = 0.0f;
    for (size_t n = 0; n < args.depth; ++n) {
      const float* __restrict rate = args.in[4] + n * args.width + begin;
      float* __restrict s = args.state[0] + n * args.width + begin;
      const float write_n = b[n], read_n = read[n];
      // Of the next block.
      if (row == 0) {
        ask_for_block(rate + kScanBlock);
        ask_for_block(s + kScanBlock);
      }
      for (size_t c = 0; c < count; ++c) {
        const float next = exp_f32(dt[c] * rate[c]) * s[c] + dt[c] * write_n * x[c];
        s[c] = next;
        sum[c] += read_n * next;
      }
    }
    for (size_t c = 0; c < count; ++c) y[c] = sum[c] + skip[c] * x[c];
  }
}

[[gnu::always_inline]] inline void gated_linear(const ScanArgs& args, size_t begin, size_t count) {
  const float* __restrict rate = args.in[3] + begin;
  float* __restrict h = args.state[0] + begin;
  for (size_t row = 0; row < args.rows; ++row) {
    const float* __restrict x = args.in[0] + row * args.width + begin;
    const float* __restrict input = args.in[1] + row * args.width + begin;
    const float* __restrict forget = args.in[2] + row * args.width + begin;
    float* __restrict y = args.out[0] + row * args.width + begin;
    if (row == 0 && args.starts) {
      for (size_t c = 0; c < count; ++c) y[c] = h[c] = input[c] * x[c];
      continue;
    }
    // Roots in a loop of their own: the compiler makes no vectors of a loop with them.
    float keep[kScanBlock], factor[kScanBlock];
    for (size_t c = 0; c < count; ++c) {
      const float log_a = rate[c] * forget[c];
      const float rest = 1.0f - exp_f32(2.0f * log_a);
      keep[c] = exp_f32(log_a);
      // Rounding must not make a root of something negative.
      factor[c] = rest < 0.0f ? 0.0f : rest;
    }
    for (size_t c = 0; c < count; ++c) factor[c] = __builtin_sqrtf(factor[c]);
    for (size_t c = 0; c < count; ++c) {
      const float next = keep[c] * h[c] + factor[c] * (input[c] * x[c]);
      h[c] = next;
      y[c] = next;
    }
  }
}

[[gnu::always_inline]] inline void exponential_gates(const ScanArgs& args, size_t begin,
                                                     size_t count) {
  float* __restrict m = args.state[0] + begin;
  for (size_t row = 0; row < args.rows; ++row) {
    const float* __restrict input = args.in[0] + row * args.width + begin;
    const float* __restrict forget = args.in[1] + row * args.width + begin;
    float* __restrict keep = args.out[0] + row * args.width + begin;
    float* __restrict add = args.out[1] + row * args.width + begin;
    float* __restrict floor = args.out[2] + row * args.width + begin;
    for (size_t c = 0; c < count; ++c) {
      const float old = log_sigmoid(forget[c]) + m[c];
      const float top = larger(old, input[c]);
      keep[c] = exp_f32(old - top);
      add[c] = exp_f32(input[c] - top);
      floor[c] = exp_f32(-top);
      m[c] = top;
    }
  }
}

[[gnu::always_inline]] inline void scan(const ScanArgs& args, size_t begin, size_t count) {
  switch (args.rule) {
    case ScanRule::kWeightedAverage:
      if (args.window == 1) {
        average(args, begin, count);
      } else {
        windowed_average(args, begin, count);
      }
      break;
    case ScanRule::kSelective:
      selective(args, begin, count);
      break;
    case ScanRule::kGatedLinear:
      gated_linear(args, begin, count);
      break;
    case ScanRule::kExponentialGates:
      exponential_gates(args, begin, count);
      break;
  }
}

/// Whole vectors, and what they leave over by the reference: a copy of the loops for single channels would be as large
/// as that for vectors.
[[gnu::always_inline]] inline void scan_vectors(const ScanArgs& args, size_t begin, size_t end) {
  const size_t whole = (end - begin) / kLanes * kLanes;
  if (whole != 0) scan(args, begin, whole);
  if (begin + whole != end) scan_f32_f32_ref(args, begin + whole, end);
}

}  // namespace
}  // namespace oxbow

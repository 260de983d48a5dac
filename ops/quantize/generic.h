#pragma once

// A row around what an ISA does for itself, given as a struct of static functions:
//
//   absmax   the largest magnitude of `count` elements, NaN passed over
//   codes    q[i] = quantize_value(x[i], inverse) for i < count
//
//   Vector            a register of kLanes floats, with load, store, plus, minus
//   hadamard_lanes    turns each register as a block of its own
//
// In an unnamed namespace: no copy compiled with an ISA's flags gets outside its file.

#include <cstddef>
#include <cstdint>

#include "ops/quantize/quantize.h"
#include "runtime/base/hadamard.h"
#include "runtime/base/quantize.h"

namespace oxbow {
namespace {

/// Pairs that are 1, 2, ... up to kCount / 2 registers apart.
template <typename Primitives, size_t kCount>
[[gnu::always_inline]] inline void hadamard_registers(typename Primitives::Vector (&v)[kCount]) {
#pragma GCC unroll 4
  for (size_t h = 1; h < kCount; h *= 2) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kCount; ++i) {
      if ((i & h) != 0) continue;
      const auto a = v[i], b = v[i + h];
      v[i] = Primitives::plus(a, b);
      v[i + h] = Primitives::minus(a, b);
    }
  }
}

/// The first steps, within kCount registers that are neighbours.
template <typename Primitives, size_t kCount>
void hadamard_near(float* x, size_t block) {
  for (float* end = x + block; x != end; x += kCount * Primitives::kLanes) {
    typename Primitives::Vector v[kCount];
#pragma GCC unroll 8
    for (size_t i = 0; i < kCount; ++i) {
      v[i] = Primitives::hadamard_lanes(Primitives::load(x + i * Primitives::kLanes));
    }
    hadamard_registers<Primitives>(v);
#pragma GCC unroll 8
    for (size_t i = 0; i < kCount; ++i) Primitives::store(x + i * Primitives::kLanes, v[i]);
  }
}

/// The last steps of a block, between kCount registers that are `apart` elements from each other.
template <typename Primitives, size_t kCount>
void hadamard_far(float* x, size_t apart) {
  for (float* end = x + apart; x != end; x += Primitives::kLanes) {
    typename Primitives::Vector v[kCount];
#pragma GCC unroll 8
    for (size_t i = 0; i < kCount; ++i) v[i] = Primitives::load(x + i * apart);
    hadamard_registers<Primitives>(v);
#pragma GCC unroll 8
    for (size_t i = 0; i < kCount; ++i) Primitives::store(x + i * apart, v[i]);
  }
}

/// hadamard_row(), in two or three passes over a block.
template <typename Primitives>
void hadamard_with(float* x, size_t width, size_t block) {
  constexpr size_t kNear = 8 * Primitives::kLanes;
  for (float* end = x + width; x != end; x += block) {
    switch (block / Primitives::kLanes) {
      case 2:
        hadamard_near<Primitives, 2>(x, block);
        break;
      case 4:
        hadamard_near<Primitives, 4>(x, block);
        break;
      default:
        hadamard_near<Primitives, 8>(x, block);
    }
    for (size_t apart = kNear; apart < block;) {
      // Whole parts first: what is apart by more is still to come.
      const size_t count = block / apart >= 8 ? 8 : block / apart;
      for (size_t part = 0; part < block; part += count * apart) {
        if (count == 8) hadamard_far<Primitives, 8>(x + part, apart);
        if (count == 4) hadamard_far<Primitives, 4>(x + part, apart);
        if (count == 2) hadamard_far<Primitives, 2>(x + part, apart);
      }
      apart *= count;
    }
  }
}

template <typename Primitives>
void quantize_with(float* x, size_t width, const RowForm& form, int8_t* q, float* scales) {
  if (form.hadamard != 0) hadamard_with<Primitives>(x, width, form.hadamard);
  if (q == nullptr) return;
  const size_t group_width = width / form.groups;
  for (size_t g = 0; g < form.groups; ++g, x += group_width) {
    const QuantScale scale = form.static_scale != 0.0f
                                 ? QuantScale{form.static_scale, 1.0f / form.static_scale}
                                 : quant_scale(Primitives::absmax(x, group_width));
    scales[g] = scale.scale;
    Primitives::codes(x, group_width, scale.inverse, q + g * group_width);
  }
  for (size_t i = width; i < round_up(width, kI8RowAlignment); ++i) q[i] = 0;
}

}  // namespace
}  // namespace oxbow

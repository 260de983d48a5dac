#include "runtime/base/fft.h"

#include <cstring>

#include "runtime/base/sincos.h"

namespace oxbow {
namespace {

// One pass of a self-sorting transform (Stockham): with `stride` sequences of length n / stride left, factor r and
// m = n / stride / r,
//   to[q + stride (r p + u)] = w^(p u stride) * sum over t of from[q + stride (p + m t)] e^(-2 pi i t u / r)
// for p < m, q < stride, u < r, where w = e^(-2 pi i / n).

struct Complex {
  float* real;
  float* imaginary;
  Complex at(size_t element) const {
    return {real + element * kFftLanes, imaginary + element * kFftLanes};
  }
};

/// y = a * w
inline void turn(const Complex& a, float c, float s, const Complex& y) {
  for (size_t l = 0; l < kFftLanes; ++l) {
    const float re = a.real[l] * c - a.imaginary[l] * s;
    y.imaginary[l] = a.real[l] * s + a.imaginary[l] * c;
    y.real[l] = re;
  }
}

void butterfly_2(const Complex& a, const Complex& b, const Complex& y0, const Complex& y1) {
  for (size_t l = 0; l < kFftLanes; ++l) {
    y0.real[l] = a.real[l] + b.real[l];
    y0.imaginary[l] = a.imaginary[l] + b.imaginary[l];
    y1.real[l] = a.real[l] - b.real[l];
    y1.imaginary[l] = a.imaginary[l] - b.imaginary[l];
  }
}

void butterfly_4(const Complex (&a)[4], const Complex (&y)[4]) {
  for (size_t l = 0; l < kFftLanes; ++l) {
    const float sum_re = a[0].real[l] + a[2].real[l], dif_re = a[0].real[l] - a[2].real[l];
    const float sum_im = a[0].imaginary[l] + a[2].imaginary[l];
    const float dif_im = a[0].imaginary[l] - a[2].imaginary[l];
    const float odd_re = a[1].real[l] + a[3].real[l], gap_re = a[1].real[l] - a[3].real[l];
    const float odd_im = a[1].imaginary[l] + a[3].imaginary[l];
    const float gap_im = a[1].imaginary[l] - a[3].imaginary[l];
    y[0].real[l] = sum_re + odd_re;
    y[0].imaginary[l] = sum_im + odd_im;
    y[1].real[l] = dif_re + gap_im;
    y[1].imaginary[l] = dif_im - gap_re;
    y[2].real[l] = sum_re - odd_re;
    y[2].imaginary[l] = sum_im - odd_im;
    y[3].real[l] = dif_re - gap_im;
    y[3].imaginary[l] = dif_im + gap_re;
  }
}

/// Any factor r, whose roots are every n / r-th twiddle. Inputs are `step` elements apart, outputs `stride`.
void butterfly(const FftPlan& plan, size_t r, const Complex& from, size_t step, const Complex& to,
               size_t stride) {
  for (size_t u = 0; u < r; ++u) {
    float re[kFftLanes] = {}, im[kFftLanes] = {};
    for (size_t t = 0, root = 0; t < r; ++t) {
      const Complex a = from.at(t * step);
      const float c = plan.real[root * (plan.n / r)], s = plan.imaginary[root * (plan.n / r)];
      for (size_t l = 0; l < kFftLanes; ++l) {
        re[l] += a.real[l] * c - a.imaginary[l] * s;
        im[l] += a.real[l] * s + a.imaginary[l] * c;
      }
      root += u;
      if (root >= r) root -= r;
    }
    const Complex y = to.at(u * stride);
    std::memcpy(y.real, re, sizeof re);
    std::memcpy(y.imaginary, im, sizeof im);
  }
}

void pass(const FftPlan& plan, size_t r, size_t stride, const Complex& from, const Complex& to) {
  const size_t m = plan.n / stride / r, step = m * stride;
  for (size_t p = 0; p < m; ++p) {
    for (size_t q = 0; q < stride; ++q) {
      const Complex a = from.at(q + stride * p), y = to.at(q + stride * r * p);
      if (r == 2) {
        butterfly_2(a, a.at(step), y, y.at(stride));
      } else if (r == 4) {
        butterfly_4({a, a.at(step), a.at(2 * step), a.at(3 * step)},
                    {y, y.at(stride), y.at(2 * stride), y.at(3 * stride)});
      } else {
        butterfly(plan, r, a, step, y, stride);
      }
      if (p == 0) continue;
      for (size_t u = 1; u < r; ++u) {
        const size_t twiddle = p * u * stride;  // Below n: p < m, u < r.
        const Complex element = y.at(u * stride);
        turn(element, plan.real[twiddle], plan.imaginary[twiddle], element);
      }
    }
  }
}

}  // namespace

FftPlan fft_plan(size_t n, float* table) {
  FftPlan plan;
  plan.n = n;
  plan.real = table;
  plan.imaginary = table + n;
  // 2^64 = whole * n + rest.
  const uint64_t length = n, whole = (0 - length) / length + 1, rest = (0 - length) % length;
  for (uint64_t j = 0; j < length; ++j) {
    const SinCos angle = sincos_of_turns(j * whole + j * rest / length);
    table[j] = static_cast<float>(angle.cos);
    table[n + j] = static_cast<float>(-angle.sin);
  }
  size_t left = n;
  const auto divide = [&](size_t factor) {
    for (; left % factor == 0; left /= factor) {
      plan.factors[plan.count++] = static_cast<uint32_t>(factor);
    }
  };
  divide(4);
  divide(2);
  for (size_t factor = 3; factor * factor <= left; factor += 2) divide(factor);
  if (left > 1) plan.factors[plan.count++] = static_cast<uint32_t>(left);
  return plan;
}

void fft(const FftPlan& plan, float* real, float* imaginary, float* room) {
  Complex from = {real, imaginary};
  Complex to = {room, room + plan.n * kFftLanes};
  size_t stride = 1;
  for (size_t i = 0; i < plan.count; ++i) {
    pass(plan, plan.factors[i], stride, from, to);
    stride *= plan.factors[i];
    const Complex done = to;
    to = from;
    from = done;
  }
  if (from.real == real) return;
  std::memcpy(real, from.real, plan.n * kFftLanes * sizeof(float));
  std::memcpy(imaginary, from.imaginary, plan.n * kFftLanes * sizeof(float));
}

}  // namespace oxbow

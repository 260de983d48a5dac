#include "converter/passes/fit.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace oxbow::convert {
namespace {

/// Time and memory of a matrix grow with the columns that know of each other.
constexpr size_t kMostColumns = 2048;
/// Of the mean of H's diagonal, added to it: directions the text has not shown count a little.
constexpr float kDamping = 0.01f;
/// One row of so many is put aside, and so many at most.
constexpr size_t kAsideEach = 16, kMostAside = 128;
/// Rows of L, of inputs, and of weights that are worked on together, so that they stay in a cache.
constexpr size_t kPanel = 16;

/// out += factors_0 rows_0 + factors_1 rows_1 + ..., in this order.
void add_products(std::span<float> out, const float* rows, size_t stride,
                  std::span<const float> factors) {
  float* const to = out.data();
  const size_t width = out.size();
  size_t i = 0;
  for (; i + 4 <= factors.size(); i += 4) {
    const float a = factors[i], b = factors[i + 1], c = factors[i + 2], d = factors[i + 3];
    const float *ra = rows + i * stride, *rb = ra + stride, *rc = rb + stride, *rd = rc + stride;
    for (size_t j = 0; j < width; ++j) {
      to[j] = (((to[j] + a * ra[j]) + b * rb[j]) + c * rc[j]) + d * rd[j];
    }
  }
  for (; i < factors.size(); ++i) {
    const float a = factors[i];
    const float* ra = rows + i * stride;
    for (size_t j = 0; j < width; ++j) to[j] += a * ra[j];
  }
}

/// Of equal length, each row; one that is zero or not finite becomes zeros.
void normalise(std::span<float> rows, size_t width) {
  for (size_t at = 0; at < rows.size(); at += width) {
    const std::span<float> row = rows.subspan(at, width);
    double squares = 0;
    for (const float x : row) squares += double{x} * x;
    const double factor = std::sqrt(static_cast<double>(width) / squares);
    const bool good = std::isfinite(squares) && std::isfinite(factor);
    for (float& x : row) x = good ? static_cast<float>(x * factor) : 0.0f;
  }
}

/// Adds the second moments of some rows to the upper half of n x n numbers: columns `first` on.
void add_moments(std::span<const float> rows, size_t width, size_t first, size_t n,
                 std::vector<float>& moments) {
  std::array<float, kPanel> factors;
  for (size_t at = 0; at < rows.size(); at += kPanel * width) {
    const size_t count = std::min(kPanel, (rows.size() - at) / width);
    const float* const panel = rows.data() + at + first;
    for (size_t i = 0; i < n; ++i) {
      for (size_t t = 0; t < count; ++t) factors[t] = panel[t * width + i];
      add_products(std::span(moments).subspan(i * n + i, n - i), panel + i, width,
                   std::span(factors).first(count));
    }
  }
}

/// The upper half of H becomes U with H = U^T U.
void factorise(std::vector<float>& h, size_t n) {
  std::array<float, kPanel> factors;
  for (size_t begin = 0; begin < n; begin += kPanel) {
    const size_t end = std::min(begin + kPanel, n);
    // Row i without what the rows of this panel before `until` have of it.
    const auto reduce = [&](size_t i, size_t until) {
      for (size_t p = begin; p < until; ++p) factors[p - begin] = -h[p * n + i];
      add_products(std::span(h).subspan(i * n + i, n - i), h.data() + begin * n + i, n,
                   std::span(factors).first(until - begin));
    };
    for (size_t i = begin; i < end; ++i) {
      reduce(i, i);
      // Damping keeps it away from zero but for rounding.
      const float root = std::sqrt(std::max(h[i * n + i], kDamping * kDamping));
      for (size_t j = i; j < n; ++j) h[i * n + j] /= root;
      h[i * n + i] = root;
    }
    for (size_t i = end; i < n; ++i) reduce(i, end);
  }
}

void transpose(std::vector<float>& square, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) {
      square[j * n + i] = square[i * n + j];
      square[i * n + j] = 0;
    }
  }
}

}  // namespace

Fit::Fit(const MatrixInputs& inputs, const std::set<std::string>& names, const Weight& matrix)
    : width_(matrix.width()) {
  for (size_t first = 0; first < width_; first += kMostColumns) {
    const size_t size = std::min(kMostColumns, width_ - first);
    blocks_.push_back({first, size, std::vector<float>(size * size), std::vector<float>(size)});
  }
  std::vector<float> aside;
  size_t seen = 0;
  for (const std::string& name : names) {
    for (const Weight& piece : inputs.rows.at(name)) {
      std::vector<float> rows = piece.values();
      matrix.change_inputs(rows);
      normalise(rows, width_);
      for (size_t at = 0; at < rows.size(); at += width_) {
        if (++seen % kAsideEach != 0 || aside.size() == kMostAside * width_) continue;
        const std::span<float> row = std::span(rows).subspan(at, width_);
        aside.insert(aside.end(), row.begin(), row.end());
        std::fill(row.begin(), row.end(), 0.0f);
      }
      for (Block& block : blocks_) {
        add_moments(rows, width_, block.first, block.size, block.triangle);
      }
    }
  }
  const size_t count = aside.size() / width_;
  aside_.resize(aside.size());
  for (size_t row = 0; row < count; ++row) {
    for (size_t i = 0; i < width_; ++i) aside_[i * count + row] = aside[row * width_ + i];
  }
  for (Block& block : blocks_) {
    const size_t n = block.size;
    double trace = 0;
    for (size_t i = 0; i < n; ++i) trace += block.triangle[i * n + i];
    // Nothing was seen: every column by itself.
    const double mean = trace > 0 ? trace / static_cast<double>(n) : 1;
    for (float& value : block.triangle) value = static_cast<float>(value / mean);
    for (size_t i = 0; i < n; ++i) block.triangle[i * n + i] += kDamping;
    factorise(block.triangle, n);
    transpose(block.triangle, n);
    for (size_t i = 0; i < n; ++i) block.inverse[i] = 1 / block.triangle[i * n + i];
  }
}

void Fit::round(std::span<float> rows, float least, float most, const ScaleOf& scale_of) const {
  for (const Block& block : blocks_) {
    for (size_t at = 0; at < rows.size(); at += kPanel * width_) {
      round_batch(block, rows.subspan(at, std::min(kPanel * width_, rows.size() - at)), at / width_,
                  least, most, scale_of);
    }
  }
}

double Fit::loss(std::span<const float> errors) const {
  const size_t count = aside_.size() / width_;
  std::array<float, kMostAside> products = {};
  add_products(std::span(products).first(count), aside_.data(), count, errors);
  double sum = 0;
  for (const float product : products) sum += double{product} * product;
  return sum;
}

bool Fit::is_better(std::span<const float> errors, std::span<const float> fitted) const {
  return loss(errors) < loss(fitted);
}

void Fit::round_batch(const Block& block, std::span<float> rows, size_t first_row, float least,
                      float most, const ScaleOf& scale_of) const {
  const size_t n = block.size, count = rows.size() / width_;
  // The sum over i of e_i L_ij, of all columns i that have been rounded.
  std::vector<float> sums(count * n);
  std::array<float, kFitColumns> targets, errors;
  for (size_t end = n; end > 0;) {
    const size_t begin = (end - 1) / kFitColumns * kFitColumns;
    for (size_t row = 0; row < count; ++row) {
      float* const values = rows.data() + row * width_ + block.first;
      const std::span<float> sum = std::span(sums).subspan(row * n, n);
      const auto target = [&](size_t j) { return values[j] - sum[j] * block.inverse[j]; };
      for (size_t j = begin; j < end; ++j) targets[j - begin] = target(j);
      const auto [scale, min] =
          scale_of(first_row + row, block.first + begin, std::span(targets).first(end - begin));
      for (size_t j = end; j-- > begin;) {
        const float code =
            scale != 0 ? std::clamp(std::nearbyint((target(j) - min) / scale), least, most) : 0;
        errors[j - begin] = code * scale + min - values[j];
        values[j] = code;
        add_products(sum.subspan(begin, j - begin), &block.triangle[j * n + begin], n,
                     std::span(errors).subspan(j - begin, 1));
      }
      add_products(sum.first(begin), &block.triangle[begin * n], n,
                   std::span(errors).first(end - begin));
    }
    end = begin;
  }
}

}  // namespace oxbow::convert

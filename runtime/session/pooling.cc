#include "runtime/session/pooling.h"

#include <algorithm>
#include <cmath>

namespace oxbow {

void pool_rows(float* values, size_t rows, size_t width, Pooling pooling) {
  if (pooling == Pooling::kFirst) return;
  if (pooling == Pooling::kLast) {
    std::copy_n(values + (rows - 1) * width, width, values);
    return;
  }
  for (size_t r = 1; r < rows; ++r) {
    const float* row = values + r * width;
    for (size_t i = 0; i < width; ++i) {
      values[i] = pooling == Pooling::kMax ? std::max(values[i], row[i]) : values[i] + row[i];
    }
  }
  if (pooling == Pooling::kMax) return;
  const float count = static_cast<float>(rows);
  for (size_t i = 0; i < width; ++i) values[i] /= count;
}

void normalise_row(float* row, size_t width) {
  double squares = 0.0;
  for (size_t i = 0; i < width; ++i) squares += double{row[i]} * double{row[i]};
  if (squares == 0.0) return;
  const auto scale = static_cast<float>(1.0 / std::sqrt(squares));
  for (size_t i = 0; i < width; ++i) row[i] *= scale;
}

}  // namespace oxbow

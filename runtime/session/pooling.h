#pragma once

// Many rows of a text become one: what oxb_session_embed does behind a run.

#include <cstddef>
#include <cstdint>

namespace oxbow {

/// Values are part of the C API (oxb_pooling).
enum class Pooling : int32_t { kMean = 0, kFirst = 1, kLast = 2, kMax = 3 };

/// Over `rows` rows of `width` numbers, at least one; the result takes the place of the first. Sums are taken row by row,
/// so that they are the same on every machine.
void pool_rows(float* values, size_t rows, size_t width, Pooling pooling);

/// Divides a row by its Euclidean length; zeros stay zeros.
void normalise_row(float* row, size_t width);

}  // namespace oxbow

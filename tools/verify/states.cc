#include "tools/verify/states.h"

namespace oxbow::tools {
namespace {

Produced like_reference(const std::vector<uint64_t>& shape) {
  Produced out;
  out.rows = shape[0];
  out.width = 1;
  for (size_t i = 1; i < shape.size(); ++i) out.width *= shape[i];
  out.values.resize(out.rows * out.width);
  return out;
}

Produced transpose(const Produced& state, const std::vector<uint64_t>& shape) {
  const uint64_t columns = shape[shape.size() - 2], rows = shape[shape.size() - 1];
  uint64_t heads = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) heads *= shape[i];
  const bool whole = state.rows == heads * rows;
  if (state.width != columns || (!whole && (heads != 1 || state.rows > rows))) return state;
  const uint64_t missing = whole ? 0 : rows - state.rows;
  Produced out = like_reference(shape);
  out.covered.resize(out.values.size());
  for (uint64_t h = 0; h < heads; ++h) {
    for (uint64_t r = missing; r < rows; ++r) {
      for (uint64_t c = 0; c < columns; ++c) {
        const uint64_t to = (h * columns + c) * rows + r;
        out.values[to] = state.values[(h * rows + r - missing) * columns + c];
        out.covered[to] = true;
      }
    }
  }
  return out;
}

}  // namespace

Produced in_reference_order(const Produced& state, const std::vector<uint64_t>& shape,
                            bool transposed) {
  if (transposed && shape.size() >= 2) return transpose(state, shape);
  const bool heads_first = shape.size() == 3 && shape[1] == state.rows &&
                           shape[0] * shape[2] == state.width && state.rows != 0;
  // A plain state has all dimensions but the last as its rows.
  if (!heads_first || shape[2] == state.width) return state;
  Produced out = like_reference(shape);
  const uint64_t heads = shape[0], rows = shape[1], width = shape[2];
  for (uint64_t h = 0; h < heads; ++h) {
    for (uint64_t r = 0; r < rows; ++r) {
      for (uint64_t i = 0; i < width; ++i) {
        out.values[(h * rows + r) * width + i] = state.values[(r * heads + h) * width + i];
      }
    }
  }
  return out;
}

}  // namespace oxbow::tools

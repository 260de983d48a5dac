#include "tools/verify/layout.h"

#include <algorithm>

namespace oxbow::tools {

std::vector<uint64_t> coordinates(const std::vector<uint64_t>& shape, uint64_t index) {
  if (std::find(shape.begin(), shape.end(), 0u) != shape.end()) return {};
  std::vector<uint64_t> at(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    at[i] = index % shape[i];
    index /= shape[i];
  }
  return at;
}

std::optional<Layout::View> Layout::view(const std::vector<uint64_t>& shape) const {
  const size_t leading = has_batch ? 2 : 1;
  if (shape.size() < leading) return std::nullopt;
  if (has_batch && shape[time_major ? 1 : 0] != batch) return std::nullopt;
  View view;
  view.rows = shape[has_batch && !time_major ? 1 : 0];
  view.width = 1;
  for (size_t i = leading; i < shape.size(); ++i) view.width *= shape[i];
  const bool interleaved = has_batch && time_major;
  view.row_stride = interleaved ? batch * view.width : view.width;
  view.stream_stride = interleaved ? view.width : view.rows * view.width;
  return view;
}

std::optional<Layout::View> Layout::whole(const std::vector<uint64_t>& shape, uint64_t rows,
                                          uint64_t width) const {
  uint64_t all = 1;
  for (const uint64_t dimension : shape) all *= dimension;
  if (all == rows * width) return View{rows, width, 0, width};
  if (has_batch && (shape.empty() || shape[0] != batch)) return std::nullopt;
  uint64_t count = 1;
  for (size_t i = has_batch ? 1 : 0; i < shape.size(); ++i) count *= shape[i];
  if (count != rows * width) return std::nullopt;
  return View{rows, width, rows * width, width};
}

}  // namespace oxbow::tools

// Short filters, one for each channel, have loops of their own: where the number of taps is known, a vector of channels
// loads the filters side by side and sorts them by tap. With any number it would fetch each tap by itself.

#include <utility>

#include "ops/convolution/convolution.h"
#include "ops/convolution/generic.h"

namespace oxbow {
namespace {

constexpr size_t kMostShortTaps = 4;

template <size_t kTaps, size_t kRows>
void convolve_short(const float* __restrict x, const float* __restrict k, size_t width,
                    float* __restrict y) {
  for (size_t c = 0; c < width; ++c) {
    float sum = y[c];
#pragma GCC unroll 4
    for (size_t a = 0; a < kRows; ++a) sum += k[c * kTaps + a] * x[a * width + c];
    y[c] = sum;
  }
}

using ShortFilter = decltype(&convolve_short<1, 1>);
struct ShortFilters {
  ShortFilter of_rows[kMostShortTaps];
};
/// Of runs of 1 to kTaps rows.
template <size_t kTaps, size_t... kIndex>
constexpr ShortFilters short_filters(std::index_sequence<kIndex...>) {
  return {{convolve_short<kTaps, kIndex + 1>...}};
}
template <size_t kTaps>
constexpr ShortFilters kFiltersOf = short_filters<kTaps>(std::make_index_sequence<kTaps>());
constexpr ShortFilters kFilters[] = {kFiltersOf<1>, kFiltersOf<2>, kFiltersOf<3>, kFiltersOf<4>};

}  // namespace

void convolution_f32_f32_f32_avx2(const float* x, size_t rows, const float* k,
                                  const ConvolutionParams& params, float* y) {
  if (params.heads == params.width && params.taps <= kMostShortTaps && rows != 0 &&
      rows <= params.taps) {
    return kFilters[params.taps - 1].of_rows[rows - 1](x, k, params.width, y);
  }
  convolve(x, rows, k, params, y);
}

}  // namespace oxbow

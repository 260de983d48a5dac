#include "ops/convolution/convolution.h"
#include "ops/convolution/generic.h"

namespace oxbow {

void convolution_f32_f32_f32_avx2(const float* x, size_t rows, const float* k,
                                  const ConvolutionParams& params, float* y) {
  convolve(x, rows, k, params, y);
}

}  // namespace oxbow

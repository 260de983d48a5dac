// XNNPACK: int8 to int8 with a scale for each channel, as a convolution of one by one pixels, which is how the packaged
// version offers that.

#include <xnnpack.h>

#include <algorithm>
#include <cmath>

#include "tests/bench/arm/peers/peer.h"

namespace {

// Small enough that most sums stay inside int8.
constexpr float kScale = 1.0f / 8192;

void run(const Product& p) {
  const std::vector<float> scales(p.channels, kScale);
  const std::vector<int32_t> bias(p.channels, 0);
  xnn_operator_t op = nullptr;
  if (xnn_create_convolution2d_nhwc_qc8(0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, p.depth, p.channels,
                                        p.depth, p.channels, 0, 1.0f, scales.data(),
                                        p.weight.data(), bias.data(), 0, 1.0f, -127, 127, 0,
                                        &op) != xnn_status_success) {
    fail("xnn_create_convolution2d_nhwc_qc8");
  }
  // It may read some bytes beyond the end.
  std::vector<int8_t> x = p.x, y(p.rows * p.channels);
  x.resize(x.size() + XNN_EXTRA_BYTES);
  if (xnn_setup_convolution2d_nhwc_qc8(op, 1, p.rows, 1, x.data(), y.data(), nullptr) !=
      xnn_status_success) {
    fail("xnn_setup_convolution2d_nhwc_qc8");
  }
  const auto call = [&] {
    if (xnn_run_operator(op, nullptr) != xnn_status_success) fail("xnn_run_operator");
  };
  call();
  count("xnnpack", p, call);
  for (size_t m = 0; m < p.rows; ++m) {
    for (size_t n = 0; n < p.channels; n += 61) {
      const float exact =
          std::clamp(std::nearbyint(static_cast<float>(p.exact(m, n)) * kScale), -127.0f, 127.0f);
      if (static_cast<float>(y[m * p.channels + n]) != exact) fail("xnnpack: wrong result");
    }
  }
  xnn_delete_operator(op);
}

}  // namespace

int main(int argc, char** argv) {
  if (xnn_initialize(nullptr) != xnn_status_success) fail("xnn_initialize");
  return for_each_product(argc, argv, run);
}

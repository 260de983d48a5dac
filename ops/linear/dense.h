#pragma once

// Dense layers computed by another library, which is chosen by name (docs/backends.md). The library copies the
// weights when the session is created and allocates nothing afterwards; activation, residual and int8 outputs
// stay with our own kernels.
//
// Compiles as C++17 too: a library's headers may know no newer one.

#include <cstddef>
#include <cstdint>

namespace oxbow {

/// x W^T + bias, or a range of its channels.
struct DenseSpec {
  size_t depth = 0;
  size_t channels = 0;
  size_t max_rows = 0;
  /// Elements from one row to the next.
  size_t x_stride = 0;
  size_t y_stride = 0;
  /// [channels][depth]; the other is null. Needed during creation only, like the scales.
  const float* weight_f32 = nullptr;
  const int8_t* weight_i8 = nullptr;
  /// I8 only, one per channel.
  const float* weight_scales = nullptr;
  /// May be null. Outlives the layer.
  const float* bias = nullptr;
  /// I8 only: of x, and of x W^T + bias where the library gives that as int8.
  float x_scale = 0.0f;
  float y_scale = 0.0f;
};

class DenseLayer {
 public:
  virtual ~DenseLayer() = default;
  /// 1 to max_rows rows of x, which has the weight's type. False: the library failed.
  virtual bool run(const void* x, size_t rows, void* y) = 0;
};

/// What comes of int8 rows and int8 weights; floats give floats.
enum class DenseI8Result : uint8_t {
  /// The sums, without bias.
  kI32,
  /// The sums with bias, as codes of DenseSpec::y_scale.
  kI8,
};

struct DenseProvider {
  const char* name;
  DenseI8Result i8_result;
  /// Layers may run at the same time, so that a step is cut into one for each thread.
  bool parallel;
  /// Bytes behind the last row of x that may be read.
  size_t overread;
  /// Null with the reason in `why`, a constant text; `why` is null when memory ran out.
  DenseLayer* (*create)(const DenseSpec& spec, const char** why);
  /// Bytes this library has taken from the system; creation is measured by the difference.
  size_t (*taken_bytes)();
};

// kXnnpackProvider and so on, each in a file with the backend's name, which a build without it leaves out.
#define OXB_PROCESSOR(NAME, number, name, constant)
#define OXB_LIBRARY(NAME, number, name, constant) extern const DenseProvider constant##Provider;
#define OXB_DEVICE(NAME, number, name, constant, driver, context)
#include "runtime/device/backends.inc"

}  // namespace oxbow

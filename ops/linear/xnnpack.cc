// Dense layers by XNNPACK: fully connected in float; with static int8 a convolution of one pixel, the only one of its
// int8 layers that has a scale for each channel.
//
// No thread pool is handed over: its workers spin, and the session's own threads each run a part of the channels.

#include <xnnpack.h>

#include <cstdlib>
#include <limits>
#include <new>

#include "ops/linear/dense.h"
#include "ops/linear/formula.h"
#include "runtime/base/checked.h"
#include "runtime/base/tensor.h"

namespace oxbow {
namespace {

// A session is created by one thread, so this counts what is taken for it and for nothing else.
thread_local size_t taken_by_thread = 0;

void* allocate(void*, size_t bytes) {
  taken_by_thread += bytes;
  return std::malloc(bytes);
}
void* reallocate(void*, void* old, size_t bytes) {
  taken_by_thread += bytes;
  return std::realloc(old, bytes);
}
void deallocate(void*, void* memory) { std::free(memory); }
void* aligned_allocate(void*, size_t alignment, size_t bytes) {
  taken_by_thread += bytes;
  return std::aligned_alloc(alignment, round_up(bytes, alignment));
}

const xnn_allocator kAllocator = {nullptr,    allocate,         reallocate,
                                  deallocate, aligned_allocate, deallocate};

class XnnpackLayer : public DenseLayer {
 public:
  XnnpackLayer(xnn_operator_t op, bool is_i8) : op_(op), is_i8_(is_i8) {}
  ~XnnpackLayer() override { xnn_delete_operator(op_); }

  bool run(const void* x, size_t rows, void* y) override {
    const xnn_status status =
        is_i8_ ? xnn_setup_convolution2d_nhwc_qc8(op_, 1, 1, rows, static_cast<const int8_t*>(x),
                                                  static_cast<int8_t*>(y), nullptr)
               : xnn_setup_fully_connected_nc_f32(op_, rows, static_cast<const float*>(x),
                                                  static_cast<float*>(y), nullptr);
    return status == xnn_status_success && xnn_run_operator(op_, nullptr) == xnn_status_success;
  }

 private:
  xnn_operator_t op_;
  bool is_i8_;
};

xnn_status create_f32(const DenseSpec& spec, xnn_operator_t* op) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return xnn_create_fully_connected_nc_f32(spec.depth, spec.channels, spec.x_stride, spec.y_stride,
                                           spec.weight_f32, spec.bias, -kInfinity, kInfinity, 0,
                                           op);
}

xnn_status create_i8(const DenseSpec& spec, xnn_operator_t* op) {
  auto* scales = static_cast<float*>(std::malloc(spec.channels * sizeof(float)));
  auto* bias = static_cast<int32_t*>(std::malloc(spec.channels * sizeof(int32_t)));
  xnn_status status = xnn_status_out_of_memory;
  if (scales != nullptr && bias != nullptr) {
    for (size_t n = 0; n < spec.channels; ++n) {
      // XNNPACK takes no scale of 0, which a channel of zeros has; with zeros for weights any other will do.
      const float scale = spec.weight_scales[n];
      scales[n] = scale == 0.0f ? spec.y_scale / spec.x_scale : scale;
      bias[n] = spec.bias == nullptr
                    ? 0
                    : formula_bias(spec.bias[n], spec.x_scale, scale, spec.y_scale, spec.depth);
    }
    status = xnn_create_convolution2d_nhwc_qc8(
        0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, spec.depth, spec.channels, spec.x_stride, spec.y_stride, 0,
        spec.x_scale, scales, spec.weight_i8, bias, 0, spec.y_scale, -127, 127, 0, op);
  }
  std::free(scales);
  std::free(bias);
  return status;
}

DenseLayer* create_layer(const DenseSpec& spec, const char** why) {
  *why = nullptr;
  xnn_status status = xnn_initialize(&kAllocator);
  xnn_operator_t op = nullptr;
  if (status == xnn_status_success) {
    status = spec.weight_i8 != nullptr ? create_i8(spec, &op) : create_f32(spec, &op);
  }
  switch (status) {
    case xnn_status_success:
      break;
    case xnn_status_out_of_memory:
      return nullptr;
    case xnn_status_unsupported_hardware:
      *why = "it does not support this machine";
      return nullptr;
    default:
      *why = "it does not support these sizes or scales";
      return nullptr;
  }
  auto* layer = new (std::nothrow) XnnpackLayer(op, spec.weight_i8 != nullptr);
  if (layer == nullptr) xnn_delete_operator(op);
  return layer;
}

size_t taken_bytes() { return taken_by_thread; }

}  // namespace

const DenseProvider kXnnpackProvider = {"xnnpack",       DenseI8Result::kI8, true,
                                        XNN_EXTRA_BYTES, create_layer,       taken_bytes};

}  // namespace oxbow

// The products of an index (runtime/index/index.h) by the int8 kernels of the linear op: a table lies as weights do.

#include <type_traits>

#include "ops/linear/linear.h"
#include "runtime/index/index.h"

namespace oxbow {
namespace {

template <typename X, typename W>
LinearKernel<X, W> pick_kernel() {
#define OXB_KERNEL(x, w, isa, fn)                               \
  if constexpr (std::is_same_v<x, X> && std::is_same_v<w, W>) { \
    if (may_use(isa, false)) return fn;                         \
  }
#include "ops/linear/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

}  // namespace

void compute_index_products(const IndexProducts& products) {
  LinearSlice<int8_t, int8_t> slice;
  slice.rows = products.row_count;
  slice.channels = products.vectors;
  slice.depth = products.width;
  slice.x = products.rows;
  slice.x_stride = products.row_stride;
  slice.x_scales = products.row_scales;
  slice.weight = products.codes;
  slice.weight_scales = products.scales;
  slice.bias = products.biases;
  slice.y = products.y;
  slice.y_stride = products.vectors;
  pick_kernel<int8_t, int8_t>()(slice);
}

}  // namespace oxbow

// Arm Compute Library: int8 to int32 without scales, weights packed in the first run.

#include <arm_compute/runtime/NEON/functions/NEGEMMLowpMatrixMultiplyCore.h>
#include <arm_compute/runtime/Scheduler.h>
#include <arm_compute/runtime/Tensor.h>

#include "tests/bench/arm/peers/peer.h"

namespace {

using arm_compute::Coordinates;
using arm_compute::DataType;
using arm_compute::QuantizationInfo;
using arm_compute::Tensor;
using arm_compute::TensorInfo;
using arm_compute::TensorShape;

void run(const Product& p) {
  const QuantizationInfo no_offset(1.0f, 0);
  Tensor a, b, c;
  a.allocator()->init(
      TensorInfo(TensorShape(p.depth, p.rows), 1, DataType::QASYMM8_SIGNED, no_offset));
  b.allocator()->init(
      TensorInfo(TensorShape(p.channels, p.depth), 1, DataType::QASYMM8_SIGNED, no_offset));
  c.allocator()->init(TensorInfo(TensorShape(p.channels, p.rows), 1, DataType::S32));
  arm_compute::NEGEMMLowpMatrixMultiplyCore gemm;
  const arm_compute::GEMMInfo info(false, false, /*reshape_b_only_on_first_run=*/true);
  gemm.configure(&a, &b, nullptr, &c, info);
  for (Tensor* tensor : {&a, &b, &c}) tensor->allocator()->allocate();
  const auto at = [](Tensor& tensor, size_t column, size_t row) {
    return tensor.ptr_to_element(Coordinates(static_cast<int>(column), static_cast<int>(row)));
  };
  for (size_t k = 0; k < p.depth; ++k) {
    for (size_t m = 0; m < p.rows; ++m) *at(a, k, m) = static_cast<uint8_t>(p.x[m * p.depth + k]);
    for (size_t n = 0; n < p.channels; ++n)
      *at(b, n, k) = static_cast<uint8_t>(p.weight[n * p.depth + k]);
  }
  gemm.run();
  count("acl", p, [&] { gemm.run(); });
  for (size_t m = 0; m < p.rows; ++m) {
    for (size_t n = 0; n < p.channels; n += 61) {
      if (*reinterpret_cast<const int32_t*>(at(c, n, m)) != p.exact(m, n))
        fail("acl: wrong result");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  arm_compute::Scheduler::get().set_num_threads(1);
  return for_each_product(argc, argv, run);
}

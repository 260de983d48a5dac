// Dense layers by the Arm Compute Library: float, and int8 with exact sums.
//
// Its layers are made for one number of rows, and each packs the weights for itself; so there is one for a single row,
// which is what decoding needs, and one for tiles, which takes the rest. It is handed copies of its inputs: giving it
// other memory with each run would allocate.

#include <malloc.h>

#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <vector>

#include "arm_compute/core/CPP/ICPPKernel.h"
#include "arm_compute/runtime/IScheduler.h"
#include "arm_compute/runtime/NEON/functions/NEGEMM.h"
#include "arm_compute/runtime/NEON/functions/NEGEMMLowpMatrixMultiplyCore.h"
#include "arm_compute/runtime/Scheduler.h"
#include "arm_compute/runtime/Tensor.h"
#include "ops/linear/dense.h"

namespace oxbow {
namespace {

using arm_compute::DataType;
using arm_compute::GEMMInfo;
using arm_compute::QuantizationInfo;
using arm_compute::Tensor;
using arm_compute::TensorInfo;
using arm_compute::TensorShape;
using arm_compute::Window;

constexpr size_t kTileRows = 16;

/// Runs everything where it is called. Its own schedulers have threads, which would work beside the session's, and
/// allocate for some layers.
class InlineScheduler : public arm_compute::IScheduler {
 public:
  void set_num_threads(unsigned int) override {}
  unsigned int num_threads() const override { return 1; }
  void schedule(arm_compute::ICPPKernel* kernel, const Hints& hints) override {
    const Window& window = kernel->window();
    if (hints.split_dimension() != split_dimensions_all) {
      if (window.num_iterations(hints.split_dimension()) != 0) kernel->run(window, info());
      return;
    }
    // Part 0 of 1 in both directions.
    Window part;
    part.set(Window::DimX, Window::Dimension(0, 1));
    part.set(Window::DimY, Window::Dimension(0, 1));
    kernel->run_nd(window, info(), part);
  }
  void schedule_op(arm_compute::ICPPKernel* kernel, const Hints&,
                   arm_compute::ITensorPack& tensors) override {
    kernel->run_op(tensors, kernel->window(), info());
  }

 protected:
  void run_workloads(std::vector<Workload>& workloads) override {
    for (Workload& workload : workloads) workload(info());
  }

 private:
  arm_compute::ThreadInfo info() {
    arm_compute::ThreadInfo info;
    info.cpu_info = &_cpu_info;
    return info;
  }
};

uint8_t* row_of(Tensor& tensor, size_t row) {
  const arm_compute::ITensorInfo& info = *tensor.info();
  return tensor.buffer() + info.offset_first_element_in_bytes() + row * info.strides_in_bytes()[1];
}

/// x W^T for exactly `rows` rows.
class Product {
 public:
  /// May throw.
  Product(const DenseSpec& spec, size_t rows) : rows_(rows), is_i8_(spec.weight_i8 != nullptr) {
    const DataType type = is_i8_ ? DataType::QASYMM8_SIGNED : DataType::F32;
    const QuantizationInfo unit(1.0f, 0);
    x_.allocator()->init(TensorInfo(TensorShape(spec.depth, rows), 1, type, unit));
    weight_.allocator()->init(TensorInfo(TensorShape(spec.channels, spec.depth), 1, type, unit));
    y_.allocator()->init(
        TensorInfo(TensorShape(spec.channels, rows), 1, is_i8_ ? DataType::S32 : DataType::F32));
    // The weights are packed once.
    const GEMMInfo info(false, false, true);
    if (is_i8_) {
      i8_.configure(&x_, &weight_, nullptr, &y_, info);
    } else {
      f32_.configure(&x_, &weight_, nullptr, &y_, 1.0f, 0.0f, info);
    }
    x_.allocator()->allocate();
    weight_.allocator()->allocate();
    y_.allocator()->allocate();
    for (size_t r = 0; r < rows; ++r) std::memset(row_of(x_, r), 0, spec.depth * element_bytes());
    for (size_t k = 0; k < spec.depth; ++k) {
      uint8_t* row = row_of(weight_, k);
      for (size_t n = 0; n < spec.channels; ++n) {
        if (is_i8_) {
          reinterpret_cast<int8_t*>(row)[n] = spec.weight_i8[n * spec.depth + k];
        } else {
          reinterpret_cast<float*>(row)[n] = spec.weight_f32[n * spec.depth + k];
        }
      }
    }
    // The first run takes what memory it needs.
    run();
    if (!weight_.is_used()) weight_.allocator()->free();
  }

  size_t rows() const { return rows_; }
  uint8_t* x(size_t row) { return row_of(x_, row); }
  const uint8_t* y(size_t row) { return row_of(y_, row); }
  void run() {
    if (is_i8_) {
      i8_.run();
    } else {
      f32_.run();
    }
  }

 private:
  size_t element_bytes() const { return is_i8_ ? 1 : sizeof(float); }

  size_t rows_;
  bool is_i8_;
  Tensor x_, weight_, y_;
  arm_compute::NEGEMM f32_;
  arm_compute::NEGEMMLowpMatrixMultiplyCore i8_;
};

class AclLayer : public DenseLayer {
 public:
  /// May throw.
  explicit AclLayer(const DenseSpec& spec)
      : spec_(spec),
        is_i8_(spec.weight_i8 != nullptr),
        one_(spec, 1),
        tile_(spec.max_rows > 1 ? new Product(spec, kTileRows) : nullptr) {}
  ~AclLayer() override { delete tile_; }
  AclLayer(const AclLayer&) = delete;
  AclLayer& operator=(const AclLayer&) = delete;

  bool run(const void* x, size_t rows, void* y) override {
    const size_t x_bytes = is_i8_ ? 1 : sizeof(float);
    const auto* from = static_cast<const uint8_t*>(x);
    auto* to = static_cast<uint8_t*>(y);
    // Sums and floats have four bytes.
    const size_t y_row = spec_.y_stride * 4;
    try {
      for (size_t row = 0; row < rows;) {
        Product& product = rows - row == 1 ? one_ : *tile_;
        const size_t count = rows - row < product.rows() ? rows - row : product.rows();
        // Rows of the tile that are not filled keep older values and are not looked at.
        for (size_t r = 0; r < count; ++r) {
          std::memcpy(product.x(r), from + (row + r) * spec_.x_stride * x_bytes,
                      spec_.depth * x_bytes);
        }
        product.run();
        for (size_t r = 0; r < count; ++r) {
          std::memcpy(to + (row + r) * y_row, product.y(r), spec_.channels * 4);
          if (!is_i8_) add_bias(reinterpret_cast<float*>(to + (row + r) * y_row));
        }
        row += count;
      }
    } catch (const std::exception&) {
      return false;
    }
    return true;
  }

 private:
  void add_bias(float* y) const {
    if (spec_.bias == nullptr) return;
    for (size_t n = 0; n < spec_.channels; ++n) y[n] += spec_.bias[n];
  }

  DenseSpec spec_;
  bool is_i8_;
  Product one_;
  Product* tile_;
};

DenseLayer* create_layer(const DenseSpec& spec, const char** why) {
  *why = nullptr;
  try {
    // Once: other sessions may be running with it.
    static const bool scheduled = [] {
      arm_compute::Scheduler::set(std::make_shared<InlineScheduler>());
      return true;
    }();
    (void)scheduled;
    return new AclLayer(spec);
  } catch (const std::bad_alloc&) {
    return nullptr;
  } catch (const std::exception&) {
    *why = "it does not support these sizes";
    return nullptr;
  }
}

// Its layers take memory in ways that cannot be handed to them, so the heap is looked at before and after.
size_t taken_bytes() {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

}  // namespace

const DenseProvider kAclProvider = {"acl", DenseI8Result::kI32, false,
                                    0,     create_layer,        taken_bytes};

}  // namespace oxbow

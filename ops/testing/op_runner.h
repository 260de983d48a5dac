#pragma once

// Runs one op without a model, a session or an arena:
//
//   TestTensor x = f32_tensor("x", 3, 64), y = f32_tensor("y", 3, 64);
//   fill_uniform(x, /*seed=*/1);
//   OpRunner op(bind_activate);
//   op.options(schema::ActivateOptionsT{...});
//   op.inputs = {&x};
//   op.outputs = {&y};
//   ASSERT_EQ(op.bind_and_run(), Status::kOk) << op.message();
//
// Bind runs twice as in a session, first with null pointers to count and then to place, and must
// ask for the same both times. Every buffer has exactly the bytes it must have, so that sanitizers
// see a stray one, and starts as 0xff bytes: NaN as float, -1 as int8, so that what was not written
// shows.
//
// Where the op has a shader for the step, every run is repeated on a Vulkan device and compared with the
// CPU's (vulkan_runner.h).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/op.h"
#include "schema/model_generated.h"

namespace oxbow::testing {

/// Aligned like the arena, sized to the byte.
class Buffer {
 public:
  explicit Buffer(size_t bytes = 0);
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer();
  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }

 private:
  void swap(Buffer& other) {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

/// A tensor view with memory of its own; scales are kept apart from the elements to catch overruns.
/// Fields that say nothing about storage (rows_symbol, ring, limit, name) may be set afterwards.
struct TestTensor : Tensor {
  TestTensor(std::string name, DataType type, Layout layout, uint32_t rows, uint32_t width,
             uint32_t scale_groups);
  TestTensor(TestTensor&& other) = default;

  TestTensor& with_symbol(int16_t symbol) {
    rows_symbol = symbol;
    return *this;
  }
  TestTensor& with_ring(int16_t index, uint32_t pinned_rows = 0) {
    ring = index;
    pinned = pinned_rows;
    return *this;
  }
  /// Element as the number it stands for.
  double value(size_t row, size_t column) const;
  /// Element as its code, in whichever layout.
  int code(size_t row, size_t column) const;
  void set_code(size_t row, size_t column, int value);
  size_t elements_bytes() const { return elements.size(); }

  Buffer elements;
  Buffer scale_values;

 private:
  template <typename Block>
  Block* block_of(size_t row, size_t column) const;
  size_t code_index(size_t row, size_t column) const;
  std::unique_ptr<std::string> owned_name_;
};

TestTensor f32_tensor(std::string name, uint32_t rows, uint32_t width);
TestTensor i32_tensor(std::string name, uint32_t rows, uint32_t width);
TestTensor i8_tensor(std::string name, uint32_t rows, uint32_t width, uint32_t scale_groups = 1);
/// int8 weight [rows, width] in Layout::kBlock8x4, with the padding zero.
TestTensor block_tensor(std::string name, uint32_t rows, uint32_t width);
/// A weight of any type, as matrices have it.
TestTensor weight_tensor(std::string name, DataType type, uint32_t rows, uint32_t width);

/// Fills F32, F16 and BF16 with [low, high), others with all codes and positive scales up to high / 127 (padding
/// zero). The same seed gives the same values on every machine.
void fill_uniform(TestTensor& tensor, uint64_t seed, float low = -1.0f, float high = 1.0f);
/// Sets an F32 tensor's elements, row after row.
void fill(TestTensor& tensor, const std::vector<float>& values);

/// Sizes around the vector widths: 1..33, and 2^n, 2^n +- 1 from 64 on, up to `limit`.
std::vector<uint32_t> simd_sizes_up_to(uint32_t limit);

using BindFunction = Status (*)(BindContext& context, RunFunction* run);

class OpRunner {
 public:
  explicit OpRunner(BindFunction function) : bind_(function) {}
  OpRunner(const OpRunner&) = delete;
  ~OpRunner() { destroy_owned(); }

  /// Sets the step's options, e.g. options(schema::LinearOptionsT{}). Without it the step has none.
  template <typename OptionsT>
  void options(OptionsT value) {
    step.options.Set(std::move(value));
  }

  /// Both bind passes. Checks that they agree.
  Status bind();
  /// After bind(): with fresh scratch of exactly the requested bytes.
  Status run();
  Status bind_and_run();
  /// What bind or run had to say about its failure.
  const char* message() const { return error_.text; }
  size_t scratch_bytes() const { return scratch_bytes_; }
  BindFunction bind_function() const { return bind_; }
  /// What the op made at the last bind and the session would own; null: nothing.
  const OwnedObject* owned() const { return owned_; }

  /// Inputs and outputs of the step; its index lists are filled from these.
  std::vector<TestTensor*> inputs, outputs;
  schema::StepT step;
  /// By symbol index: the actual count of this run, the most it may be, whether steps may set it.
  std::vector<uint32_t> symbols, symbol_maxima;
  std::vector<bool> settable_symbols;
  /// By ring index.
  std::vector<RingPosition> rings;
  std::vector<uint32_t> ring_capacities;
  /// Tokens of the stream before this run.
  uint64_t position = 0;
  size_t threads = 1;
  bool reference_only = true;
  /// Without `reference_only`.
  Backend backend = Backend::kCpu;
  ThreadPool* pool = nullptr;
  /// Not null: the step's outputs have kind Output and the rows go here.
  float* caller_output = nullptr;

 private:
  friend class FakeBindContext;
  void destroy_owned();
  OwnedObject* owned_ = nullptr;
  BindFunction bind_;
  RunFunction run_ = nullptr;
  /// The step as it would be in a file, which lives as long: ops may keep pointers to their options.
  flatbuffers::FlatBufferBuilder packed_;
  size_t scratch_bytes_ = 0;
  Buffer params_;
  Error error_;
};

}  // namespace oxbow::testing

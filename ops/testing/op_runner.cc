#include "ops/testing/op_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>

#include "ops/testing/vulkan_runner.h"

namespace oxbow::testing {

Buffer::Buffer(size_t bytes) : bytes_(bytes) {
  data_ = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kTensorAlignment}));
  std::memset(data_, 0xff, bytes);
}

Buffer::~Buffer() { ::operator delete (data_, std::align_val_t{kTensorAlignment}); }

TestTensor::TestTensor(std::string tensor_name, DataType tensor_type, Layout tensor_layout,
                       uint32_t tensor_rows, uint32_t tensor_width, uint32_t groups)
    : elements(element_bytes(tensor_type, tensor_layout, tensor_rows, tensor_width)),
      scale_values(size_t{tensor_rows} * groups * sizeof(float)),
      owned_name_(std::make_unique<std::string>(std::move(tensor_name))) {
  uint64_t bytes = 0;
  EXPECT_TRUE(tensor_bytes(tensor_type, tensor_layout, tensor_rows, tensor_width, groups, &bytes))
      << "no such tensor can be in a file: " << *owned_name_;
  EXPECT_EQ(bytes, elements.size() + scale_values.size());
  data = elements.data();
  if (groups != 0) scales = reinterpret_cast<float*>(scale_values.data());
  name = owned_name_->c_str();
  type = tensor_type;
  layout = tensor_layout;
  rows = tensor_rows;
  width = tensor_width;
  scale_groups = groups;
}

template <typename Block>
Block* TestTensor::block_of(size_t row, size_t column) const {
  const size_t columns = block_size(layout).columns;
  return reinterpret_cast<Block*>(data) + row / kBlockRows * ceil_div(width, columns) +
         column / columns;
}

int TestTensor::code(size_t row, size_t column) const {
  if (type == DataType::kI4) {
    return code_of(*block_of<I4Block>(row, column), row % kBlockRows, column % kI4BlockColumns);
  }
  if (type == DataType::kI4Min) {
    return code_of(*block_of<I4MinBlock>(row, column), row % kBlockRows, column % kI4BlockColumns);
  }
  if (type == DataType::kTernary) {
    return code_of(*block_of<TernaryBlock>(row, column), row % kBlockRows,
                   column % kTernaryBlockColumns);
  }
  return reinterpret_cast<const int8_t*>(data)[code_index(row, column)];
}

void TestTensor::set_code(size_t row, size_t column, int value) {
  if (type == DataType::kI4) {
    oxbow::set_code(*block_of<I4Block>(row, column), row % kBlockRows, column % kI4BlockColumns,
                    value);
  } else if (type == DataType::kI4Min) {
    oxbow::set_code(*block_of<I4MinBlock>(row, column), row % kBlockRows, column % kI4BlockColumns,
                    value);
  } else if (type == DataType::kTernary) {
    oxbow::set_code(*block_of<TernaryBlock>(row, column), row % kBlockRows,
                    column % kTernaryBlockColumns, value);
  } else {
    reinterpret_cast<int8_t*>(data)[code_index(row, column)] = static_cast<int8_t>(value);
  }
}

size_t TestTensor::code_index(size_t row, size_t column) const {
  if (layout == Layout::kRowMajor) return row * stride() + column;
  const size_t block = row / kBlockRows * ceil_div(width, kBlockColumns) + column / kBlockColumns;
  return block * kBlockRows * kBlockColumns + row % kBlockRows * kBlockColumns +
         column % kBlockColumns;
}

double TestTensor::value(size_t row, size_t column) const {
  if (type == DataType::kF32) return f32(row)[column];
  if (type == DataType::kI32) return i32(row)[column];
  const size_t element = row * width + column;
  if (type == DataType::kF16) return to_f32(reinterpret_cast<const F16*>(data)[element]);
  if (type == DataType::kBF16) return to_f32(reinterpret_cast<const BF16*>(data)[element]);
  if (type == DataType::kI4) {
    const I4Block& block = *block_of<const I4Block>(row, column);
    return double{to_f32(block.scales[row % kBlockRows])} * code(row, column);
  }
  if (type == DataType::kI4Min) {
    const I4MinBlock& block = *block_of<const I4MinBlock>(row, column);
    return double{to_f32(block.scales[row % kBlockRows])} * code(row, column) +
           to_f32(block.mins[row % kBlockRows]);
  }
  const size_t group = column / (width / scale_groups);
  return double{row_scales(row)[group]} * code(row, column);
}

TestTensor f32_tensor(std::string name, uint32_t rows, uint32_t width) {
  return TestTensor(std::move(name), DataType::kF32, Layout::kRowMajor, rows, width, 0);
}

TestTensor i32_tensor(std::string name, uint32_t rows, uint32_t width) {
  return TestTensor(std::move(name), DataType::kI32, Layout::kRowMajor, rows, width, 0);
}

TestTensor i8_tensor(std::string name, uint32_t rows, uint32_t width, uint32_t scale_groups) {
  return TestTensor(std::move(name), DataType::kI8, Layout::kRowMajor, rows, width, scale_groups);
}

TestTensor block_tensor(std::string name, uint32_t rows, uint32_t width) {
  TestTensor tensor(std::move(name), DataType::kI8, Layout::kBlock8x4, rows, width, 1);
  std::memset(tensor.data, 0, tensor.elements.size());
  return tensor;
}

TestTensor weight_tensor(std::string name, DataType type, uint32_t rows, uint32_t width) {
  if (type == DataType::kI8) return block_tensor(std::move(name), rows, width);
  const Layout layout = type == DataType::kI4        ? Layout::kBlock8x32
                        : type == DataType::kI4Min   ? Layout::kBlock8x32Min
                        : type == DataType::kTernary ? Layout::kBlock8x16
                                                     : Layout::kRowMajor;
  return TestTensor(std::move(name), type, layout, rows, width, has_scales(type) ? 1 : 0);
}

namespace {

// splitmix64: tiny, and the same everywhere, unlike the distributions of <random>.
uint64_t next_random(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

float next_unit(uint64_t* state) { return static_cast<float>(next_random(state) >> 40) * 0x1p-24f; }

}  // namespace

void fill_uniform(TestTensor& tensor, uint64_t seed, float low, float high) {
  uint64_t state = seed;
  if (tensor.type == DataType::kF32) {
    float* values = tensor.f32();
    for (size_t i = 0; i < size_t{tensor.rows} * tensor.width; ++i) {
      values[i] = low + (high - low) * next_unit(&state);
    }
    return;
  }
  if (tensor.type == DataType::kF16 || tensor.type == DataType::kBF16) {
    auto* values = reinterpret_cast<uint16_t*>(tensor.data);
    for (size_t i = 0; i < size_t{tensor.rows} * tensor.width; ++i) {
      const float value = low + (high - low) * next_unit(&state);
      values[i] = tensor.type == DataType::kF16 ? to_f16(value).bits : to_bf16(value).bits;
    }
    return;
  }
  ASSERT_NE(tensor.type, DataType::kI32);
  const int most = tensor.type == DataType::kI8      ? 127
                   : tensor.type == DataType::kI4    ? 7
                   : tensor.type == DataType::kI4Min ? 15
                                                     : 1;
  const int least = tensor.type == DataType::kI4 ? -8 : tensor.type == DataType::kI4Min ? 0 : -most;
  if (tensor.type == DataType::kI4) {
    auto* blocks = reinterpret_cast<I4Block*>(tensor.data);
    for (size_t i = 0; i < tensor.elements.size() / sizeof(I4Block); ++i) {
      for (F16& scale : blocks[i].scales) {
        scale = to_f16(high / 8.0f * (0.25f + 0.75f * next_unit(&state)));
      }
      std::memset(blocks[i].codes, 0x88, sizeof(blocks[i].codes));
    }
  } else if (tensor.type == DataType::kI4Min) {
    auto* blocks = reinterpret_cast<I4MinBlock*>(tensor.data);
    for (size_t i = 0; i < tensor.elements.size() / sizeof(I4MinBlock); ++i) {
      for (size_t row = 0; row < kBlockRows; ++row) {
        const float scale = high / 8.0f * (0.25f + 0.75f * next_unit(&state));
        blocks[i].scales[row] = to_f16(scale);
        blocks[i].mins[row] = to_f16(scale * (-10.0f * next_unit(&state) - 2.0f));
      }
      std::memset(blocks[i].codes, 0, sizeof(blocks[i].codes));
    }
  } else {
    std::memset(tensor.data, tensor.type == DataType::kI8 ? 0 : 0x55, tensor.elements.size());
  }
  for (size_t row = 0; row < tensor.rows; ++row) {
    for (size_t column = 0; column < tensor.width; ++column) {
      const auto range = static_cast<uint64_t>(most - least + 1);
      tensor.set_code(row, column, static_cast<int>(next_random(&state) % range) + least);
    }
    for (size_t group = 0; group < tensor.scale_groups; ++group) {
      tensor.row_scales(row)[group] = high / 127.0f * (0.25f + 0.75f * next_unit(&state));
    }
  }
}

void fill(TestTensor& tensor, const std::vector<float>& values) {
  ASSERT_EQ(tensor.type, DataType::kF32);
  ASSERT_EQ(values.size(), size_t{tensor.rows} * tensor.width);
  std::memcpy(tensor.data, values.data(), values.size() * sizeof(float));
}

std::vector<uint32_t> simd_sizes_up_to(uint32_t limit) {
  std::vector<uint32_t> sizes;
  for (uint32_t size = 1; size <= 33 && size <= limit; ++size) sizes.push_back(size);
  for (uint32_t power = 64; power - 1 <= limit; power *= 2) {
    for (uint32_t size : {power - 1, power, power + 1}) {
      if (size <= limit) sizes.push_back(size);
    }
  }
  return sizes;
}

class FakeBindContext final : public BindContext {
 public:
  FakeBindContext(OpRunner& runner, const schema::Step& step, bool counting)
      : runner_(runner), step_(step), counting_(counting) {}

  const schema::Step& step() const override { return step_; }
  size_t input_count() const override { return runner_.inputs.size(); }
  size_t output_count() const override { return runner_.outputs.size(); }
  Tensor input(size_t index) const override { return view(runner_.inputs, index); }
  Tensor output(size_t index) const override {
    if (runner_.caller_output != nullptr) caller_output_refused_ = true;
    return view(runner_.outputs, index);
  }
  Tensor output_or_caller(size_t index) const override {
    Tensor tensor = view(runner_.outputs, index);
    if (runner_.caller_output != nullptr) tensor.data = nullptr;
    return tensor;
  }
  bool may_set_symbol(int32_t symbol) const override {
    const auto index = static_cast<size_t>(symbol);
    return symbol >= 0 && index < runner_.settable_symbols.size() &&
           runner_.settable_symbols[index];
  }
  uint32_t ring_capacity(int32_t ring) const override {
    return runner_.ring_capacities.at(static_cast<size_t>(ring));
  }
  uint32_t symbol_max(int32_t symbol) const override {
    return runner_.symbol_maxima.at(static_cast<size_t>(symbol));
  }
  size_t threads() const override { return runner_.threads; }
  Backend backend() const override {
    return runner_.reference_only ? Backend::kReference : runner_.backend;
  }
  bool placing() const override { return !counting_; }
  void own(OwnedObject& owned) override {
    EXPECT_FALSE(counting_) << "made something while counting";
    owned.next = runner_.owned_;
    runner_.owned_ = &owned;
  }
  const void* lender_params() const override { return nullptr; }
  void request_scratch(size_t bytes) override {
    if (bytes > scratch_bytes) scratch_bytes = bytes;
  }
  Status fail(const char* format, ...) override {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(runner_.error_.text, sizeof(runner_.error_.text), format, arguments);
    va_end(arguments);
    return Status::kFileCorrupt;
  }

  /// Bind, and what the session checks around it.
  Status bind() {
    run = nullptr;
    const Status status = runner_.bind_(*this, &run);
    if (status != Status::kOk) return status;
    EXPECT_NE(run, nullptr) << "bind succeeded without setting run";
    if (caller_output_refused_) return fail("cannot write to the caller's memory");
    return status;
  }

  size_t scratch_bytes = 0;
  RunFunction run = nullptr;

 private:
  Tensor view(const std::vector<TestTensor*>& list, size_t index) const {
    EXPECT_LT(index, list.size()) << "bind must compare with the count first";
    Tensor tensor = *list.at(index);
    if (counting_) {
      tensor.data = nullptr;
      tensor.scales = nullptr;
    }
    return tensor;
  }
  void* allocate_params(size_t bytes) override {
    runner_.params_ = Buffer(bytes);
    return runner_.params_.data();
  }

  OpRunner& runner_;
  const schema::Step& step_;
  bool counting_;
  mutable bool caller_output_refused_ = false;
};

void OpRunner::destroy_owned() {
  for (; owned_ != nullptr; owned_ = owned_->next) owned_->destroy(owned_->object);
}

Status OpRunner::bind() {
  destroy_owned();
  step.inputs.clear();
  step.outputs.clear();
  for (uint32_t i = 0; i < inputs.size(); ++i) step.inputs.push_back(i);
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    // A state that is updated in place is one tensor.
    const auto same = std::find(inputs.begin(), inputs.end(), outputs[i]);
    const bool in_place = same != inputs.end();
    step.outputs.push_back(in_place ? static_cast<uint32_t>(same - inputs.begin())
                                    : static_cast<uint32_t>(inputs.size()) + i);
  }
  packed_.Clear();
  packed_.Finish(schema::Step::Pack(packed_, &step));
  const auto* packed = flatbuffers::GetRoot<schema::Step>(packed_.GetBufferPointer());

  FakeBindContext counting(*this, *packed, true);
  const Status counted = counting.bind();
  FakeBindContext placing(*this, *packed, false);
  const Status placed = placing.bind();
  EXPECT_EQ(counted, placed) << "counting and placing disagree";
  EXPECT_EQ(counting.scratch_bytes, placing.scratch_bytes) << "counting and placing disagree";
  run_ = placed == Status::kOk ? placing.run : nullptr;
  scratch_bytes_ = placing.scratch_bytes;
  return placed;
}

Status OpRunner::run() {
  if (run_ == nullptr) {
    ADD_FAILURE() << "run without a successful bind";
    return Status::kInternal;
  }
  FakeBindContext shapes(*this, *flatbuffers::GetRoot<schema::Step>(packed_.GetBufferPointer()),
                         true);
  const bool library = !reference_only && backend != Backend::kCpu;
  const auto shadow = library ? nullptr : VulkanShadow::before(*this, shapes);
  const Buffer scratch(scratch_bytes_);
  RunContext context;
  context.symbols = symbols.data();
  context.rings = rings.data();
  context.scratch = scratch.data();
  context.pool = pool;
  context.error = &error_;
  context.caller_output = caller_output;
  context.position = position;
  const Status status = run_(context, params_.data());
  if (shadow != nullptr) shadow->compare(status);
  return status;
}

Status OpRunner::bind_and_run() {
  OXB_TRY(bind());
  return run();
}

}  // namespace oxbow::testing

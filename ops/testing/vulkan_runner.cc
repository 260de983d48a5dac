#include "ops/testing/vulkan_runner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "ops/testing/proof_writer.h"
#include "ops/testing/vulkan_wanted.h"
#include "runtime/device/vulkan/step_list.h"
#if OXB_BUILD_VULKAN
#include "runtime/device/vulkan/wrapper/hooks.h"
#include "runtime/device/vulkan/wrapper/program.h"
#endif

namespace oxbow::testing {
namespace {

int pauses = 0;

}  // namespace

WithoutVulkan::WithoutVulkan() { ++pauses; }
WithoutVulkan::~WithoutVulkan() { --pauses; }

#if OXB_BUILD_VULKAN
namespace {

using vulkan::Range;
using vulkan::Region;

size_t runs_so_far = 0;

/// The device of all tests of this process, with validation; when it ends, nothing may be left of it.
class Holder {
 public:
  Holder() {
    if (!vulkan_wanted()) return;
    vulkan::hooks().validation = true;
    Error error;
    if (vulkan::acquire_context(&context, &error) != Status::kOk) {
      std::fprintf(stderr, "no Vulkan device to test on: %s\n", error.text);
    }
  }
  ~Holder() {
    if (context == nullptr) return;
    vulkan::release_context(context);
    if (vulkan::counters().objects == 0 && vulkan::counters().errors == 0) return;
    std::fprintf(stderr, "%lld Vulkan objects are left, %u errors\n",
                 static_cast<long long>(vulkan::counters().objects),
                 vulkan::counters().errors.load());
    _exit(1);
  }
  vulkan::Context* context = nullptr;
};

vulkan::Context* device_of_tests() {
  static Holder holder;
  return holder.context;
}

/// All runs, or the first of a test and then one in sixteen.
bool run_is_wanted() {
  constexpr size_t kFirst = 16, kOneIn = 16;
  static const bool some = vulkan_is("some");
  static const ::testing::TestInfo* test = nullptr;
  static size_t runs = 0;
  const ::testing::TestInfo* current = ::testing::UnitTest::GetInstance()->current_test_info();
  if (std::exchange(test, current) != current) runs = 0;
  ++runs;
  return !some || runs <= kFirst || runs % kOneIn == 0;
}

const OpDef* op_of(BindFunction bind) {
  for (const OpDef& op : builtin_ops()) {
    if (op.bind == bind) return &op;
  }
  return nullptr;
}

/// The tests are the proof.
Status best_form(void* context, const VulkanShader& shader, ShaderForm* form, Error*) {
  const bool int_dot = static_cast<vulkan::Context*>(context)->device.features.int_dot;
  *form = int_dot && !shader.int_dot_code.empty() ? ShaderForm::kIntDot : ShaderForm::kPlain;
  return Status::kOk;
}

/// Behind every tensor, so that a stray write shows.
constexpr size_t kGuard = 256;
constexpr std::byte kGuardByte{0xa5};

class Shadow final : public VulkanShadow, public StepPlaces {
 public:
  Shadow(OpRunner& runner, vulkan::Context& context) : runner_(runner), context_(context) {
    for (const auto* list : {&runner.inputs, &runner.outputs}) {
      for (TestTensor* tensor : *list) add(tensor);
    }
    symbols_ = runner.symbols;
    rings_ = runner.rings;
  }
  ~Shadow() override { program_.close(); }

  TensorPlace place(bool output, size_t index) const override {
    const TestTensor* tensor = (output ? runner_.outputs : runner_.inputs).at(index);
    if (output && runner_.caller_output != nullptr) {
      return {TensorRegion::kOutput, 0, size_t{tensor->rows} * tensor->width * sizeof(float)};
    }
    const Kept& kept = tensors_.at(tensor->data);
    return {TensorRegion::kActivations, kept.offset, kept.bytes.size()};
  }

  /// False: the step is the CPU's, or could not be made ready.
  bool bind(BindContext& context) {
    Error error;
    const OpDef* op = op_of(runner_.bind_function());
    if (op == nullptr) return false;
    Status status =
        add_vulkan_step({*op, context, *this, nullptr, nullptr}, context_.device.features,
                        {&context_, best_form}, &list_, &error);
    EXPECT_EQ(status, Status::kOk)
        << "the op's bind for Vulkan: " << error.text << runner_.message();
    if (status != Status::kOk || list_.dispatches.size() == 0) return false;

    // Every second run binds as a device may that has the largest alignment there is.
    const uint32_t alignment = context_.device.features.binding_alignment;
    if (runs_so_far % 2 == 1) context_.device.features.binding_alignment = kMaxBindingAlignment;
    status = make_program(&error);
    context_.device.features.binding_alignment = alignment;
    EXPECT_EQ(status, Status::kOk) << "Vulkan: " << error.text;
    return status == Status::kOk;
  }

  Status make_program(Error* error) {
    vulkan::MemorySizes sizes;
    sizes.activations = bytes_;
    sizes.output = runner_.caller_output == nullptr
                       ? 0
                       : round_up(place(true, 0).bytes, kTensorAlignment) + kGuard;
    sizes.scratch = round_up(list_.scratch_bytes, kTensorAlignment) + kGuard;
    sizes.values = list_.dispatches.size() * sizeof(DispatchValues);
    OXB_TRY(program_.open(context_, sizes, error));
    const uint32_t ends[] = {1};
    const Range inputs[] = {{Region::kActivations, 0, bytes_}};
    vulkan::ProgramSpec spec;
    spec.steps = {list_.steps.begin(), list_.steps.end()};
    spec.dispatches = {list_.dispatches.begin(), list_.dispatches.end()};
    spec.entry_ends = ends;
    spec.entry_inputs = inputs;
    spec.entry_input_ends = ends;
    return program_.record(spec, error);
  }

  void compare(Status expected) override {
    SCOPED_TRACE("on the Vulkan device");
    ++runs_so_far;
    vulkan::Memory& memory = program_.memory();
    std::memset(memory.host_activations(), static_cast<int>(kGuardByte),
                memory.sizes.activations + memory.sizes.output);
    for (const auto& [data, kept] : tensors_) {
      std::memcpy(memory.host_activations() + kept.offset, kept.bytes.data(), kept.bytes.size());
    }
    Error error;
    RunContext run;
    run.symbols = symbols_.data();
    run.rings = rings_.data();
    run.error = &error;
    run.position = runner_.position;
    const VulkanStepList::Host& host = list_.host[0];
    Status status =
        host.prepare(run, host.params, {memory.dispatch_values(0), list_.dispatches.size()});
    if (status == Status::kOk) {
      offer_proofs();
      status = program_.run(program_.segments(0)[0], false, &error);
    }
    if (status == Status::kOk && host.finish != nullptr) {
      status = host.finish(run, host.params, {memory.dispatch_values(0), list_.dispatches.size()});
    }
    if (status == Status::kOk) status = program_.download(&error);
    EXPECT_EQ(status, expected) << error.text;
    EXPECT_EQ(vulkan::counters().errors.load(), 0u) << "validation found errors";
    if (status != Status::kOk || expected != Status::kOk) return;
    EXPECT_EQ(symbols_, runner_.symbols) << "symbols";
    for (size_t i = 0; i < rings_.size(); ++i) {
      EXPECT_EQ(rings_[i].head, runner_.rings[i].head) << "ring " << i;
      EXPECT_EQ(rings_[i].count, runner_.rings[i].count) << "ring " << i;
    }
    compare_tensors(memory.host_activations(), run);
  }

 private:
  /// Each dispatch of this run may become the proof of its shader.
  void offer_proofs() {
    if (!writes_proofs()) return;
    for (size_t d = 0; d < list_.dispatches.size(); ++d) {
      const vulkan::Dispatch& dispatch = list_.dispatches[d];
      OfferedProof offered;
      offered.shader = dispatch.shader;
      offered.allows_error = list_.host[0].allowed_error != 0.0f;
      offered.constants.assign(dispatch.constants, dispatch.constants + dispatch.constant_count);
      const DispatchValues& values = *program_.memory().dispatch_values(d);
      offered.groups.assign(values.groups, values.groups + 3);
      offered.values.assign(values.values, values.values + std::size(values.values));
      std::map<std::pair<int, uint64_t>, uint32_t> known;
      for (size_t i = 0; i < dispatch.operand_count; ++i) {
        const Range& range = dispatch.operands[i];
        const auto [place, added] =
            known.try_emplace({static_cast<int>(range.region), range.offset}, known.size());
        if (added) offered.tensors.push_back(proof_tensor(range));
        offered.operands.push_back(place->second);
        offered.reads_scratch |= range.region == Region::kScratch && d > 0;
      }
      offer_proof(context_, offered);
    }
  }

  ProofTensor proof_tensor(const Range& range) const {
    ProofTensor made;
    made.words = static_cast<uint32_t>(ceil_div(range.bytes, 4));
    for (const auto& [data, kept] : tensors_) {
      if (range.region != Region::kActivations || kept.offset != range.offset) continue;
      if (kept.tensor->type == DataType::kI32) made.fill = ProofTensor::kIndices;
      if (kept.tensor->type == DataType::kI8) {
        made.fill = ProofTensor::kCodes;
        made.code_words = static_cast<uint32_t>(kept.tensor->elements.size() / 4);
      }
    }
    return made;
  }

  struct Kept {
    const TestTensor* tensor;
    size_t offset;
    /// Elements and scales, as they lie in a file.
    std::vector<std::byte> bytes;
  };

  static std::vector<std::byte> bytes_of(const TestTensor& tensor) {
    std::vector<std::byte> bytes(tensor.elements.size() + tensor.scale_values.size());
    std::memcpy(bytes.data(), tensor.elements.data(), tensor.elements.size());
    if (tensor.scale_values.size() != 0) {
      std::memcpy(bytes.data() + tensor.elements.size(), tensor.scale_values.data(),
                  tensor.scale_values.size());
    }
    return bytes;
  }

  void add(const TestTensor* tensor) {
    if (tensors_.count(tensor->data) != 0) return;
    Kept kept = {tensor, bytes_, bytes_of(*tensor)};
    bytes_ += round_up(kept.bytes.size(), kTensorAlignment) + kGuard;
    tensors_.emplace(tensor->data, std::move(kept));
  }

  void compare_tensors(const std::byte* device, const RunContext& run) {
    size_t at = 0;
    std::map<size_t, const Kept*> in_order;
    for (const auto& [data, kept] : tensors_) in_order[kept.offset] = &kept;
    for (const auto& [offset, kept] : in_order) {
      expect_guard(device, at, offset);
      compare_values(*kept->tensor, device + offset);
      at = offset + kept->bytes.size();
    }
    expect_guard(device, at, bytes_);
    if (runner_.caller_output == nullptr) return;
    const TestTensor& y = *runner_.outputs[0];
    const size_t count = size_t{run.rows(y)} * y.width;
    const auto* values = reinterpret_cast<const float*>(device + program_.memory().output_offset());
    for (size_t i = 0; i < count; ++i) {
      if (!near(values[i], runner_.caller_output[i])) {
        ADD_FAILURE() << "output value " << i << " is " << values[i] << ", the CPU's "
                      << runner_.caller_output[i];
        return;
      }
    }
    expect_guard(device, program_.memory().output_offset() + count * sizeof(float),
                 program_.memory().scratch_offset());
  }

  static void expect_guard(const std::byte* device, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (device[i] == kGuardByte) continue;
      ADD_FAILURE() << "byte " << i << " lies behind a tensor and was written";
      return;
    }
  }

  bool near(float a, float b) const {
    if (std::memcmp(&a, &b, sizeof(a)) == 0) return true;
    if (std::isnan(a) && std::isnan(b)) return true;  // Which NaN is the machine's choice.
    const float bound = list_.host[0].allowed_error;
    return std::fabs(a - b) <= bound * std::fmax(1.0f, std::fabs(b));
  }

  /// `tensor` has the CPU's values. int8 values are compared as codes and scales, unless errors are
  /// allowed: then as the numbers they stand for, which a code's rounding may move by one scale.
  void compare_values(const TestTensor& tensor, const std::byte* device) const {
    const std::vector<std::byte> expected = bytes_of(tensor);
    if (std::memcmp(expected.data(), device, expected.size()) == 0) return;
    if (tensor.type == DataType::kF32) {
      for (size_t i = 0; i < expected.size() / sizeof(float); ++i) {
        float a, b;
        std::memcpy(&a, device + i * sizeof(float), sizeof(a));
        std::memcpy(&b, expected.data() + i * sizeof(float), sizeof(b));
        if (near(a, b)) continue;
        ADD_FAILURE() << "'" << tensor.name << "', row " << i / tensor.width << ", column "
                      << i % tensor.width << ": " << a << ", the CPU's " << b;
        return;
      }
      return;
    }
    const float bound = list_.host[0].allowed_error;
    if (tensor.type == DataType::kI8 && bound > 0) {
      const size_t elements = tensor.elements.size();
      const auto* scales = reinterpret_cast<const float*>(device + elements);
      for (size_t i = 0; i < tensor.scale_values.size() / sizeof(float); ++i) {
        EXPECT_TRUE(near(scales[i], tensor.scales[i]))
            << "'" << tensor.name << "', scale " << i << ": " << scales[i] << ", the CPU's "
            << tensor.scales[i];
      }
      for (size_t i = 0; i < elements; ++i) {
        const int difference = std::abs(static_cast<int>(static_cast<int8_t>(device[i])) -
                                        static_cast<int>(static_cast<int8_t>(expected[i])));
        EXPECT_LE(difference, 1) << "'" << tensor.name << "', code " << i;
      }
      return;
    }
    size_t first = 0;
    while (device[first] == expected[first]) ++first;
    ADD_FAILURE() << "'" << tensor.name << "' differs from the CPU's in byte " << first << " of "
                  << expected.size() << ": " << static_cast<int>(static_cast<int8_t>(device[first]))
                  << ", expected " << static_cast<int>(static_cast<int8_t>(expected[first]));
  }

  OpRunner& runner_;
  vulkan::Context& context_;
  std::map<const std::byte*, Kept> tensors_;
  size_t bytes_ = 0;
  std::vector<uint32_t> symbols_;
  std::vector<RingPosition> rings_;
  VulkanStepList list_;
  vulkan::Program program_;
};

}  // namespace

std::unique_ptr<VulkanShadow> VulkanShadow::before(OpRunner& runner, BindContext& context) {
  // Benchmarks run steps too.
  if (::testing::UnitTest::GetInstance()->current_test_info() == nullptr) return nullptr;
  if (pauses != 0 || !run_is_wanted()) return nullptr;
  vulkan::Context* device = device_of_tests();
  if (device == nullptr) return nullptr;
  auto shadow = std::make_unique<Shadow>(runner, *device);
  if (!shadow->bind(context)) return nullptr;
  return shadow;
}

size_t vulkan_shadow_runs() { return runs_so_far; }

#else

std::unique_ptr<VulkanShadow> VulkanShadow::before(OpRunner&, BindContext&) { return nullptr; }
size_t vulkan_shadow_runs() { return 0; }

#endif

}  // namespace oxbow::testing

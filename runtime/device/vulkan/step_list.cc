#include "runtime/device/vulkan/step_list.h"

#include <algorithm>
#include <cstdlib>

namespace oxbow {
namespace {

vulkan::Range range_of(const TensorPlace& place) {
  switch (place.region) {
    case TensorRegion::kWeights:
      return {vulkan::Region::kWeights, place.offset, place.bytes};
    case TensorRegion::kStates:
      return {vulkan::Region::kStates, place.offset, place.bytes};
    case TensorRegion::kOutput:
      return {vulkan::Region::kOutput, place.offset, place.bytes};
    case TensorRegion::kActivations:
      break;
  }
  return {vulkan::Region::kActivations, place.offset, place.bytes};
}

class StepBinder final : public VulkanBindContext {
 public:
  StepBinder(BindContext& context, const StepPlaces& places, const VulkanFeatures& features,
             const ShaderJudge& judge, VulkanStepList& list, Error* error)
      : context_(context),
        places_(places),
        features_(features),
        judge_(judge),
        list_(list),
        error_(error) {}

  const schema::Step& step() const override { return context_.step(); }
  size_t input_count() const override { return context_.input_count(); }
  Tensor input(size_t index) const override { return without_data(context_.input(index)); }
  Tensor output(size_t index) const override {
    return without_data(context_.output_or_caller(index));
  }
  uint32_t ring_capacity(int32_t ring) const override { return context_.ring_capacity(ring); }
  const VulkanFeatures& features() const override { return features_; }
  void request_scratch(uint64_t bytes) override {
    list_.scratch_bytes = std::max(list_.scratch_bytes, bytes);
  }
  void for_many_rows() override {
    if (!out_of_memory) list_.dispatches[list_.dispatches.size() - 1].for_many_rows = true;
  }
  void prepare(VulkanPrepare function) override { host.prepare = function; }
  void finish(VulkanFinish function) override { host.finish = function; }
  void allow_error(float bound) override { host.allowed_error = bound; }
  Status dispatch(const VulkanShader& shader, std::span<const VulkanOperand> operands,
                  std::span<const uint32_t> constants) override;

  VulkanStepList::Host host;
  bool out_of_memory = false;

 private:
  /// The step is the CPU's.
  void refuse(const VulkanShader& shader, const char* why) {
    host.why_not = why;
    host.shader = shader.name;
  }
  static Tensor without_data(Tensor tensor) {
    tensor.data = nullptr;
    tensor.scales = nullptr;
    return tensor;
  }
  void* allocate_params(size_t bytes) override;

  BindContext& context_;
  const StepPlaces& places_;
  const VulkanFeatures& features_;
  const ShaderJudge& judge_;
  VulkanStepList& list_;
  Error* error_;
  alignas(std::max_align_t) std::byte thrown_away_[kMaxParamsBytes];
};

Status StepBinder::dispatch(const VulkanShader& shader, std::span<const VulkanOperand> operands,
                            std::span<const uint32_t> constants) {
  if (operands.size() > kMaxVulkanOperands || constants.size() > kMaxVulkanConstants) {
    return context_.fail("the shader %s has %zu tensors and %zu constants", shader.name,
                         operands.size(), constants.size());
  }
  vulkan::Dispatch made;
  made.shader = &shader;
  if (operands.size() + 1 > features_.max_bindings) {
    refuse(shader, "binds more buffers than the device can");
  } else {
    ShaderForm form = ShaderForm::kPlain;
    OXB_TRY(judge_.choose(judge_.self, shader, &form, error_));
    made.int_dot = form == ShaderForm::kIntDot;
    if (form == ShaderForm::kNone) refuse(shader, "gives wrong numbers on this device");
    const bool is_replaced = features_.int_dot && !shader.int_dot_code.empty() && !made.int_dot;
    if (is_replaced && host.why_not == nullptr) host.shader = shader.name;
  }
  made.operand_count = static_cast<uint32_t>(operands.size());
  made.constant_count = static_cast<uint32_t>(constants.size());
  std::copy(constants.begin(), constants.end(), made.constants);
  for (size_t i = 0; i < operands.size(); ++i) {
    const VulkanOperand& operand = operands[i];
    made.operands[i] =
        operand.kind == VulkanOperand::kScratch
            ? vulkan::Range{vulkan::Region::kScratch, operand.offset, operand.bytes}
            : range_of(places_.place(operand.kind == VulkanOperand::kOutput, operand.index));
    host.writes_output |= made.operands[i].region == vulkan::Region::kOutput;
    // Where the region begins is not known yet: the most that can be bound in front of a tensor.
    const uint64_t rest = features_.binding_alignment > kTensorAlignment
                              ? features_.binding_alignment - kTensorAlignment
                              : 0;
    if (made.operands[i].bytes + rest > features_.max_binding_bytes) {
      refuse(shader, "needs a tensor that is larger than the device can bind");
    }
  }
  out_of_memory |= !list_.dispatches.push(made);
  return Status::kOk;
}

void* StepBinder::allocate_params(size_t bytes) {
  auto* block =
      static_cast<VulkanStepList::Block*>(std::malloc(sizeof(VulkanStepList::Block) + bytes));
  if (block == nullptr) {
    out_of_memory = true;
    return thrown_away_;
  }
  block->next = list_.blocks;
  list_.blocks = block;
  host.params = block->params;
  return block->params;
}

}  // namespace

void VulkanStepList::clear() {
  while (blocks != nullptr) {
    Block* next = blocks->next;
    std::free(blocks);
    blocks = next;
  }
  steps.clear();
  host.clear();
  dispatches.clear();
  touched.clear();
  scratch_bytes = 0;
}

Status add_vulkan_step(const DeviceStep& from, const VulkanFeatures& features,
                       const ShaderJudge& judge, VulkanStepList* list, Error* error) {
  BindContext& context = from.context;
  const DeviceBind bind = from.op.bind_device[static_cast<size_t>(DeviceKind::kVulkan)];
  vulkan::Step step;
  step.first_dispatch = static_cast<uint32_t>(list->dispatches.size());
  step.first_touched = static_cast<uint32_t>(list->touched.size());
  const uint64_t scratch_bytes = list->scratch_bytes;
  StepBinder binder(context, from.places, features, judge, *list, error);
  if (bind != nullptr) OXB_TRY(bind(binder));
  if (binder.host.why_not != nullptr) {
    list->dispatches.shrink(step.first_dispatch);
    list->scratch_bytes = scratch_bytes;
    VulkanStepList::Host host;
    host.why_not = binder.host.why_not;
    host.shader = binder.host.shader;
    binder.host = host;
  }
  step.dispatch_count = static_cast<uint32_t>(list->dispatches.size()) - step.first_dispatch;
  step.ends_segment = binder.host.finish != nullptr;
  bool pushed = !binder.out_of_memory;
  if (step.dispatch_count == 0) {
    const auto touch = [&](bool output, size_t index) {
      pushed = pushed && list->touched.push({range_of(from.places.place(output, index)), output});
    };
    for (size_t i = 0; i < context.input_count(); ++i) touch(false, i);
    for (size_t i = 0; i < context.output_count(); ++i) touch(true, i);
  } else if (binder.host.prepare == nullptr) {
    return context.fail("the op has a dispatch and no prepare");
  }
  step.touched_count = static_cast<uint32_t>(list->touched.size()) - step.first_touched;
  pushed = pushed && list->steps.push(step) && list->host.push(binder.host);
  if (!pushed) return fail(error, Status::kOutOfMemory, "no memory for the list of steps");
  return Status::kOk;
}

}  // namespace oxbow

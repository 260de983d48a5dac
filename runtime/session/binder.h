#pragma once

// Binds one step of a session: shows the op its tensors and collects what it asks for.

#include <cstddef>

#include "runtime/op.h"
#include "runtime/session.h"
#include "runtime/vulkan_steps.h"

namespace oxbow {

class Binder final : public BindContext, public VulkanPlaces {
 public:
  /// `params` is where the op's parameters go; null: they are counted and thrown away. `elder` is the
  /// same step of the session's elder, or null.
  Binder(Session& session, const schema::EntryPoint& entry, size_t step_index,
         const BoundStep* elder, std::byte* params, Error* error);

  /// Calls the op. `bound` may be null when only the sizes are wanted.
  Status bind(BoundStep* bound);

  size_t params_bytes() const { return params_bytes_; }
  size_t scratch_bytes() const { return scratch_bytes_; }
  /// It then needs none of the CPU's scratch.
  bool is_on_device() const { return on_device_; }

  const schema::Step& step() const override { return step_; }
  size_t input_count() const override;
  size_t output_count() const override;
  Tensor input(size_t index) const override;
  Tensor output(size_t index) const override;
  Tensor output_or_caller(size_t index) const override;
  bool may_set_symbol(int32_t symbol) const override;
  uint32_t ring_capacity(int32_t ring) const override;
  uint32_t symbol_max(int32_t symbol) const override;
  size_t threads() const override { return session_.options.threads; }
  Backend backend() const override { return session_.options.backend; }
  bool placing() const override { return params_ != nullptr; }
  void own(OwnedObject& owned) override;
  const void* elder_params() const override { return elder_ == nullptr ? nullptr : elder_->params; }
  void request_scratch(size_t bytes) override;
  [[gnu::format(printf, 2, 3)]] Status fail(const char* format, ...) override;
  vulkan::Range place(bool output, size_t index) const override;

 protected:
  void* allocate_params(size_t bytes) override;

 private:
  const char* op_name() const;
  const char* output_name() const;
  const char* provider() const;

  Session& session_;
  const schema::EntryPoint& entry_;
  const schema::Step& step_;
  size_t step_index_;
  const BoundStep* elder_;
  std::byte* params_;
  Error* error_;
  size_t params_bytes_ = 0;
  size_t scratch_bytes_ = 0;
  const OwnedObject* owned_ = nullptr;
  bool on_device_ = false;
  /// The op asked for the caller's memory without being able to write there.
  mutable bool wrote_caller_ = false;
  alignas(kTensorAlignment) std::byte counted_params_[kMaxParamsBytes];
};

}  // namespace oxbow

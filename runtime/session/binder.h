#pragma once

// Binds one step of a session: shows the op its tensors and collects what it asks for.

#include <cstddef>

#include "runtime/device.h"
#include "runtime/op.h"
#include "runtime/session/session.h"

namespace oxbow {

/// What the steps of an entry point, in their order, did with each symbol.
struct SymbolUses {
  enum class Use : uint8_t { kNone, kCaller, kRead, kSet };

  /// Those of its inputs and output are the caller's.
  SymbolUses(const schema::Model& graph, const schema::EntryPoint& entry);

  Use of[kMaxSymbols] = {};
};

class Binder final : public BindContext, public StepPlaces {
 public:
  /// `params` is where the op's parameters go; null: they are counted and thrown away. `lender` is the
  /// same step of the session's lender, or null. `uses` belongs to the entry point.
  Binder(Session& session, const schema::EntryPoint& entry, size_t step_index, SymbolUses& uses,
         const BoundStep* lender, std::byte* params, Error* error);

  /// Calls the op. `bound` may be null when only the sizes are wanted.
  Status bind(BoundStep* bound);

  size_t params_bytes() const { return params_bytes_; }
  size_t scratch_bytes() const { return scratch_bytes_; }
  /// The device runs it and needs none of the CPU's scratch.
  bool needs_no_scratch() const { return on_device_ && !session_.device.driver->in_arena; }

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
  void expect_library_bytes(size_t bytes) override;
  const void* lender_params() const override {
    return lender_ == nullptr ? nullptr : lender_->params;
  }
  void set_by_row() override { by_row_ = true; }
  void request_scratch(size_t bytes) override;
  [[gnu::format(printf, 2, 3)]] Status fail(const char* format, ...) override;
  TensorPlace place(bool output, size_t index) const override;

 protected:
  void* allocate_params(size_t bytes) override;

 private:
  void mark_symbols();
  bool works_by_row() const;
  const char* op_name() const;
  const char* output_name() const;
  const char* provider() const;

  Session& session_;
  const schema::EntryPoint& entry_;
  const schema::Step& step_;
  size_t step_index_;
  SymbolUses& uses_;
  const BoundStep* lender_;
  std::byte* params_;
  Error* error_;
  size_t params_bytes_ = 0;
  size_t scratch_bytes_ = 0;
  const OwnedObject* owned_ = nullptr;
  bool on_device_ = false;
  bool by_row_ = false;
  /// The op asked for the caller's memory without being able to write there.
  mutable bool wrote_caller_ = false;
  alignas(kTensorAlignment) std::byte counted_params_[kMaxParamsBytes];
};

}  // namespace oxbow

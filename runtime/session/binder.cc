#include "runtime/session/binder.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "schema/model_generated.h"

namespace oxbow {

SymbolUses::SymbolUses(const schema::Model& graph, const schema::EntryPoint& entry) {
  const auto mark = [&](uint32_t tensor) {
    const int32_t symbol = graph.tensors()->Get(tensor)->rows_symbol();
    if (symbol >= 0) of[symbol] = Use::kCaller;
  };
  mark(entry.tokens());
  mark(entry.logits());
  for (uint32_t i = 0; entry.inputs() != nullptr && i < entry.inputs()->size(); ++i) {
    mark(entry.inputs()->Get(i));
  }
}

Binder::Binder(Session& session, const schema::EntryPoint& entry, size_t step_index,
               SymbolUses& uses, const BoundStep* lender, std::byte* params, Error* error)
    : session_(session),
      entry_(entry),
      step_(*entry.steps()->Get(static_cast<uint32_t>(step_index))),
      step_index_(step_index),
      uses_(uses),
      lender_(lender),
      params_(params),
      error_(error) {}

Status Binder::bind(BoundStep* bound) {
  const auto code = static_cast<size_t>(step_.op());
  if (code >= session_.model->ops.size()) {
    return oxbow::fail(error_, Status::kFileUnsupported,
                       "step %zu uses operator %zu, which this library does not know: update it",
                       step_index_, code);
  }
  RunFunction run = nullptr;
  const OpDef& op = session_.model->ops[code];
  const Status status = op.bind(*this, &run);
  // fail() takes the file for wrong; that this build lacks something is said by the status alone.
  if (status == Status::kFileUnsupported && error_ != nullptr) error_->set_code(status);
  OXB_TRY(status);
  if (wrote_caller_) return fail("this op cannot write the model's output");
  if (const Device& device = session_.device; device) {
    OXB_TRY(
        device.driver->bind(device.self, {op, *this, *this, run, params_}, &on_device_, error_));
  }
  mark_symbols();
  if (bound != nullptr) {
    *bound = {
        on_device_ ? nullptr : run, params_, op_name(), output_name(), provider(), works_by_row()};
  }
  return Status::kOk;
}

size_t Binder::input_count() const {
  return step_.inputs() == nullptr ? 0 : step_.inputs()->size();
}
size_t Binder::output_count() const {
  return step_.outputs() == nullptr ? 0 : step_.outputs()->size();
}

Tensor Binder::input(size_t index) const {
  return session_tensor(session_, step_.inputs()->Get(static_cast<uint32_t>(index)));
}

Tensor Binder::output(size_t index) const {
  const uint32_t tensor = step_.outputs()->Get(static_cast<uint32_t>(index));
  if (tensor == entry_.logits()) wrote_caller_ = true;
  return session_tensor(session_, tensor);
}

Tensor Binder::output_or_caller(size_t index) const {
  return session_tensor(session_, step_.outputs()->Get(static_cast<uint32_t>(index)));
}

bool Binder::may_set_symbol(int32_t symbol) const {
  if (symbol < 0) return false;
  SymbolUses::Use& use = uses_.of[symbol];
  if (use != SymbolUses::Use::kNone && use != SymbolUses::Use::kSet) return false;
  use = SymbolUses::Use::kSet;
  return true;
}

/// From now on nobody may begin to set what this step counted rows by.
void Binder::mark_symbols() {
  for (const auto* list : {step_.inputs(), step_.outputs()}) {
    for (uint32_t i = 0; list != nullptr && i < list->size(); ++i) {
      const int32_t symbol = session_.model->graph->tensors()->Get(list->Get(i))->rows_symbol();
      if (symbol >= 0 && uses_.of[symbol] == SymbolUses::Use::kNone) {
        uses_.of[symbol] = SymbolUses::Use::kRead;
      }
    }
  }
}

/// Whether a library gives a row the same bits beside others is its own affair.
bool Binder::works_by_row() const {
  if (lender_ != nullptr) return lender_->by_row;
  if (!by_row_ || owned_ != nullptr) return false;
  for (const auto* list : {step_.inputs(), step_.outputs()}) {
    for (uint32_t i = 0; list != nullptr && i < list->size(); ++i) {
      if (session_.model->graph->tensors()->Get(list->Get(i))->kind() == schema::TensorKind::State)
        return false;
    }
  }
  return true;
}

uint32_t Binder::ring_capacity(int32_t ring) const {
  return session_.model->graph->rings()->Get(static_cast<uint32_t>(ring))->capacity();
}

uint32_t Binder::symbol_max(int32_t symbol) const {
  return session_.model->graph->symbols()->Get(static_cast<uint32_t>(symbol))->max();
}

void Binder::request_scratch(size_t bytes) { scratch_bytes_ = std::max(scratch_bytes_, bytes); }

void Binder::own(OwnedObject& owned) {
  owned.next = session_.owned;
  session_.owned = &owned;
  owned_ = &owned;
}

void Binder::expect_library_bytes(size_t bytes) { session_.planned_library_bytes += bytes; }

const char* Binder::provider() const {
  if (on_device_) return session_.device.driver->name;
  if (owned_ != nullptr) return owned_->provider;
  if (lender_ != nullptr) return lender_->provider;
  return reference_only() ? "reference" : "cpu";
}

TensorPlace Binder::place(bool output, size_t index) const {
  const auto& list = output ? *step_.outputs() : *step_.inputs();
  const schema::Tensor& tensor =
      *session_.model->graph->tensors()->Get(list.Get(static_cast<uint32_t>(index)));
  TensorPlace place = {TensorRegion::kActivations, tensor.offset(), tensor.bytes()};
  switch (tensor.kind()) {
    case schema::TensorKind::Weight:
      place.region = TensorRegion::kWeights;
      break;
    case schema::TensorKind::State:
      place.region = TensorRegion::kStates;
      break;
    case schema::TensorKind::Output:
      place.region = TensorRegion::kOutput;
      place.offset = 0;
      break;
    case schema::TensorKind::Activation:
    case schema::TensorKind::Input:
      break;
  }
  return place;
}

Status Binder::fail(const char* format, ...) {
  char text[Error::kCapacity];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return oxbow::fail(error_, Status::kFileCorrupt, "step %zu of '%.30s', %s giving '%.60s': %s",
                     step_index_, entry_.name()->c_str(), op_name(), output_name(), text);
}

void* Binder::allocate_params(size_t bytes) {
  params_bytes_ = round_up(bytes, kTensorAlignment);
  return params_ == nullptr ? counted_params_ : params_;
}

const char* Binder::op_name() const {
  return session_.model->ops[static_cast<size_t>(step_.op())].name;
}

const char* Binder::output_name() const {
  if (output_count() == 0) return "nothing";
  return session_.model->graph->tensors()->Get(step_.outputs()->Get(0))->name()->c_str();
}

}  // namespace oxbow

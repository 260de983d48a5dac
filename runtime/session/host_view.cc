#include "runtime/session/host_view.h"

#include "schema/model_generated.h"

namespace oxbow {

Status HostView::read(const Session& session, HostView* view, Error* error) {
  if (session.newer_copy == NewerCopy::kDevice) {
    OXB_TRY(session.device.driver->to_host(session.device.self, error));
    session.newer_copy = NewerCopy::kNone;
  }
  *view = HostView(session);
  return Status::kOk;
}

Status HostView::change(const Session& session, HostView* view, Error* error) {
  OXB_TRY(read(session, view, error));
  *view = replace(session);
  return Status::kOk;
}

HostView HostView::replace(const Session& session) {
  if (session.device) session.newer_copy = NewerCopy::kHost;
  return HostView(session);
}

std::span<std::byte> HostView::own_states() const {
  const schema::MemoryPlan& plan = *session_->model->graph->plan();
  return {session_->own_states, static_cast<size_t>(plan.states() - plan.shared_states())};
}

bool HostView::own_state(uint32_t index, Tensor* state) const {
  const schema::Tensor& tensor = *session_->model->graph->tensors()->Get(index);
  if (tensor.kind() != schema::TensorKind::State) return false;
  const bool shared = tensor.offset() < session_->model->graph->plan()->shared_states();
  if (shared && session_->lender != nullptr) return false;
  *state = session_tensor(*session_, index);
  return true;
}

Status hand_to_device(const Session& session, Error* error) {
  if (session.newer_copy == NewerCopy::kHost) {
    OXB_TRY(session.device.driver->to_device(session.device.self, error));
  }
  session.newer_copy = NewerCopy::kDevice;
  return Status::kOk;
}

}  // namespace oxbow

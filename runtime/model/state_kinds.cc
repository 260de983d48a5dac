#include "runtime/model/state_kinds.h"

#include "runtime/model/entry_check.h"

namespace oxbow {
namespace {

using schema::DataType;
using schema::TensorKind;

// What a state begins with is copied from a weight when the session is reset.
Status check_initial(const schema::Model& graph, const schema::Tensor& tensor, Error* error) {
  if (tensor.kind() != TensorKind::State)
    return refuse_tensor(error, tensor, "only states have initial values");
  const StateKind& kind = state_kind(tensor);
  if (tensor.type() == DataType::I32 || (!kind.keeps_rows && tensor.type() != DataType::F32))
    return refuse_tensor(error, tensor,
                         "with initial values a plain state must be F32, others F32 or I8");
  if (static_cast<uint32_t>(tensor.initial()) >= graph.tensors()->size())
    return refuse_tensor(error, tensor, "its initial values are out of range");
  const schema::Tensor& values = *graph.tensors()->Get(static_cast<uint32_t>(tensor.initial()));
  if (values.kind() != TensorKind::Weight || values.type() != DataType::F32 ||
      values.width() != tensor.width() ||
      (values.rows() != 1 && !(kind.begins_full && values.rows() == tensor.rows())))
    return refuse_tensor(error, tensor,
                         "its initial values must be an F32 weight of its shape or one row");
  return Status::kOk;
}

}  // namespace

bool is_shared_state(const schema::Model& graph, const schema::Tensor& state) {
  return state.ring() >= 0 && graph.rings()->Get(static_cast<uint32_t>(state.ring()))->shared();
}

Status check_state(const schema::Model& graph, const schema::Tensor& tensor, Error* error) {
  const int32_t ring = tensor.ring();
  const auto rings = static_cast<int32_t>(graph.rings() == nullptr ? 0 : graph.rings()->size());
  if (ring < -1 || ring >= rings) return refuse_tensor(error, tensor, "its ring is out of range");
  if (ring >= 0 && (tensor.kind() != TensorKind::State ||
                    tensor.rows() != graph.rings()->Get(static_cast<uint32_t>(ring))->capacity()))
    return refuse_tensor(error, tensor, "in a ring it must be a state with the ring's capacity");
  if (tensor.initial() < -1)
    return refuse_tensor(error, tensor, "its initial values are out of range");
  return tensor.initial() < 0 ? Status::kOk : check_initial(graph, tensor, error);
}

}  // namespace oxbow

#include "runtime/session/session.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/quantize.h"
#include "runtime/session/host_view.h"
#include "runtime/session/state.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

/// What the states of a fresh stream hold, unless it is zeros.
void fill_initial_values(Session& session, const HostView& view) {
  const schema::Model& graph = *session.model->graph;
  for (uint32_t i = 0; i < session.rings.size(); ++i) {
    const schema::Ring& ring = *graph.rings()->Get(i);
    if (ring.shared() && session.lender != nullptr) continue;
    session.rings[i].count = ring.initial_rows();
  }
  for (uint32_t i = 0; i < graph.tensors()->size(); ++i) {
    const int32_t initial = graph.tensors()->Get(i)->initial();
    if (initial < 0) continue;
    Tensor state = view.tensor(i);
    const Tensor values = view.tensor(static_cast<uint32_t>(initial));
    for (uint32_t r = 0; r < filled_rows(session, state); ++r) {
      const float* row = values.f32(values.rows == 1 ? 0 : r);
      if (state.type == DataType::kF32) {
        std::memcpy(state.f32(r), row, state.stride());
      } else {
        quantize_row(row, state.width, state.scale_groups, state.i8(r), state.row_scales(r));
      }
    }
  }
}

}  // namespace

void reset_session(Session& session) {
  *session.header = {};
  std::fill(session.rings.begin(), session.rings.end(), RingPosition{});
  const HostView view = HostView::replace(session);
  fill_initial_values(session, view);
  const auto& tensors = *session.model->graph->tensors();
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    Tensor state;
    if (!view.own_state(i, &state)) continue;
    // Nobody reads rows that a ring does not hold yet, and most of a large memory would be touched for
    // nothing. Numbers that select something must be right even in a file that breaks this.
    const bool some = state.type != DataType::kI32 && !is_kept_whole(session, state);
    const size_t filled = filled_rows(session, state);
    const size_t first = tensors.Get(i)->initial() >= 0 ? filled : 0;
    const size_t rows = (some ? filled : state.rows) - first;
    std::memset(state.data + first * state.stride(), 0, rows * state.stride());
    if (state.scales != nullptr) {
      std::memset(state.row_scales(first), 0, rows * state.scale_groups * sizeof(float));
    }
  }
  session.needs_reset = session.shared_needs_reset = false;
  session.draft = nullptr;
}

Tensor session_tensor(const Session& session, uint32_t index) {
  const schema::Tensor& from = *session.model->graph->tensors()->Get(index);
  Tensor tensor;
  tensor.name = from.name()->c_str();
  tensor.type = static_cast<DataType>(from.type());
  tensor.layout = static_cast<Layout>(from.layout());
  tensor.rows = from.rows();
  tensor.width = from.width();
  tensor.scale_groups = from.scale_groups();
  tensor.rows_symbol = static_cast<int16_t>(from.rows_symbol());
  tensor.ring = static_cast<int16_t>(from.ring());
  if (from.ring() >= 0) {
    tensor.pinned =
        session.model->graph->rings()->Get(static_cast<uint32_t>(from.ring()))->pinned();
  }
  tensor.limit = from.limit();
  tensor.static_scale = from.static_scale().value_or(0.0f);
  tensor.hadamard = static_cast<uint16_t>(from.hadamard());
  std::byte* base = nullptr;
  uint64_t offset = from.offset();
  switch (from.kind()) {
    case schema::TensorKind::Weight:
      // Ops get one view type for all; that weights are read-only is checked when the file is opened.
      base = const_cast<std::byte*>(session.model->data);
      break;
    case schema::TensorKind::State: {
      const uint64_t shared = session.model->graph->plan()->shared_states();
      base = from.offset() < shared ? session.shared_states : session.own_states;
      if (from.offset() >= shared) offset -= shared;
      break;
    }
    case schema::TensorKind::Activation:
    case schema::TensorKind::Input:
      base = session.activations;
      break;
    case schema::TensorKind::Output:
      break;
  }
  if (base == nullptr) return tensor;
  tensor.data = base + offset;
  if (tensor.scale_groups != 0) {
    tensor.scales = reinterpret_cast<float*>(
        tensor.data + element_bytes(tensor.type, tensor.layout, tensor.rows, tensor.width));
  }
  return tensor;
}

}  // namespace oxbow

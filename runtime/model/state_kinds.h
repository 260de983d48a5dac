#pragma once

// Kinds of state. What open, sessions, passes and pictures must know of one is a row here; how rows move is its steps' work.
//
// A new kind is a row, how the file tells it (`state_kind`) and what must hold there (`check_state`).

#include <cstdint>

#include "runtime/base/status.h"
#include "runtime/base/tensor.h"
#include "schema/model_generated.h"

namespace oxbow {

struct StateKind {
  /// All its rows are there from the start, and its initial values may have a row for each. Otherwise those that its ring
  /// holds, and nobody reads the others.
  bool begins_full;
  /// A row stays as it was written until it leaves: it may be int8, and turned (Tensor.hadamard). Otherwise steps change it
  /// a little in every run, which eight bits would lose.
  bool keeps_rows;
};

/// Steps read and write it whole, such as a recurrence's.
inline constexpr StateKind kPlainState = {.begins_full = true, .keeps_rows = false};
/// First in, first out: a memory.
inline constexpr StateKind kRingState = {.begins_full = false, .keeps_rows = true};

/// Of a state in a file, in a model that is being made, in a session.
constexpr const StateKind& state_kind_of(int32_t ring) {
  return ring < 0 ? kPlainState : kRingState;
}
inline const StateKind& state_kind(const schema::Tensor& state) {
  return state_kind_of(state.ring());
}
inline const StateKind& state_kind(const schema::TensorT& state) {
  return state_kind_of(state.ring);
}
inline const StateKind& state_kind(const Tensor& state) { return state_kind_of(state.ring); }

/// The sessions that borrow from one have no copy of their own.
bool is_shared_state(const schema::Model& graph, const schema::Tensor& state);
inline bool is_shared_state(const schema::ModelT& model, const schema::TensorT& state) {
  return state.ring >= 0 && model.rings[static_cast<size_t>(state.ring)]->shared;
}

/// Where row r lies, the oldest being row 0.
inline size_t state_slot(const Tensor& state, const RingPosition* rings, size_t row) {
  if (state.ring < 0) return row;
  return ring_slot(rings[state.ring], state.rows, state.pinned, row);
}

/// What a file says of it: its ring and its initial values. Of a tensor that is no state: that it has neither.
Status check_state(const schema::Model& graph, const schema::Tensor& tensor, Error* error);

}  // namespace oxbow

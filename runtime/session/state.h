#pragma once

// A session's state as bytes: one header, then the state region as it lies in the arena.

#include <cstddef>
#include <span>

#include "runtime/base/status.h"
#include "runtime/session/session.h"

namespace oxbow {

/// A saved state leaves the process and carries a checksum; a checkpoint does neither.
enum class StateForm { kSaved, kCheckpoint };

size_t state_blob_bytes(const Session& session);
/// The same for a session that is only planned.
size_t state_blob_bytes(size_t state_bytes);
Status write_state(const Session& session, StateForm form, std::span<std::byte> blob, Error* error);
/// Checks everything before the first byte of the session changes.
Status read_state(Session& session, StateForm form, std::span<const std::byte> blob, Error* error);

/// Rows that its ring does not hold may come back: it has rows from the start, or a push can leave it out.
bool is_kept_whole(const Session& session, const Tensor& state);

/// The rows of a state or kept tensor, as float32, the oldest first. `values` has rows * width places.
uint32_t filled_rows(const Session& session, const Tensor& tensor);
Status read_rows(const Session& session, uint32_t index, uint32_t rows, float* values,
                 Error* error);

/// Gives `to` the stream of `from`; one borrows from the other, or both from a third.
Status copy_stream(Session& to, const Session& from, Error* error);

}  // namespace oxbow

#pragma once

// The host's hands on a session's states and activations. On a device there may be two copies of them: this is the one
// place, beside a run's start, that knows which is newer and moves it.

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/base/tensor.h"
#include "runtime/session/session.h"

namespace oxbow {

class HostView {
 public:
  /// The latest values, to read.
  static Status read(const Session& session, HostView* view, Error* error);
  /// The latest values, to read and change.
  static Status change(const Session& session, HostView* view, Error* error);
  /// Whatever is there, to be written over: all that matters of it.
  static HostView replace(const Session& session);

  /// Where values are; which they are now does not matter.
  static HostView places(const Session& session) { return HostView(session); }

  HostView() = default;
  /// The whole state region, header and ring positions first.
  std::span<std::byte> state() const { return session_->state; }
  /// The states that are not shared, as they lie behind the shared ones.
  std::span<std::byte> own_states() const;
  Tensor tensor(uint32_t index) const { return session_tensor(*session_, index); }
  /// Whether this tensor is a state in the session's own memory, and a view of it.
  bool own_state(uint32_t index, Tensor* state) const;

 private:
  explicit HostView(const Session& session) : session_(&session) {}

  const Session* session_ = nullptr;
};

/// Before a device runs: it has the latest states, and its copies are the newer ones from now on.
Status hand_to_device(const Session& session, Error* error);

}  // namespace oxbow

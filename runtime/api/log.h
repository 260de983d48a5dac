#pragma once

// The lines that the C interface writes to a model's log. Nothing is put together when there is none.

#include "runtime/api/oxbow.h"
#include "runtime/base/status.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"

namespace oxbow {

/// What was opened, and where its bytes are.
void log_opened(const Model& model);

/// Who computes the steps, with which kernels; and the ops that a device leaves to the CPU.
void log_created(const Session& session, const char* backend, size_t arena_bytes);

/// Why there is no session. `backend` may be null.
void log_refused(const Model& model, const char* backend, const Error& why);

void log_end(const Model& model, const oxb_generation& text);

}  // namespace oxbow

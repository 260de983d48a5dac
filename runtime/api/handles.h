#pragma once

// What the files of the C interface share: handles and errors from one side to the other, and how options are read.
//
// A function checks its pointers with missing(), reads options with read_options(), calls the inside and gives its
// status with outer(). Nothing else is decided here.

#include "runtime/api/oxbow.h"
#include "runtime/base/status.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"

struct oxb_model {
  oxbow::Model model;
};

namespace oxbow {

inline Error* words(oxb_error* error) { return reinterpret_cast<Error*>(error); }
inline oxb_status outer(Status status) { return static_cast<oxb_status>(status); }

inline Session* inner(oxb_session* session) { return reinterpret_cast<Session*>(session); }
inline const Session* inner(const oxb_session* session) {
  return reinterpret_cast<const Session*>(session);
}

inline oxb_status missing(oxb_error* error, const char* what) {
  return outer(fail(words(error), Status::kInvalidArgument, "%s is null", what));
}

inline oxb_status check_entry(const Model& model, size_t entry, oxb_error* error) {
  if (entry < model.entry_count()) return OXB_OK;
  return outer(fail(words(error), Status::kInvalidArgument, "entry point %zu; the model has %zu",
                    entry, model.entry_count()));
}

/// The defaults, changed where the model's makers gave advice (sampler_api.cc).
void advised_sampling(const Model& model, oxb_sampler_options* options);

/// The caller's options, or the defaults for null. Fields that only a newer header has are not read. `what` they
/// are for begins the message.
template <typename Options>
Status read_options(const char* what, const Options* given, void (*init)(Options*),
                    Options* options, Error* error) {
  init(options);
  if (given == nullptr) return Status::kOk;
  if (given->size < sizeof(Options)) {
    return fail(error, Status::kInvalidArgument,
                "%s: options.size is %zu; expected at least %zu, as oxb_%s_options_init sets it",
                what, given->size, sizeof(Options), what);
  }
  *options = *given;
  return Status::kOk;
}

}  // namespace oxbow

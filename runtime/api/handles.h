#pragma once

// What the files of the C interface share: handles and errors from one side to the other, and how structs that begin with
// their size are read and written.
//
// A function checks its pointers with missing(), reads options with read_options(), calls the inside and gives its
// status with outer(). Nothing else is decided here.

#include <algorithm>
#include <cstring>

#include "runtime/api/metadata.h"
#include "runtime/api/oxbow.h"
#include "runtime/base/status.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"

struct oxb_model {
  oxbow::Model model;
  oxbow::Metadata metadata;
};

namespace oxbow {

/// No header will ever have a struct this large: a size above it was never set.
inline constexpr size_t kMostStructBytes = 16384;

inline bool is_size(size_t size) { return size >= sizeof(size_t) && size <= kMostStructBytes; }

/// Null: there is no place for the words, or one that nobody has prepared.
inline Error* words(oxb_error* error) {
  return error != nullptr && is_size(error->size) ? reinterpret_cast<Error*>(error) : nullptr;
}
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

/// The caller's options as a session takes them; `given` may be null (session_api.cc).
Status convert(const oxb_session_options* given, SessionOptions* converted, Error* error);

/// What the model's makers advise (sampler_api.cc).
oxb_sampler_options advised_sampling(const Model& model);

inline Status bad_size(const char* what, size_t size, Error* error) {
  return fail(error, Status::kInvalidArgument,
              "%s: size is %zu: let the struct start as its OXB_..._INIT", what, size);
}

/// The caller's struct as far as both sides know it; the rest, and all of it for null, as in `options`, which has the
/// defaults. `what` it is begins the message.
template <typename Options>
Status read_options(const char* what, const Options* given, Options* options, Error* error) {
  if (given == nullptr) return Status::kOk;
  if (!is_size(given->size)) return bad_size(what, given->size, error);
  std::memcpy(static_cast<void*>(options), given, std::min(given->size, sizeof(Options)));
  options->size = sizeof(Options);
  return Status::kOk;
}

/// Gives the caller's struct those of the fields that it has.
template <typename Info>
Status write_info(const char* what, Info value, Info* given, Error* error) {
  if (!is_size(given->size)) return bad_size(what, given->size, error);
  value.size = given->size;
  std::memcpy(static_cast<void*>(given), &value, std::min(given->size, sizeof(Info)));
  return Status::kOk;
}

}  // namespace oxbow

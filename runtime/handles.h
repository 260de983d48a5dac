#pragma once

// What the files of the C interface share.

#include "runtime/api/oxbow.h"
#include "runtime/base/status.h"
#include "runtime/model.h"

struct oxb_model {
  oxbow::Model model;
};

namespace oxbow {

static_assert(sizeof(oxb_error) == sizeof(Error));

inline Error* words(oxb_error* error) { return reinterpret_cast<Error*>(error); }
inline oxb_status outer(Status status) { return static_cast<oxb_status>(status); }

inline oxb_status missing(oxb_error* error, const char* what) {
  return outer(fail(words(error), Status::kInvalidArgument, "%s is null", what));
}

inline oxb_status check_entry(const Model& model, size_t entry, oxb_error* error) {
  if (entry < model.entry_count()) return OXB_OK;
  return outer(fail(words(error), Status::kInvalidArgument, "entry point %zu; the model has %zu",
                    entry, model.entry_count()));
}

}  // namespace oxbow

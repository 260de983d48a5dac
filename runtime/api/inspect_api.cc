// The C interface for looking inside a session: tensors by name, times, who computes what. Argument checks and
// conversions, no logic of its own.

#include <cstring>

#include "runtime/api/handles.h"
#include "runtime/api/oxbow.h"
#include "runtime/device/backends.h"
#include "runtime/session/session.h"
#include "runtime/session/state.h"
#include "schema/model_generated.h"

namespace {

using oxbow::inner;
using oxbow::missing;
using oxbow::outer;
using oxbow::Session;
using oxbow::Status;
using oxbow::words;
using oxbow::write_info;

struct Readable {
  uint32_t tensor = 0;
  const char* name = nullptr;
  /// False: an activation of an entry point that was not the last to run.
  bool valid = true;
};

// All readable tensors, until visit(index, tensor) is true: the states, then of each entry point the further outputs and
// the kept activations.
template <typename Visit>
bool visit_readable(const Session& session, Visit&& visit) {
  const auto& tensors = *session.model->graph->tensors();
  size_t index = 0;
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    if (tensors.Get(i)->kind() != oxbow::schema::TensorKind::State) continue;
    if (visit(index++, Readable{i, tensors.Get(i)->name()->c_str(), true})) return true;
  }
  for (size_t e = 0; e < session.model->entry_count(); ++e) {
    const oxbow::schema::EntryPoint& entry = session.model->entry(e);
    const bool valid = session.last_entry == e;
    const uint32_t outputs = entry.outputs() == nullptr ? 0 : entry.outputs()->size();
    for (uint32_t i = 0; i < outputs; ++i) {
      const uint32_t tensor = entry.outputs()->Get(i);
      if (visit(index++, Readable{tensor, tensors.Get(tensor)->name()->c_str(), valid}))
        return true;
    }
    const uint32_t kept = entry.kept() == nullptr ? 0 : entry.kept()->size();
    const bool named = entry.kept_names() != nullptr && entry.kept_names()->size() == kept;
    for (uint32_t i = 0; i < kept; ++i) {
      const uint32_t tensor = entry.kept()->Get(i);
      const auto* name = named ? entry.kept_names()->Get(i) : tensors.Get(tensor)->name();
      if (visit(index++, Readable{tensor, name->c_str(), valid})) return true;
    }
  }
  return false;
}

bool find_readable(const Session& session, size_t index, Readable* found) {
  return visit_readable(session, [&](size_t i, const Readable& readable) {
    *found = readable;
    return i == index;
  });
}

// The index-th readable tensor as it lies in memory, under the name it is read by.
oxb_status readable(const oxb_session* session, size_t index, Readable* found,
                    oxbow::Tensor* tensor, uint32_t* rows, oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (!find_readable(*inner(session), index, found)) {
    return outer(oxbow::fail(words(error), Status::kInvalidArgument,
                             "tensor %zu is not there to be read", index));
  }
  *tensor = oxbow::session_tensor(*inner(session), found->tensor);
  tensor->name = found->name;
  *rows = found->valid ? oxbow::filled_rows(*inner(session), *tensor) : 0;
  return OXB_OK;
}

}  // namespace

oxb_status oxb_session_tensor_count(const oxb_session* session, size_t* count, oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (count == nullptr) return missing(error, "count");
  *count = 0;
  visit_readable(*inner(session), [&](size_t, const Readable&) {
    ++*count;
    return false;
  });
  return OXB_OK;
}

oxb_status oxb_session_find_tensor(const oxb_session* session, const char* name, size_t* index,
                                   oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (name == nullptr) return missing(error, "name");
  if (index == nullptr) return missing(error, "index");
  size_t at = 0;
  const bool found = visit_readable(*inner(session), [&](size_t i, const Readable& readable) {
    at = i;
    return std::strcmp(readable.name, name) == 0;
  });
  if (found) {
    *index = at;
    return OXB_OK;
  }
  return outer(oxbow::fail(words(error), Status::kInvalidArgument,
                           "tensor '%.80s' is not there to be read", name));
}

oxb_status oxb_session_tensor_info(const oxb_session* session, size_t index, oxb_tensor_info* given,
                                   oxb_error* error) {
  if (given == nullptr) return missing(error, "info");
  Readable found;
  oxbow::Tensor tensor;
  uint32_t rows = 0;
  const oxb_status status = readable(session, index, &found, &tensor, &rows, error);
  if (status != OXB_OK) return status;
  oxb_tensor_info info = OXB_TENSOR_INFO_INIT;
  info.name = tensor.name;
  info.rows = rows;
  info.max_rows = tensor.rows;
  info.width = tensor.width;
  return outer(write_info("tensor info", info, given, words(error)));
}

oxb_status oxb_session_tensor_read(const oxb_session* session, size_t index, float* values,
                                   size_t value_count, oxb_error* error) {
  Readable found;
  oxbow::Tensor tensor;
  uint32_t rows = 0;
  const oxb_status status = readable(session, index, &found, &tensor, &rows, error);
  if (status != OXB_OK) return status;
  const size_t needed = size_t{rows} * tensor.width;
  if (values == nullptr && needed > 0) return missing(error, "values");
  if (value_count < needed) {
    return outer(oxbow::fail(words(error), Status::kBufferTooSmall,
                             "tensor '%.80s' has %zu values; there is room for %zu", tensor.name,
                             needed, value_count));
  }
  return outer(oxbow::read_rows(*inner(session), found.tensor, rows, values, words(error)));
}

const char* oxb_backend_name(oxb_backend backend) {
  const oxbow::BackendInfo* found = oxbow::find_backend(static_cast<int>(backend));
  return found == nullptr ? nullptr : found->name;
}

oxb_bool oxb_backend_is_built_in(oxb_backend backend) {
  const oxbow::BackendInfo* found = oxbow::find_backend(static_cast<int>(backend));
  return found != nullptr && found->is_built_in ? 1 : 0;
}

oxb_status oxb_session_backend_bytes(const oxb_session* session, size_t* bytes, oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (bytes == nullptr) return missing(error, "bytes");
  *bytes = oxbow::backend_bytes(*inner(session));
  return OXB_OK;
}

oxb_status oxb_session_pipeline_cache(const oxb_session* session, void* buffer, size_t bytes,
                                      size_t* count, oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (count == nullptr) return missing(error, "count");
  *count = 0;
  const oxbow::Device& device = inner(session)->device;
  if (!device || device.driver->write_cache == nullptr) return OXB_OK;
  return outer(device.driver->write_cache(device.self, {static_cast<std::byte*>(buffer), bytes},
                                          count, words(error)));
}

const char* oxb_session_step_provider(const oxb_session* session, size_t step) {
  if (session == nullptr) return nullptr;
  const auto& steps = inner(session)->steps;
  return step < steps.size() ? steps[step].provider : nullptr;
}

oxb_status oxb_session_set_profile(oxb_session* session, oxb_profile_callback callback,
                                   void* context, oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  inner(session)->profile = callback;
  inner(session)->profile_context = context;
  return OXB_OK;
}

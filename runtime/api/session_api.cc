// The C interface over Session: argument checks and conversions, no logic of its own.

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/api/handles.h"
#include "runtime/api/oxbow.h"
#include "runtime/device/backends.h"
#include "runtime/model/model.h"
#include "runtime/session/draft.h"
#include "runtime/session/session.h"
#include "runtime/session/state.h"
#include "schema/model_generated.h"

namespace {

using oxbow::Error;
using oxbow::Model;
using oxbow::Session;
using oxbow::Status;

using oxbow::check_entry;
using oxbow::inner;
using oxbow::missing;
using oxbow::outer;
using oxbow::read_options;
using oxbow::words;

Status convert(const oxb_session_options* given, oxbow::SessionOptions* converted, Error* error) {
  oxb_session_options options;
  OXB_TRY(read_options("session", given, oxb_session_options_init, &options, error));
  const oxbow::BackendInfo* found = oxbow::find_backend(static_cast<int>(options.backend));
  if (found == nullptr) {
    return oxbow::fail(error, Status::kInvalidArgument, "unknown backend %d",
                       static_cast<int>(options.backend));
  }
  if (!found->is_built_in) {
    return oxbow::fail(error, Status::kInvalidArgument,
                       "this library was built without the backend: configure with %s=ON",
                       found->build_option);
  }
  // Libraries copy weights into memory that the caller did not give, so AUTO is never one of them.
  const bool chosen = found->backend != oxbow::Backend::kAuto;
  converted->backend = chosen ? found->backend : oxbow::Backend::kCpu;
  converted->device = found->device;
  converted->threads = options.threads == 0 ? 1 : options.threads;
  converted->lender = inner(options.lender);
  converted->cpu_mask = options.cpu_mask;
  if (options.pipeline_cache != nullptr) {
    converted->pipeline_cache = {static_cast<const std::byte*>(options.pipeline_cache),
                                 options.pipeline_cache_bytes};
  }
  return Status::kOk;
}

oxb_status count_memory(const oxb_model* model, const oxb_session_options* options,
                        oxbow::SessionMemory* memory, oxb_error* error) {
  if (model == nullptr) return missing(error, "model");
  oxbow::SessionOptions converted;
  Status status = convert(options, &converted, words(error));
  if (status == Status::kOk) {
    status = oxbow::count_session_memory(model->model, converted, memory, words(error));
  }
  return outer(status);
}

struct Readable {
  uint32_t tensor = 0;
  const char* name = nullptr;
  /// False: an activation of an entry point that was not the last to run.
  bool valid = true;
};

// The index-th readable tensor: all states, then of each entry point the further outputs and the kept activations.
bool find_readable(const Session& session, size_t index, Readable* found) {
  const auto& tensors = *session.model->graph->tensors();
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    if (tensors.Get(i)->kind() != oxbow::schema::TensorKind::State) continue;
    if (index-- == 0) {
      *found = {i, tensors.Get(i)->name()->c_str(), true};
      return true;
    }
  }
  for (size_t e = 0; e < session.model->entry_count(); ++e) {
    const oxbow::schema::EntryPoint& entry = session.model->entry(e);
    const size_t outputs = entry.outputs() == nullptr ? 0 : entry.outputs()->size();
    if (index < outputs) {
      const uint32_t tensor = entry.outputs()->Get(static_cast<uint32_t>(index));
      *found = {tensor, tensors.Get(tensor)->name()->c_str(), session.last_entry == e};
      return true;
    }
    index -= outputs;
    const size_t kept = entry.kept() == nullptr ? 0 : entry.kept()->size();
    if (index >= kept) {
      index -= kept;
      continue;
    }
    const auto i = static_cast<uint32_t>(index);
    const uint32_t tensor = entry.kept()->Get(i);
    const bool named = entry.kept_names() != nullptr && entry.kept_names()->size() == kept;
    const auto* name = named ? entry.kept_names()->Get(i) : tensors.Get(tensor)->name();
    *found = {tensor, name->c_str(), session.last_entry == e};
    return true;
  }
  return false;
}

// The index-th readable tensor as it lies in memory, under the name it is read by.
oxb_status readable(const oxb_session* session, size_t index, Readable* found,
                    oxbow::Tensor* tensor, uint32_t* rows, oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (!find_readable(*inner(session), index, found)) {
    return outer(oxbow::fail(words(error), Status::kInvalidArgument, "no tensor %zu", index));
  }
  *tensor = oxbow::session_tensor(*inner(session), found->tensor);
  tensor->name = found->name;
  *rows = found->valid ? oxbow::filled_rows(*inner(session), *tensor) : 0;
  return OXB_OK;
}

// Runs an entry point with nothing but its main input.
oxb_status run_tokens(oxb_session* session, size_t entry, const int32_t* tokens, size_t count,
                      float* output, size_t output_rows, oxb_error* error) {
  const Model& model = *inner(session)->model;
  const oxbow::schema::Tensor& main = *model.graph->tensors()->Get(model.entry(entry).tokens());
  if (main.type() != oxbow::schema::DataType::I32) {
    return outer(oxbow::fail(words(error), Status::kInvalidArgument,
                             "the model takes no tokens: use oxb_session_run_entry"));
  }
  const oxbow::InputValues input = {main.name()->c_str(), tokens, count};
  return outer(oxbow::run_session(*inner(session), static_cast<uint32_t>(entry), {&input, 1},
                                  output, output_rows, words(error)));
}

}  // namespace

void oxb_session_options_init(oxb_session_options* options) {
  *options = {};
  options->size = sizeof(oxb_session_options);
  options->threads = 1;
}

oxb_status oxb_session_arena_bytes(const oxb_model* model, const oxb_session_options* options,
                                   size_t* bytes, oxb_error* error) {
  if (bytes == nullptr) return missing(error, "bytes");
  oxbow::SessionMemory memory;
  const oxb_status status = count_memory(model, options, &memory, error);
  *bytes = status == OXB_OK ? memory.total : 0;
  return status;
}

oxb_status oxb_session_memory(const oxb_model* model, const oxb_session_options* options,
                              oxb_memory* memory, oxb_error* error) {
  if (memory == nullptr) return missing(error, "memory");
  oxbow::SessionMemory counted;
  const oxb_status status = count_memory(model, options, &counted, error);
  *memory = {counted.session, counted.states, counted.activations, counted.scratch, counted.total};
  return status;
}

oxb_status oxb_session_device_bytes(const oxb_model* model, const oxb_session_options* options,
                                    size_t* bytes, oxb_error* error) {
  if (bytes == nullptr) return missing(error, "bytes");
  oxbow::SessionMemory memory;
  const oxb_status status = count_memory(model, options, &memory, error);
  *bytes = status == OXB_OK ? memory.device : 0;
  return status;
}

oxb_status oxb_session_create(const oxb_model* model, const oxb_session_options* options,
                              void* arena, size_t arena_bytes, oxb_session** session,
                              oxb_error* error) {
  if (model == nullptr) return missing(error, "model");
  if (session == nullptr) return missing(error, "session");
  *session = nullptr;
  oxbow::SessionOptions converted;
  Status status = convert(options, &converted, words(error));
  if (status != Status::kOk) return outer(status);
  Session* created = nullptr;
  status =
      oxbow::create_session(model->model, converted, {static_cast<std::byte*>(arena), arena_bytes},
                            &created, words(error));
  *session = reinterpret_cast<oxb_session*>(created);
  return outer(status);
}

void oxb_session_destroy(oxb_session* session) {
  if (session != nullptr) oxbow::destroy_session(inner(session));
}

oxb_status oxb_session_run(oxb_session* session, const int32_t* tokens, size_t count, float* logits,
                           size_t logits_rows, oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (tokens == nullptr) return missing(error, "tokens");
  return run_tokens(session, inner(session)->model->entry_count() - 1, tokens, count, logits,
                    logits_rows, error);
}

oxb_status oxb_session_run_entry(oxb_session* session, size_t entry, const oxb_input* inputs,
                                 size_t input_count, float* output, size_t output_rows,
                                 oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (inputs == nullptr && input_count != 0) return missing(error, "inputs");
  if (const oxb_status status = check_entry(*inner(session)->model, entry, error);
      status != OXB_OK) {
    return status;
  }
  for (size_t i = 0; i < input_count; ++i) {
    if (inputs[i].name == nullptr) return missing(error, "an input's name");
  }
  return outer(
      oxbow::run_session(*inner(session), static_cast<uint32_t>(entry),
                         {reinterpret_cast<const oxbow::InputValues*>(inputs), input_count}, output,
                         output_rows, words(error)));
}

oxb_status oxb_session_encode(oxb_session* session, const int32_t* tokens, size_t count,
                              oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (tokens == nullptr) return missing(error, "tokens");
  if (inner(session)->model->entry_count() != 2) {
    return outer(oxbow::fail(words(error), Status::kInvalidArgument,
                             "the model does not translate: use oxb_session_run"));
  }
  return run_tokens(session, 0, tokens, count, nullptr, 0, error);
}

oxb_status oxb_session_run_batch(oxb_session* session, const int32_t* tokens, const size_t* lengths,
                                 size_t texts, float* output, size_t output_rows,
                                 oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (tokens == nullptr || lengths == nullptr) return missing(error, "tokens or lengths");
  const Model& model = *inner(session)->model;
  const oxbow::schema::EntryPoint& entry = model.main_entry();
  if (!entry.starts()) {
    return outer(oxbow::fail(words(error), Status::kInvalidArgument,
                             "the model streams: give each text a session of its own"));
  }
  const oxbow::schema::Tensor& out = *model.graph->tensors()->Get(entry.logits());
  for (size_t i = 0, row = 0; i < texts; ++i) {
    const size_t rows = out.rows_symbol() < 0 ? out.rows() : lengths[i];
    if (rows > output_rows - row || output == nullptr) {
      return outer(oxbow::fail(words(error), Status::kBufferTooSmall,
                               "room for %zu rows of output; text %zu needs %zu more than %zu",
                               output == nullptr ? 0 : output_rows, i, rows, row));
    }
    const oxb_status status = run_tokens(session, model.entry_count() - 1, tokens, lengths[i],
                                         output + row * out.width(), rows, error);
    if (status != OXB_OK) return status;
    tokens += lengths[i];
    row += rows;
  }
  return OXB_OK;
}

oxb_status oxb_session_copy(oxb_session* to, const oxb_session* from, oxb_error* error) {
  if (to == nullptr || from == nullptr) return missing(error, "session");
  return outer(oxbow::copy_stream(*inner(to), *inner(from), words(error)));
}

void oxb_session_reset(oxb_session* session) { oxbow::reset_session(*inner(session)); }

uint64_t oxb_session_position(const oxb_session* session) {
  return inner(session)->header->position;
}

size_t oxb_session_state_bytes(const oxb_session* session) {
  return oxbow::state_blob_bytes(*inner(session));
}

namespace {

oxb_status put_state(const oxb_session* session, oxbow::StateForm form, void* buffer, size_t bytes,
                     oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  return outer(oxbow::write_state(*inner(session), form, {static_cast<std::byte*>(buffer), bytes},
                                  words(error)));
}

oxb_status take_state(oxb_session* session, oxbow::StateForm form, const void* buffer, size_t bytes,
                      oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  return outer(oxbow::read_state(*inner(session), form,
                                 {static_cast<const std::byte*>(buffer), bytes}, words(error)));
}

}  // namespace

oxb_status oxb_session_save(const oxb_session* session, void* buffer, size_t bytes,
                            oxb_error* error) {
  return put_state(session, oxbow::StateForm::kSaved, buffer, bytes, error);
}

oxb_status oxb_session_load(oxb_session* session, const void* buffer, size_t bytes,
                            oxb_error* error) {
  return take_state(session, oxbow::StateForm::kSaved, buffer, bytes, error);
}

oxb_status oxb_session_checkpoint(const oxb_session* session, void* buffer, size_t bytes,
                                  oxb_error* error) {
  return put_state(session, oxbow::StateForm::kCheckpoint, buffer, bytes, error);
}

oxb_status oxb_session_rewind(oxb_session* session, const void* buffer, size_t bytes,
                              oxb_error* error) {
  return take_state(session, oxbow::StateForm::kCheckpoint, buffer, bytes, error);
}

oxb_status oxb_session_draft_bytes(const oxb_session* session, size_t tokens, size_t* bytes,
                                   oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (bytes == nullptr) return missing(error, "bytes");
  return outer(oxbow::draft_bytes(*inner(session), tokens, bytes, words(error)));
}

oxb_status oxb_session_draft(oxb_session* session, void* memory, size_t bytes, size_t tokens,
                             oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  return outer(oxbow::begin_draft(*inner(session), {static_cast<std::byte*>(memory), bytes}, tokens,
                                  words(error)));
}

oxb_status oxb_session_keep(oxb_session* session, size_t tokens, oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  return outer(oxbow::keep_draft(*inner(session), tokens, words(error)));
}

size_t oxb_session_tensor_count(const oxb_session* session) {
  size_t count = 0;
  for (Readable found; find_readable(*inner(session), count, &found);) ++count;
  return count;
}

oxb_status oxb_session_tensor_info(const oxb_session* session, size_t index, oxb_tensor_info* info,
                                   oxb_error* error) {
  if (info == nullptr) return missing(error, "info");
  Readable found;
  oxbow::Tensor tensor;
  uint32_t rows = 0;
  const oxb_status status = readable(session, index, &found, &tensor, &rows, error);
  if (status != OXB_OK) return status;
  *info = {tensor.name, rows, tensor.rows, tensor.width};
  return OXB_OK;
}

oxb_status oxb_session_tensor_read(const oxb_session* session, size_t index, float* values,
                                   size_t value_count, oxb_error* error) {
  Readable found;
  oxbow::Tensor tensor;
  uint32_t rows = 0;
  const oxb_status status = readable(session, index, &found, &tensor, &rows, error);
  if (status != OXB_OK) return status;
  const size_t needed = size_t{rows} * tensor.width;
  if (value_count < needed || (values == nullptr && needed > 0)) {
    return outer(oxbow::fail(words(error), Status::kBufferTooSmall,
                             "room for %zu values; '%.80s' has %zu", value_count, tensor.name,
                             needed));
  }
  return outer(oxbow::read_rows(*inner(session), found.tensor, rows, values, words(error)));
}

const char* oxb_backend_name(oxb_backend backend) {
  const oxbow::BackendInfo* found = oxbow::find_backend(static_cast<int>(backend));
  return found == nullptr ? nullptr : found->name;
}

int oxb_backend_is_built_in(oxb_backend backend) {
  const oxbow::BackendInfo* found = oxbow::find_backend(static_cast<int>(backend));
  return found != nullptr && found->is_built_in ? 1 : 0;
}

size_t oxb_session_backend_bytes(const oxb_session* session) {
  return oxbow::backend_bytes(*inner(session));
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
  const auto& steps = inner(session)->steps;
  return step < steps.size() ? steps[step].provider : nullptr;
}

void oxb_session_set_profile(oxb_session* session, oxb_profile_callback callback, void* context) {
  inner(session)->profile = callback;
  inner(session)->profile_context = context;
}

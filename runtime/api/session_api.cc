// The C interface over Session: argument checks and conversions, no logic of its own.

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/api/handles.h"
#include "runtime/api/log.h"
#include "runtime/api/oxbow.h"
#include "runtime/device/backends.h"
#include "runtime/model/model.h"
#include "runtime/session/draft.h"
#include "runtime/session/lockstep.h"
#include "runtime/session/pooling.h"
#include "runtime/session/session.h"
#include "runtime/session/state.h"
#include "schema/model_generated.h"

namespace oxbow {

Status convert(const oxb_session_options* given, SessionOptions* converted, Error* error) {
  oxb_session_options options = OXB_SESSION_OPTIONS_INIT;
  OXB_TRY(read_options("session options", given, &options, error));
  const BackendInfo* found = find_backend(static_cast<int>(options.backend));
  if (found == nullptr) {
    return fail(error, Status::kInvalidArgument, "backend %d is unknown",
                static_cast<int>(options.backend));
  }
  if (!found->is_built_in) {
    return fail(error, Status::kInvalidArgument,
                "this library was built without the backend: configure with %s=ON",
                found->build_option);
  }
  // Libraries copy weights into memory that the caller did not give, so AUTO is never one of them.
  const bool chosen = found->backend != Backend::kAuto;
  converted->backend = chosen ? found->backend : Backend::kCpu;
  converted->device = found->device;
  converted->threads = options.threads == 0 ? 1 : options.threads;
  converted->lender = inner(options.lender);
  converted->cpu_mask = options.cpu_mask;
  converted->warm_up = options.warm_up != 0;
  if (found->backend == oxbow::Backend::kNpu) {
    converted->device_options = {reinterpret_cast<oxbow::NpuHandle*>(options.npu),
                                 options.npu_least_rows, options.npu_shadow != 0};
  }
  if (options.pipeline_cache != nullptr) {
    converted->pipeline_cache = {static_cast<const std::byte*>(options.pipeline_cache),
                                 options.pipeline_cache_bytes};
  }
  return Status::kOk;
}

}  // namespace oxbow

namespace {

using oxbow::Error;
using oxbow::Model;
using oxbow::Session;
using oxbow::Status;

using oxbow::check_entry;
using oxbow::convert;
using oxbow::inner;
using oxbow::missing;
using oxbow::outer;
using oxbow::read_options;
using oxbow::words;
using oxbow::write_info;

/// By its number in the options.
const char* backend_name(const oxb_session_options* given) {
  oxb_session_options options = OXB_SESSION_OPTIONS_INIT;
  if (read_options("session options", given, &options, nullptr) != Status::kOk) return nullptr;
  const oxbow::BackendInfo* found = oxbow::find_backend(static_cast<int>(options.backend));
  return found == nullptr ? nullptr : found->name;
}

/// Tells the log, and the caller as far as he wants to know.
oxb_status refused(const oxb_model* model, const oxb_session_options* options, Status status,
                   const Error& why, oxb_error* error) {
  oxbow::log_refused(model->model, backend_name(options), why);
  return outer(oxbow::fail(words(error), status, "%s", why.text));
}

// The rows of an output fit where the caller wants them. Rows there cannot be are refused by the run.
oxb_status check_room(const oxbow::schema::Tensor& output, size_t rows, const float* values,
                      size_t capacity, oxb_error* error) {
  uint64_t needed = 0;
  if (rows > 0 && values == nullptr) return missing(error, "the place for the output");
  if (oxbow::checked_mul(rows, output.width(), &needed) && needed <= capacity) return OXB_OK;
  return outer(oxbow::fail(words(error), Status::kBufferTooSmall,
                           "output '%.40s': room for %zu numbers; %zu rows have %u each",
                           output.name()->c_str(), capacity, rows, output.width()));
}

const oxbow::schema::Tensor& tensor_at(const Model& model, uint32_t index) {
  return *model.graph->tensors()->Get(index);
}

// Runs an entry point with nothing but its main input.
oxb_status run_tokens(oxb_session* session, size_t entry, const int32_t* tokens, size_t count,
                      size_t output_rows, float* output, size_t capacity, oxb_error* error) {
  const Model& model = *inner(session)->model;
  const oxbow::schema::Tensor& main = tensor_at(model, model.entry(entry).tokens());
  if (main.type() != oxbow::schema::DataType::I32) {
    return outer(oxbow::fail(words(error), Status::kInvalidArgument,
                             "the model takes no tokens: use oxb_session_run_entry"));
  }
  const oxb_status fits = check_room(tensor_at(model, model.entry(entry).logits()), output_rows,
                                     output, capacity, error);
  if (fits != OXB_OK) return fits;
  const oxbow::InputValues input = {main.name()->c_str(), tokens, count};
  return outer(oxbow::run_session(*inner(session), static_cast<uint32_t>(entry), {&input, 1},
                                  output, output_rows, words(error)));
}

}  // namespace

oxb_status oxb_session_plan(const oxb_model* model, const oxb_session_options* options,
                            oxb_plan* given, oxb_error* error) {
  if (model == nullptr) return missing(error, "model");
  if (given == nullptr) return missing(error, "plan");
  oxbow::SessionOptions converted;
  oxbow::SessionMemory memory;
  Error why;
  Status status = convert(options, &converted, &why);
  if (status == Status::kOk) {
    status = oxbow::count_session_memory(model->model, converted, &memory, &why);
  }
  if (status != Status::kOk) return refused(model, options, status, why, error);
  oxb_plan plan = OXB_PLAN_INIT;
  plan.options = options;
  plan.arena_bytes = memory.total;
  plan.session_bytes = memory.session;
  plan.state_bytes = memory.states;
  plan.activation_bytes = memory.activations;
  plan.scratch_bytes = memory.scratch;
  plan.device_bytes = memory.device;
  plan.library_bytes = memory.libraries;
  plan.checkpoint_bytes = memory.checkpoint;
  plan.beam_bytes = memory.borrower;
  return outer(write_info("plan", plan, given, words(error)));
}

oxb_status oxb_session_create(const oxb_model* model, const oxb_plan* given, void* arena,
                              size_t arena_bytes, oxb_session** session, oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  *session = nullptr;
  if (model == nullptr) return missing(error, "model");
  if (given == nullptr) return missing(error, "plan");
  if (arena == nullptr) return missing(error, "arena");
  oxb_plan plan = OXB_PLAN_INIT;
  oxbow::SessionOptions converted;
  Error why;
  Status status = read_options("plan", given, &plan, &why);
  if (status == Status::kOk) status = convert(plan.options, &converted, &why);
  Session* created = nullptr;
  if (status == Status::kOk) {
    status = oxbow::create_session(model->model, converted,
                                   {static_cast<std::byte*>(arena), arena_bytes}, &created, &why);
  }
  if (status != Status::kOk) return refused(model, plan.options, status, why, error);
  oxbow::log_created(*created, backend_name(plan.options), arena_bytes);
  *session = reinterpret_cast<oxb_session*>(created);
  return OXB_OK;
}

void oxb_session_destroy(oxb_session* session) {
  if (session != nullptr) oxbow::destroy_session(inner(session));
}

oxb_status oxb_session_run(oxb_session* session, const int32_t* tokens, size_t count,
                           size_t logits_rows, float* logits, size_t logits_capacity,
                           oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (tokens == nullptr) return missing(error, "tokens");
  return run_tokens(session, inner(session)->model->entry_count() - 1, tokens, count, logits_rows,
                    logits, logits_capacity, error);
}

oxb_status oxb_session_cancel(oxb_session* session) {
  if (session == nullptr) return OXB_INVALID_ARGUMENT;
  inner(session)->cancelled.store(true, std::memory_order_release);
  return OXB_OK;
}

oxb_status oxb_session_encode(oxb_session* session, const int32_t* tokens, size_t count,
                              oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (tokens == nullptr) return missing(error, "tokens");
  if (inner(session)->model->entry_count() != 2) {
    return outer(oxbow::fail(words(error), Status::kInvalidArgument,
                             "the model does not translate: use oxb_session_run"));
  }
  return run_tokens(session, 0, tokens, count, 0, nullptr, 0, error);
}

namespace {

// Models whose runs know nothing of each other.
Status need_fresh_runs(const oxbow::schema::EntryPoint& entry, Error* error) {
  if (entry.starts()) return Status::kOk;
  return oxbow::fail(error, Status::kInvalidArgument,
                     "the model streams: give each text a session of its own");
}

// All of the texts fit, so that none is run when one does not.
oxb_status check_batch(const oxbow::schema::Tensor& out, std::span<const size_t> lengths,
                       const float* output, size_t capacity, oxb_error* error) {
  uint64_t rows = 0;
  bool counted = true;
  for (const size_t length : lengths) {
    counted = counted &&
              oxbow::checked_add(rows, out.rows_symbol() < 0 ? out.rows() : length, &rows) &&
              rows <= SIZE_MAX;
  }
  if (!counted) {
    return outer(oxbow::fail(words(error), Status::kInvalidArgument, "the lengths are impossible"));
  }
  return check_room(out, static_cast<size_t>(rows), output, capacity, error);
}

}  // namespace

oxb_status oxb_session_run_batch(oxb_session* session, const int32_t* tokens, const size_t* lengths,
                                 size_t texts, float* output, size_t output_capacity,
                                 oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (tokens == nullptr) return missing(error, "tokens");
  if (lengths == nullptr) return missing(error, "lengths");
  if (output == nullptr) return missing(error, "output");
  const Model& model = *inner(session)->model;
  const oxbow::schema::EntryPoint& entry = model.main_entry();
  if (const Status status = need_fresh_runs(entry, words(error)); status != Status::kOk) {
    return outer(status);
  }
  const oxbow::schema::Tensor& out = tensor_at(model, entry.logits());
  const oxb_status status = check_batch(out, {lengths, texts}, output, output_capacity, error);
  if (status != OXB_OK) return status;
  return outer(oxbow::run_texts(*inner(session), tokens, {lengths, texts}, output, words(error)));
}

oxb_status oxb_sessions_run(oxb_session* const* sessions, size_t count, const int32_t* tokens,
                            float* logits, size_t logits_capacity, oxb_error* error) {
  if (sessions == nullptr) return missing(error, "sessions");
  if (tokens == nullptr) return missing(error, "tokens");
  if (count == 0) return OXB_OK;
  Session* all[OXB_MAX_SESSIONS_RUN];
  if (count > std::size(all)) {
    return outer(oxbow::fail(words(error), Status::kInvalidArgument,
                             "%zu sessions at once; at most %d", count, OXB_MAX_SESSIONS_RUN));
  }
  if (std::find(sessions, sessions + count, nullptr) != sessions + count) {
    return missing(error, "one of the sessions");
  }
  std::transform(sessions, sessions + count, all, [](oxb_session* each) { return inner(each); });
  const Model& model = *all[0]->model;
  if (logits != nullptr) {
    const oxb_status room = check_room(tensor_at(model, model.main_entry().logits()), count, logits,
                                       logits_capacity, error);
    if (room != OXB_OK) return room;
  }
  return outer(oxbow::run_lockstep({all, count}, {tokens, count}, logits, words(error)));
}

oxb_status oxb_session_embed(oxb_session* session, const int32_t* tokens, size_t count,
                             const oxb_embed_options* given, float* output, size_t output_capacity,
                             oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (tokens == nullptr) return missing(error, "tokens");
  if (output == nullptr) return missing(error, "output");
  oxb_embed_options options = OXB_EMBED_OPTIONS_INIT;
  const Model& model = *inner(session)->model;
  Status read = read_options("embed options", given, &options, words(error));
  if (read == Status::kOk) read = need_fresh_runs(model.main_entry(), words(error));
  if (read != Status::kOk) return outer(read);
  if (options.pooling < OXB_POOLING_MEAN || options.pooling > OXB_POOLING_MAX) {
    return outer(oxbow::fail(words(error), Status::kInvalidArgument, "pooling %d is unknown",
                             static_cast<int>(options.pooling)));
  }
  const oxbow::schema::Tensor& out = tensor_at(model, model.main_entry().logits());
  const auto pooling = static_cast<oxbow::Pooling>(options.pooling);
  const size_t rows = out.rows_symbol() < 0              ? out.rows()
                      : pooling == oxbow::Pooling::kLast ? 1
                                                         : count;
  const oxb_status status = run_tokens(session, model.entry_count() - 1, tokens, count, rows,
                                       output, output_capacity, error);
  if (status != OXB_OK) return status;
  oxbow::pool_rows(output, rows, out.width(), pooling);
  if (options.normalise != 0) oxbow::normalise_row(output, out.width());
  return OXB_OK;
}

oxb_status oxb_session_copy(oxb_session* to, const oxb_session* from, oxb_error* error) {
  if (to == nullptr || from == nullptr) return missing(error, "session");
  return outer(oxbow::copy_stream(*inner(to), *inner(from), words(error)));
}

oxb_status oxb_session_reset(oxb_session* session, oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  inner(session)->cancelled.store(false, std::memory_order_relaxed);
  oxbow::reset_session(*inner(session));
  return OXB_OK;
}

oxb_status oxb_session_position(const oxb_session* session, uint64_t* position, oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (position == nullptr) return missing(error, "position");
  *position = inner(session)->header->position;
  return OXB_OK;
}

oxb_status oxb_session_state_bytes(const oxb_session* session, size_t* bytes, oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (bytes == nullptr) return missing(error, "bytes");
  *bytes = oxbow::state_blob_bytes(*inner(session));
  return OXB_OK;
}

namespace {

oxb_status put_state(const oxb_session* session, oxbow::StateForm form, void* buffer, size_t bytes,
                     oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (buffer == nullptr) return missing(error, "buffer");
  return outer(oxbow::write_state(*inner(session), form, {static_cast<std::byte*>(buffer), bytes},
                                  words(error)));
}

oxb_status take_state(oxb_session* session, oxbow::StateForm form, const void* buffer, size_t bytes,
                      oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (buffer == nullptr) return missing(error, "buffer");
  const Status status = oxbow::read_state(
      *inner(session), form, {static_cast<const std::byte*>(buffer), bytes}, words(error));
  if (status == Status::kOk) inner(session)->cancelled.store(false, std::memory_order_relaxed);
  return outer(status);
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
  if (memory == nullptr) return missing(error, "memory");
  return outer(oxbow::begin_draft(*inner(session), {static_cast<std::byte*>(memory), bytes}, tokens,
                                  words(error)));
}

oxb_status oxb_session_keep(oxb_session* session, size_t tokens, oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  return outer(oxbow::keep_draft(*inner(session), tokens, words(error)));
}

// The C interface over oxb_beam_search: argument checks and conversions, no logic of its own.

#include "runtime/api/handles.h"
#include "runtime/generate/beam_runner.h"
#include "schema/model_generated.h"

namespace {

using oxbow::Error;
using oxbow::fail;
using oxbow::inner;
using oxbow::missing;
using oxbow::outer;
using oxbow::read_options;
using oxbow::Session;
using oxbow::Status;
using oxbow::words;
using oxbow::write_info;

Status search_bytes(const Session& session, const oxb_beam_options* given, size_t* bytes,
                    Error* error) {
  oxb_beam_options options = OXB_BEAM_OPTIONS_INIT;
  OXB_TRY(read_options("beam options", given, &options, error));
  return oxb_beam_search::measure(session, options, bytes, error);
}

Status search_create(Session& session, const oxb_beam_options* given, void* memory, size_t bytes,
                     oxb_beam_search** search, Error* error) {
  oxb_beam_options options = OXB_BEAM_OPTIONS_INIT;
  OXB_TRY(read_options("beam options", given, &options, error));
  return oxb_beam_search::place(session, options, memory, bytes, search, error);
}

}  // namespace

oxb_status oxb_beam_options_advised(const oxb_model* model, oxb_beam_options* options,
                                    oxb_error* error) {
  if (model == nullptr) return missing(error, "model");
  if (options == nullptr) return missing(error, "options");
  oxb_beam_options advised = OXB_BEAM_OPTIONS_INIT;
  if (const auto* generation = model->model.graph->generation(); generation != nullptr) {
    advised.beams = generation->beams().value_or(advised.beams);
    advised.length_penalty =
        generation->length_penalty().value_or(static_cast<float>(advised.length_penalty));
  }
  return outer(write_info("beam options", advised, options, words(error)));
}

oxb_status oxb_beam_search_bytes(const oxb_session* session, const oxb_beam_options* options,
                                 size_t* bytes, oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (bytes == nullptr) return missing(error, "bytes");
  return outer(search_bytes(*inner(session), options, bytes, words(error)));
}

oxb_status oxb_beam_search_create(oxb_session* session, const oxb_beam_options* options,
                                  void* memory, size_t bytes, oxb_beam_search** search,
                                  oxb_error* error) {
  if (search == nullptr) return missing(error, "search");
  *search = nullptr;
  if (session == nullptr) return missing(error, "session");
  if (memory == nullptr) return missing(error, "memory");
  return outer(search_create(*inner(session), options, memory, bytes, search, words(error)));
}

void oxb_beam_search_destroy(oxb_beam_search*) {}  // All it has lies in the caller's memory.

oxb_status oxb_beam_search_run(oxb_beam_search* search, const int32_t* prompt, size_t count,
                               oxb_error* error) {
  if (search == nullptr) return missing(error, "search");
  if (prompt == nullptr && count != 0) return missing(error, "prompt");
  return outer(search->run({prompt, count}, words(error)));
}

size_t oxb_beam_search_count(const oxb_beam_search* search) {
  if (search == nullptr || !search->search().done()) return 0;
  return search->search().result_count();
}

oxb_status oxb_beam_search_result(const oxb_beam_search* search, size_t index,
                                  const int32_t** tokens, size_t* count, float* score,
                                  oxb_error* error) {
  if (search == nullptr) return missing(error, "search");
  if (tokens == nullptr) return missing(error, "tokens");
  if (count == nullptr) return missing(error, "count");
  const size_t texts = oxb_beam_search_count(search);
  if (index >= texts) {
    return outer(
        fail(words(error), Status::kInvalidArgument, "beam search: text %zu of %zu", index, texts));
  }
  const std::span<const int32_t> text = search->search().result(static_cast<uint32_t>(index));
  *tokens = text.data();
  *count = text.size();
  if (score != nullptr) *score = search->search().result_score(static_cast<uint32_t>(index));
  return OXB_OK;
}

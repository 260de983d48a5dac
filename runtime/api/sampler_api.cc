// The C interface over oxb_sampler: argument checks and conversions, no logic of its own.

#include "runtime/api/handles.h"
#include "runtime/generate/sampler.h"
#include "schema/model_generated.h"

namespace {

using oxbow::Error;
using oxbow::missing;
using oxbow::outer;
using oxbow::read_options;
using oxbow::Status;
using oxbow::words;
using oxbow::write_info;

Status sampler_bytes(uint32_t vocabulary, const oxb_sampler_options* given, size_t* bytes,
                     Error* error) {
  oxb_sampler_options options = OXB_SAMPLER_OPTIONS_INIT;
  OXB_TRY(read_options("sampler options", given, &options, error));
  return oxb_sampler::measure(vocabulary, options, bytes, error);
}

Status sampler_create(uint32_t vocabulary, const oxb_sampler_options* given, void* memory,
                      size_t bytes, oxb_sampler** sampler, Error* error) {
  oxb_sampler_options options = OXB_SAMPLER_OPTIONS_INIT;
  OXB_TRY(read_options("sampler options", given, &options, error));
  return oxb_sampler::place(vocabulary, options, memory, bytes, sampler, error);
}

}  // namespace

oxb_sampler_options oxbow::advised_sampling(const Model& model) {
  oxb_sampler_options advised = OXB_SAMPLER_OPTIONS_INIT;
  if (const auto* generation = model.graph->generation(); generation != nullptr) {
    advised.temperature = generation->temperature().value_or(advised.temperature);
    advised.top_k = generation->top_k().value_or(advised.top_k);
    advised.top_p = generation->top_p().value_or(advised.top_p);
    advised.repetition_penalty =
        generation->repetition_penalty().value_or(advised.repetition_penalty);
  }
  return advised;
}

oxb_status oxb_sampler_options_advised(const oxb_model* model, oxb_sampler_options* options,
                                       oxb_error* error) {
  if (model == nullptr) return missing(error, "model");
  if (options == nullptr) return missing(error, "options");
  return outer(
      write_info("sampler options", oxbow::advised_sampling(model->model), options, words(error)));
}

oxb_status oxb_sampler_bytes(uint32_t vocabulary, const oxb_sampler_options* options, size_t* bytes,
                             oxb_error* error) {
  if (bytes == nullptr) return missing(error, "bytes");
  return outer(sampler_bytes(vocabulary, options, bytes, words(error)));
}

oxb_status oxb_sampler_create(uint32_t vocabulary, const oxb_sampler_options* options, void* memory,
                              size_t bytes, oxb_sampler** sampler, oxb_error* error) {
  if (sampler == nullptr) return missing(error, "sampler");
  *sampler = nullptr;
  if (memory == nullptr) return missing(error, "memory");
  return outer(sampler_create(vocabulary, options, memory, bytes, sampler, words(error)));
}

void oxb_sampler_destroy(oxb_sampler*) {}  // All it has lies in the caller's memory.

oxb_status oxb_sampler_accept(oxb_sampler* sampler, int32_t token, oxb_error* error) {
  if (sampler == nullptr) return missing(error, "sampler");
  sampler->accept(token);
  return OXB_OK;
}

oxb_status oxb_sampler_pick(oxb_sampler* sampler, const float* logits, size_t count, int32_t* token,
                            oxb_error* error) {
  if (sampler == nullptr) return missing(error, "sampler");
  if (logits == nullptr) return missing(error, "logits");
  if (token == nullptr) return missing(error, "token");
  if (count != sampler->vocabulary()) {
    return outer(oxbow::fail(words(error), Status::kInvalidArgument,
                             "sampler: %zu logits given; it picks from %zu", count,
                             sampler->vocabulary()));
  }
  return outer(sampler->pick(logits, token, words(error)));
}

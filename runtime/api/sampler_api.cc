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

Status sampler_bytes(uint32_t vocabulary, const oxb_sampler_options* given, size_t* bytes,
                     Error* error) {
  oxb_sampler_options options;
  OXB_TRY(read_options("sampler", given, oxb_sampler_options_init, &options, error));
  return oxb_sampler::measure(vocabulary, options, bytes, error);
}

Status sampler_create(uint32_t vocabulary, const oxb_sampler_options* given, void* memory,
                      size_t bytes, oxb_sampler** sampler, Error* error) {
  oxb_sampler_options options;
  OXB_TRY(read_options("sampler", given, oxb_sampler_options_init, &options, error));
  return oxb_sampler::place(vocabulary, options, memory, bytes, sampler, error);
}

}  // namespace

void oxbow::advised_sampling(const Model& model, oxb_sampler_options* options) {
  oxb_sampler_options_init(options);
  const auto* generation = model.graph->generation();
  if (generation == nullptr) return;
  options->temperature = generation->temperature().value_or(options->temperature);
  options->top_k = generation->top_k().value_or(options->top_k);
  options->top_p = generation->top_p().value_or(options->top_p);
  options->repetition_penalty =
      generation->repetition_penalty().value_or(options->repetition_penalty);
}

void oxb_sampler_options_init(oxb_sampler_options* options) {
  *options = {};
  options->size = sizeof(oxb_sampler_options);
  options->temperature = 0.8f;
  options->top_p = 1.0f;
  options->repetition_penalty = 1.0f;
  options->repetition_window = 64;
}

void oxb_sampler_options_advised(const oxb_model* model, oxb_sampler_options* options) {
  oxbow::advised_sampling(model->model, options);
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
  return outer(sampler_create(vocabulary, options, memory, bytes, sampler, words(error)));
}

void oxb_sampler_accept(oxb_sampler* sampler, int32_t token) {
  if (sampler != nullptr) sampler->accept(token);
}

oxb_status oxb_sampler_pick(oxb_sampler* sampler, const float* logits, int32_t* token,
                            oxb_error* error) {
  if (sampler == nullptr) return missing(error, "sampler");
  if (logits == nullptr) return missing(error, "logits");
  if (token == nullptr) return missing(error, "token");
  return outer(sampler->pick(logits, token, words(error)));
}

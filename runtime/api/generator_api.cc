// The C interface over oxb_generator: argument checks and conversions, no logic of its own.

#include "runtime/api/handles.h"
#include "runtime/api/log.h"
#include "runtime/generate/generator.h"
#include "schema/model_generated.h"

namespace {

using oxbow::Error;
using oxbow::inner;
using oxbow::missing;
using oxbow::outer;
using oxbow::Session;
using oxbow::StateForm;
using oxbow::Status;
using oxbow::words;

Status read_settings(const Session& session, const oxb_generator_options* given,
                     GeneratorSettings* settings, Error* error) {
  settings->options = OXB_GENERATOR_OPTIONS_INIT;
  OXB_TRY(oxbow::read_options("generator options", given, &settings->options, error));
  const oxb_sampler_options* sampling = settings->options.sampling;
  settings->sampling = OXB_SAMPLER_OPTIONS_INIT;
  if (sampling != nullptr) {
    return oxbow::read_options("sampler options", sampling, &settings->sampling, error);
  }
  settings->sampling = oxbow::advised_sampling(*session.model);
  // A translation has one text that is right, more or less.
  if (session.model->graph->task() == oxbow::schema::Task::Translate) {
    settings->sampling.temperature = 0.0f;
  }
  return Status::kOk;
}

Status generator_bytes(const Session& session, const oxb_generator_options* options, size_t* bytes,
                       Error* error) {
  GeneratorSettings settings;
  OXB_TRY(read_settings(session, options, &settings, error));
  return oxb_generator::measure(session, settings, bytes, error);
}

Status generator_create(Session& session, const oxb_generator_options* options, void* memory,
                        size_t bytes, oxb_generator** generator, Error* error) {
  GeneratorSettings settings;
  OXB_TRY(read_settings(session, options, &settings, error));
  return oxb_generator::place(session, settings, memory, bytes, generator, error);
}

/// The next piece, of which the log hears when it is the last.
Status generator_next(oxb_generator& generator, oxb_piece* piece, Error* error) {
  OXB_TRY(generator.next(piece, error));
  if (piece->end != OXB_END_NONE) oxbow::log_end(generator.model(), generator.progress());
  return Status::kOk;
}

Status generator_run(oxb_generator& generator, oxb_piece_callback callback, void* context,
                     int32_t* end, Error* error) {
  oxb_piece piece;
  do {
    OXB_TRY(generator_next(generator, &piece, error));
    if (callback != nullptr && callback(context, &piece) != 0 && piece.end == OXB_END_NONE) {
      generator.cancel();
    }
  } while (piece.end == OXB_END_NONE);
  if (end != nullptr) *end = piece.end;
  return Status::kOk;
}

}  // namespace

oxb_status oxb_generator_bytes(const oxb_session* session, const oxb_generator_options* options,
                               size_t* bytes, oxb_error* error) {
  if (session == nullptr) return missing(error, "session");
  if (bytes == nullptr) return missing(error, "bytes");
  return outer(generator_bytes(*inner(session), options, bytes, words(error)));
}

oxb_status oxb_generator_create(oxb_session* session, const oxb_generator_options* options,
                                void* memory, size_t bytes, oxb_generator** generator,
                                oxb_error* error) {
  if (generator == nullptr) return missing(error, "generator");
  *generator = nullptr;
  if (session == nullptr) return missing(error, "session");
  if (memory == nullptr) return missing(error, "memory");
  return outer(generator_create(*inner(session), options, memory, bytes, generator, words(error)));
}

void oxb_generator_destroy(oxb_generator* generator) {
  if (generator != nullptr) generator->~oxb_generator();
}

oxb_status oxb_generator_add_text(oxb_generator* generator, const char* text, size_t bytes,
                                  oxb_error* error) {
  if (generator == nullptr) return missing(error, "generator");
  if (text == nullptr && bytes != 0) return missing(error, "text");
  return outer(generator->add_text({text, bytes}, words(error)));
}

oxb_status oxb_generator_add_tokens(oxb_generator* generator, const int32_t* tokens, size_t count,
                                    oxb_error* error) {
  if (generator == nullptr) return missing(error, "generator");
  if (tokens == nullptr && count != 0) return missing(error, "tokens");
  return outer(generator->add_tokens({tokens, count}, words(error)));
}

oxb_status oxb_generator_add_message(oxb_generator* generator, int32_t role, const char* text,
                                     size_t bytes, oxb_error* error) {
  if (generator == nullptr) return missing(error, "generator");
  if (text == nullptr && bytes != 0) return missing(error, "text");
  return outer(generator->add_message(role, {text, bytes}, words(error)));
}

oxb_status oxb_generator_undo(oxb_generator* generator, oxb_error* error) {
  if (generator == nullptr) return missing(error, "generator");
  return outer(generator->undo(words(error)));
}

oxb_status oxb_generator_next(oxb_generator* generator, oxb_piece* piece, oxb_error* error) {
  if (generator == nullptr) return missing(error, "generator");
  if (piece == nullptr) return missing(error, "piece");
  oxb_piece next;
  const Status status = generator_next(*generator, &next, words(error));
  if (status != Status::kOk) return outer(status);
  return outer(oxbow::write_info("piece", next, piece, words(error)));
}

oxb_status oxb_generator_run(oxb_generator* generator, oxb_piece_callback callback, void* context,
                             int32_t* end, oxb_error* error) {
  if (generator == nullptr) return missing(error, "generator");
  return outer(generator_run(*generator, callback, context, end, words(error)));
}

oxb_status oxb_generator_cancel(oxb_generator* generator) {
  if (generator == nullptr) return missing(nullptr, "generator");
  generator->cancel();
  return OXB_OK;
}

oxb_status oxb_generator_reset(oxb_generator* generator, oxb_error* error) {
  if (generator == nullptr) return missing(error, "generator");
  generator->reset();
  return OXB_OK;
}

oxb_status oxb_generator_progress(const oxb_generator* generator, oxb_generation* progress,
                                  oxb_error* error) {
  if (generator == nullptr) return missing(error, "generator");
  if (progress == nullptr) return missing(error, "progress");
  return outer(oxbow::write_info("progress", generator->progress(), progress, words(error)));
}

oxb_status oxb_generator_set_constraint(oxb_generator* generator, int32_t constraint,
                                        oxb_error* error) {
  if (generator == nullptr) return missing(error, "generator");
  return outer(generator->set_constraint(constraint, words(error)));
}

oxb_status oxb_generator_set_choices(oxb_generator* generator, const char* const* texts,
                                     size_t count, oxb_error* error) {
  if (generator == nullptr) return missing(error, "generator");
  if (texts == nullptr) return missing(error, "texts");
  return outer(generator->set_choices({texts, count}, words(error)));
}

size_t oxb_generator_state_bytes(const oxb_generator* generator) {
  return generator == nullptr ? 0 : generator->state_bytes();
}

oxb_status oxb_generator_save(oxb_generator* generator, void* buffer, size_t bytes,
                              oxb_error* error) {
  if (generator == nullptr) return missing(error, "generator");
  if (buffer == nullptr) return missing(error, "buffer");
  return outer(
      generator->save(StateForm::kSaved, {static_cast<std::byte*>(buffer), bytes}, words(error)));
}

oxb_status oxb_generator_load(oxb_generator* generator, const void* buffer, size_t bytes,
                              oxb_error* error) {
  if (generator == nullptr) return missing(error, "generator");
  if (buffer == nullptr) return missing(error, "buffer");
  return outer(generator->load(StateForm::kSaved, {static_cast<const std::byte*>(buffer), bytes},
                               words(error)));
}

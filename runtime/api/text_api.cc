// The C interface over Encoder and Decoder: argument checks and conversions, no logic of its own.

#include <algorithm>

#include "runtime/api/handles.h"
#include "runtime/text/decoder.h"
#include "runtime/text/encoder.h"
#include "runtime/text/utf8.h"

namespace {

using oxbow::Error;
using oxbow::fail;
using oxbow::missing;
using oxbow::outer;
using oxbow::read_options;
using oxbow::Status;
using oxbow::words;

Status need_tokenizer(const oxb_model* model, Error* error) {
  if (model->model.tokenizer.table != nullptr) return Status::kOk;
  return fail(error, Status::kInvalidArgument,
              "the model has no tokenizer: convert it with --tokenizer");
}

Status encoder_bytes(const oxb_model* model, const oxb_encoder_options* given, size_t* bytes,
                     Error* error) {
  oxb_encoder_options options = OXB_ENCODER_OPTIONS_INIT;
  OXB_TRY(need_tokenizer(model, error));
  OXB_TRY(read_options("encoder options", given, &options, error));
  return oxb_encoder::measure(model->model.tokenizer, options, bytes, error);
}

Status encoder_create(const oxb_model* model, const oxb_encoder_options* given, void* memory,
                      size_t bytes, oxb_encoder** encoder, Error* error) {
  oxb_encoder_options options = OXB_ENCODER_OPTIONS_INIT;
  OXB_TRY(need_tokenizer(model, error));
  OXB_TRY(read_options("encoder options", given, &options, error));
  return oxb_encoder::place(model->model.tokenizer, options, memory, bytes, encoder, error);
}

Status decoder_create(const oxb_model* model, const oxb_decoder_options* given, void* memory,
                      size_t bytes, oxb_decoder** decoder, Error* error) {
  oxb_decoder_options options = OXB_DECODER_OPTIONS_INIT;
  OXB_TRY(need_tokenizer(model, error));
  OXB_TRY(read_options("decoder options", given, &options, error));
  return oxb_decoder::place(model->model.tokenizer, options, memory, bytes, decoder, error);
}

Status token_bytes(const oxbow::Tokenizer& tokenizer, int32_t id, std::span<char> room,
                   size_t* count, Error* error) {
  *count = 0;
  if (id < 0 || static_cast<uint32_t>(id) >= tokenizer.vocabulary) {
    return fail(error, Status::kInvalidArgument, "token %d is not in the vocabulary of %u", id,
                static_cast<unsigned>(tokenizer.vocabulary));
  }
  const auto token = static_cast<uint32_t>(id);
  if (token >= tokenizer.tokens) return Status::kOk;
  char character[oxbow::kMaxCharacterBytes] = {};
  const auto token_text = tokenizer.def->token_text;
  const std::span<const char> text = token_text == nullptr
                                         ? tokenizer.text(token)
                                         : token_text(tokenizer, token, std::span(character));
  *count = text.size();
  std::copy_n(text.data(), std::min(text.size(), room.size()), room.data());
  return Status::kOk;
}

const char* text_or_null(const flatbuffers::String* text) {
  return text == nullptr ? nullptr : text->c_str();
}

}  // namespace

oxb_status oxb_encoder_bytes(const oxb_model* model, const oxb_encoder_options* options,
                             size_t* bytes, oxb_error* error) {
  if (model == nullptr) return missing(error, "model");
  if (bytes == nullptr) return missing(error, "bytes");
  return outer(encoder_bytes(model, options, bytes, words(error)));
}

oxb_status oxb_encoder_create(const oxb_model* model, const oxb_encoder_options* options,
                              void* memory, size_t bytes, oxb_encoder** encoder, oxb_error* error) {
  if (model == nullptr) return missing(error, "model");
  if (encoder == nullptr) return missing(error, "encoder");
  *encoder = nullptr;
  if (memory == nullptr) return missing(error, "memory");
  return outer(encoder_create(model, options, memory, bytes, encoder, words(error)));
}

void oxb_encoder_destroy(oxb_encoder*) {}  // All it has lies in the caller's memory.

oxb_status oxb_encoder_run(oxb_encoder* encoder, const char* text, size_t bytes, oxb_bool last,
                           int32_t* ids, size_t capacity, size_t* count, size_t* consumed,
                           oxb_error* error) {
  if (encoder == nullptr) return missing(error, "encoder");
  if ((text == nullptr && bytes > 0) || (ids == nullptr && capacity > 0) || count == nullptr ||
      consumed == nullptr) {
    return missing(error, "text, ids, count or consumed");
  }
  oxbow::Encoded encoded;
  const Status status =
      encoder->run({text, bytes}, last != 0, {ids, capacity}, &encoded, words(error));
  *count = encoded.count;
  *consumed = encoded.consumed;
  return outer(status);
}

oxb_status oxb_encoder_reset(oxb_encoder* encoder, oxb_error* error) {
  if (encoder == nullptr) return missing(error, "encoder");
  encoder->reset();
  return OXB_OK;
}

oxb_status oxb_decoder_bytes(const oxb_model* model, const oxb_decoder_options* options,
                             size_t* bytes, oxb_error* error) {
  if (model == nullptr) return missing(error, "model");
  if (bytes == nullptr) return missing(error, "bytes");
  oxb_decoder_options read = OXB_DECODER_OPTIONS_INIT;
  *bytes = oxb_decoder::bytes();
  return outer(read_options("decoder options", options, &read, words(error)));
}

oxb_status oxb_decoder_create(const oxb_model* model, const oxb_decoder_options* options,
                              void* memory, size_t bytes, oxb_decoder** decoder, oxb_error* error) {
  if (model == nullptr) return missing(error, "model");
  if (decoder == nullptr) return missing(error, "decoder");
  *decoder = nullptr;
  if (memory == nullptr) return missing(error, "memory");
  return outer(decoder_create(model, options, memory, bytes, decoder, words(error)));
}

void oxb_decoder_destroy(oxb_decoder*) {}

size_t oxb_decoder_most_text(const oxb_decoder* decoder) {
  return decoder == nullptr ? 0 : decoder->most_text();
}

oxb_status oxb_decoder_run(oxb_decoder* decoder, int32_t id, char* text, size_t capacity,
                           size_t* count, oxb_error* error) {
  if (decoder == nullptr) return missing(error, "decoder");
  if (text == nullptr || count == nullptr) return missing(error, "text or count");
  return outer(decoder->run(id, {text, capacity}, count, words(error)));
}

oxb_status oxb_decoder_finish(oxb_decoder* decoder, char* text, size_t capacity, size_t* count,
                              oxb_error* error) {
  if (decoder == nullptr) return missing(error, "decoder");
  if (text == nullptr || count == nullptr) return missing(error, "text or count");
  return outer(decoder->finish({text, capacity}, count, words(error)));
}

oxb_status oxb_model_token_bytes(const oxb_model* model, int32_t id, char* bytes, size_t capacity,
                                 size_t* count, oxb_error* error) {
  if (model == nullptr) return missing(error, "model");
  if ((bytes == nullptr && capacity > 0) || count == nullptr) {
    return missing(error, "bytes or count");
  }
  if (const Status status = need_tokenizer(model, words(error)); status != Status::kOk) {
    return outer(status);
  }
  return outer(token_bytes(model->model.tokenizer, id, {bytes, capacity}, count, words(error)));
}

const char* oxb_model_chat_before(const oxb_model* model) {
  if (model == nullptr) return nullptr;
  const oxbow::schema::Tokenizer* table = model->model.tokenizer.table;
  return table == nullptr ? nullptr : text_or_null(table->chat_before());
}

const char* oxb_model_chat_after(const oxb_model* model) {
  if (model == nullptr) return nullptr;
  const oxbow::schema::Tokenizer* table = model->model.tokenizer.table;
  return table == nullptr ? nullptr : text_or_null(table->chat_after());
}

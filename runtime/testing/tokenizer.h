#pragma once

// Tokenizers for tests, straight from their tables, and whole texts through them.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/decoder.h"
#include "runtime/text/encoder.h"

namespace oxbow {

/// A tokenizer whose tables this object owns.
class OwnedTokenizer {
 public:
  OwnedTokenizer(const schema::TokenizerT& table, uint32_t vocabulary) {
    builder_.Finish(schema::CreateTokenizer(builder_, &table));
    const auto* root = flatbuffers::GetRoot<schema::Tokenizer>(builder_.GetBufferPointer());
    status_ = open_tokenizer(root, vocabulary, &tokenizer_, &error_);
  }
  ~OwnedTokenizer() { close_tokenizer(&tokenizer_); }
  OwnedTokenizer(const OwnedTokenizer&) = delete;
  OwnedTokenizer& operator=(const OwnedTokenizer&) = delete;

  Status status() const { return status_; }
  const char* error() const { return error_.text; }
  const Tokenizer& operator*() const { return tokenizer_; }

 private:
  flatbuffers::FlatBufferBuilder builder_;
  Tokenizer tokenizer_;
  Status status_ = Status::kOk;
  Error error_;
};

struct EncodeOptions : oxb_encoder_options {
  EncodeOptions() : oxb_encoder_options OXB_ENCODER_OPTIONS_INIT { add_template = 0; }
  /// Bytes of the text that are newly there at each call, and room for ids; 0: all at once.
  size_t chunk = 0;
  size_t room = 0;
};

/// All ids of a text. Fails the test when the encoder does, or stands still.
inline std::vector<int32_t> encode_all(const Tokenizer& tokenizer, std::string_view text,
                                       const EncodeOptions& options = {}) {
  size_t bytes = 0;
  Error error;
  oxb_encoder* encoder = nullptr;
  EXPECT_EQ(oxb_encoder::measure(tokenizer, options, &bytes, &error), Status::kOk) << error.text;
  std::vector<std::byte> memory(bytes);
  if (oxb_encoder::place(tokenizer, options, memory.data(), bytes, &encoder, &error) !=
      Status::kOk) {
    ADD_FAILURE() << error.text;
    return {};
  }
  std::vector<int32_t> all;
  std::vector<int32_t> ids(options.room == 0 ? text.size() + 64 : options.room);
  size_t taken = 0;
  size_t there = options.chunk == 0 ? text.size() : 0;
  for (;;) {
    there = std::min(text.size(), there + options.chunk);
    const bool last = there == text.size();
    Encoded encoded;
    const Status status =
        encoder->run({text.data() + taken, there - taken}, last, ids, &encoded, &error);
    if (status != Status::kOk) {
      ADD_FAILURE() << "byte " << taken << ": " << error.text;
      return all;
    }
    taken += encoded.consumed;
    all.insert(all.end(), ids.begin(), ids.begin() + static_cast<ptrdiff_t>(encoded.count));
    if (last && encoded.count < ids.size()) break;
  }
  EXPECT_EQ(taken, text.size());
  return all;
}

/// The text of all ids.
inline std::string decode_all(const Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                              bool skip_special = false) {
  oxb_decoder_options options = OXB_DECODER_OPTIONS_INIT;
  options.skip_special = skip_special ? 1 : 0;
  std::vector<std::byte> memory(oxb_decoder::bytes());
  Error error;
  oxb_decoder* decoder = nullptr;
  EXPECT_EQ(oxb_decoder::place(tokenizer, options, memory.data(), memory.size(), &decoder, &error),
            Status::kOk);
  std::string all;
  std::vector<char> text(decoder->most_text());
  size_t count = 0;
  for (const int32_t id : ids) {
    EXPECT_EQ(decoder->run(id, text, &count, &error), Status::kOk) << error.text;
    all.append(text.data(), count);
  }
  EXPECT_EQ(decoder->finish(text, &count, &error), Status::kOk) << error.text;
  return all.append(text.data(), count);
}

}  // namespace oxbow

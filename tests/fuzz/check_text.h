#pragma once

// What every tokenizer must stand: text of any bytes in pieces of any size gives the same ids, all of
// the vocabulary, and ids of any kind give whole characters. Buffers have their exact sizes, so that
// the sanitizer sees the first byte beyond them. A broken promise ends the program.

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "runtime/text/decoder.h"
#include "runtime/text/encoder.h"
#include "runtime/text/utf8.h"
#include "tests/fuzz/broken.h"

namespace oxbow::testing {

/// How much of a text is newly there at each call, and how many ids may come; 0: all.
struct Pieces {
  size_t bytes = 0;
  size_t room = 0;
};

struct EncodedText {
  bool good = true;
  std::vector<int32_t> ids;
};

inline EncodedText encode_text(const Tokenizer& tokenizer, const oxb_encoder_options& options,
                               std::span<const char> text, const Pieces& most, uint64_t seed) {
  size_t bytes = 0;
  Error error;
  oxb_encoder* encoder = nullptr;
  if (oxb_encoder::measure(tokenizer, options, &bytes, &error) != Status::kOk) {
    broken("an encoder has a size");
  }
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  if (oxb_encoder::place(tokenizer, options, memory.get(), bytes, &encoder, &error) !=
      Status::kOk) {
    broken("an encoder fits its size");
  }
  std::mt19937_64 random(seed);
  EncodedText out;
  for (size_t taken = 0, there = 0;;) {
    there =
        most.bytes == 0 ? text.size() : std::min(text.size(), there + 1 + random() % most.bytes);
    const bool last = there == text.size();
    const size_t room = most.room == 0 ? text.size() + 64 : 1 + random() % most.room;
    const std::span<const char> left = text.subspan(taken, there - taken);
    const auto piece = std::make_unique_for_overwrite<char[]>(left.size());
    std::copy(left.begin(), left.end(), piece.get());
    const auto ids = std::make_unique_for_overwrite<int32_t[]>(room);
    Encoded encoded;
    const Status status =
        encoder->run({piece.get(), left.size()}, last, {ids.get(), room}, &encoded, &error);
    if (encoded.count > room || encoded.consumed > left.size())
      broken("an encoder keeps to limits");
    out.ids.insert(out.ids.end(), ids.get(), ids.get() + encoded.count);
    taken += encoded.consumed;
    if (status != Status::kOk) {
      if (error.text[0] == '\0') broken("a failure has words");
      out.good = false;
      return out;
    }
    if (last && taken == text.size() && encoded.count < room) break;
    if (last && encoded.count == 0 && encoded.consumed == 0) broken("all of a text is taken");
  }
  for (const int32_t id : out.ids) {
    if (id < 0 || static_cast<uint32_t>(id) >= tokenizer.vocabulary) {
      broken("an id is of the vocabulary:", std::to_string(id));
    }
  }
  return out;
}

inline bool is_whole_text(std::span<const char> text) {
  while (!text.empty()) {
    const Utf8Character next = read_utf8(text);
    if (next.kind != Utf8Character::Kind::kCharacter) return false;
    text = text.subspan(next.bytes);
  }
  return true;
}

/// The text of ids, each of which is below the vocabulary's size.
inline std::string decode_text(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  oxb_decoder_options options = OXB_DECODER_OPTIONS_INIT;
  options.skip_special = 0;
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(oxb_decoder::bytes());
  Error error;
  oxb_decoder* decoder = nullptr;
  if (oxb_decoder::place(tokenizer, options, memory.get(), oxb_decoder::bytes(), &decoder,
                         &error) != Status::kOk) {
    broken("a decoder fits its size");
  }
  std::string all;
  const size_t room = decoder->most_text();
  const auto text = std::make_unique_for_overwrite<char[]>(room);
  const auto add = [&](Status status, size_t count) {
    if (status != Status::kOk || count > room) broken("a token of the vocabulary has a text");
    if (!is_whole_text({text.get(), count})) broken("text comes in whole characters");
    all.append(text.get(), count);
  };
  size_t count = 0;
  for (const int32_t id : ids) {
    const Status status = decoder->run(id, {text.get(), room}, &count, &error);
    add(status, count);
  }
  const Status status = decoder->finish({text.get(), room}, &count, &error);
  add(status, count);
  return all;
}

/// What a text becomes when each malformed part of it is replaced.
inline std::string repaired_text(std::span<const char> text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Character next = read_utf8(text);
    const bool good = next.kind == Utf8Character::Kind::kCharacter;
    const size_t bytes = good ? next.bytes : malformed_bytes(text);
    out += good ? std::string(text.data(), bytes) : "\xef\xbf\xbd";
    text = text.subspan(bytes);
  }
  return out;
}

/// All promises for one text. `seed` chooses the pieces.
inline void check_text(const Tokenizer& tokenizer, oxb_encoder_options options,
                       std::span<const char> text, uint64_t seed) {
  const EncodedText whole = encode_text(tokenizer, options, text, {}, seed);
  for (const Pieces& pieces : {Pieces{1, 1}, Pieces{7, 3}, Pieces{300, 40}}) {
    const EncodedText same = encode_text(tokenizer, options, text, pieces, seed);
    if (same.good != whole.good || same.ids != whole.ids) {
      broken("pieces give the same ids", std::to_string(pieces.bytes) + ": " +
                                             std::to_string(whole.ids.size()) + " and " +
                                             std::to_string(same.ids.size()) + " ids");
    }
  }
  decode_text(tokenizer, whole.ids);
}

}  // namespace oxbow::testing

#pragma once

// What the two kinds of SentencePiece share: the text as their pieces know it, and text from tokens.
//
//   text ──▶ normalise(): characters replaced, spaces marked by U+2581 ──▶ buffer ──▶ pieces ──▶ ids
//
//   scratch:  char buffer[N] | what the kind keeps for each byte of it     N: see buffer_bytes()
//
// The buffer is emptied from the front, up to a place where the pieces before it depend on nothing
// that may still come. How text comes in does not change what is in the buffer, nor where it is cut.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/text/encoder.h"
#include "runtime/text/tokenizer.h"

namespace oxbow {

inline constexpr std::string_view kSpaceMark = "\xe2\x96\x81";

/// Of the buffer: a word, and what must be seen behind a place to know all pieces that begin there.
size_t buffer_bytes(const Tokenizer& tokenizer, size_t max_word_bytes);

/// Bytes of a character, told by its first one, as SentencePiece counts them.
inline size_t character_bytes(char first) {
  return "\1\1\1\1\1\1\1\1\1\1\1\1\2\2\3\4"[static_cast<uint8_t>(first) >> 4];
}

/// Whether a piece that is whole wherever it occurs may begin with this byte. Most do not: ask before
/// searching for one.
inline bool may_begin_whole(const Tokenizer& tokenizer, char byte) {
  const auto first = static_cast<uint8_t>(byte);
  return (tokenizer.traits.whole_first[first / 64] >> first % 64 & 1) != 0;
}

/// The longest of the pieces that `text` begins with and that are whole wherever they occur; kNoPiece:
/// none. `open`: the text ended where a longer one might have gone on.
uint32_t find_whole_piece(const Tokenizer& tokenizer, std::span<const char> text, bool* open);

/// Takes as much text as there is room for in the buffer, and sets `complete` when that was all.
/// Returns how many bytes were taken; some may wait in `rest` and `held_spaces`.
size_t normalise(const Tokenizer& tokenizer, std::span<const char> text, bool last,
                 std::span<char> buffer, SentencePieceState& state);

/// Moves what lies behind the first `count` bytes of the buffer to its front.
void drop_front(std::span<char> buffer, size_t count, SentencePieceState& state);

/// Adds the tokens of text that no piece stands for. The text has at most as many bytes as there is
/// room for ids.
void add_unknown(EncoderState& state, std::span<const char> text);

/// "text, byte 0: a word of more than ... bytes".
Status word_too_long(const EncoderState& state, Error* error);

/// The part of TokenizerDef::check() that is the same for both.
Status check_sentencepiece(const Tokenizer& tokenizer, Error* error);
PieceTraits find_piece_traits(const Tokenizer& tokenizer);

/// TokenizerDef::decode().
void decode_sentencepiece(DecoderState& state, uint32_t token);

}  // namespace oxbow

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

/// What the texts of the pieces tell.
struct PieceTraits {
  /// No piece has the mark of a space behind anything else, or anything else behind the mark: text can
  /// be cut there.
  bool marks_begin_words = true;
  bool marks_end_words = true;
  /// Pieces differ by their place in a word.
  bool has_affixes = false;
  /// Bits for the first bytes of pieces that are whole wherever they occur.
  uint64_t whole_first[4] = {};
};
inline const PieceTraits& piece_traits(const Tokenizer& tokenizer) {
  return tokenizer.kind.as<PieceTraits>();
}

/// What is between the text that was taken and the ids that were made.
struct SentencePieceState {
  /// A special token stands before this part of the text.
  bool behind_token = false;
  /// Something but spaces was seen, and what was seen last is a space.
  bool begun = false;
  bool after_space = false;
  /// Marks of spaces that are not in the buffer yet: they go when the text ends here.
  size_t held_spaces = 0;
  /// What is not in the buffer yet of the last thing that was seen.
  std::span<const char> rest;
  /// The text has ended, and all of it is in the buffer.
  bool complete = false;
  /// There was no room in the buffer for what comes next.
  bool full = false;

  /// Bytes in the buffer; those up to `done` were looked at.
  size_t filled = 0;
  size_t done = 0;
  /// Unigram: something was looked at, and the furthest end of a piece that was seen.
  bool started = false;
  size_t frontier = 0;
  /// Unigram: where the next piece to be given out begins and ends, and where the last of them ends.
  /// Bpe: which symbols of a word are to be given out, and where the next of them begins.
  size_t emit_from = 0;
  size_t emit_to = 0;
  size_t emit_end = 0;
  /// The last id given out stands for unknown text, and so does all that follows it at once.
  bool after_unknown = false;
};

/// What is kept while text is cut into words that are texts of their own (Tokenizer.words).
struct WordsState {
  PatternState cutting;
  /// Nothing of the text was taken, and nothing of the word that is in the buffer.
  bool text_start = true;
  bool word_start = true;
};

struct PiecesState {
  SentencePieceState text;
  WordsState words;
};

inline SentencePieceState& sentencepiece_state(EncoderState& state) {
  return state.kind.as<PiecesState>().text;
}

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
  return (piece_traits(tokenizer).whole_first[first / 64] >> first % 64 & 1) != 0;
}

/// The longest of the pieces that `text` begins with and that are whole wherever they occur; kNoPiece:
/// none. `open`: the text ended where a longer one might have gone on.
uint32_t find_whole_piece(const Tokenizer& tokenizer, std::span<const char> text, bool* open);

/// Takes as much text as there is room for in the buffer, and sets `complete` when that was all.
/// Returns how many bytes were taken; some may wait in `rest` and `held_spaces`.
size_t normalise(const Tokenizer& tokenizer, std::span<const char> text, bool last,
                 std::span<char> buffer, SentencePieceState& state);

/// Fills the buffer with what comes next: of the text, or of a word of it, whose end sets `complete` then.
size_t fill_buffer(EncoderState& state, std::span<const char> text, bool last,
                   std::span<char> buffer);

/// Moves what lies behind the first `count` bytes of the buffer to its front.
void drop_front(std::span<char> buffer, size_t count, SentencePieceState& state);

/// Adds the tokens of text that no piece stands for. The text has at most as many bytes as there is
/// room for ids.
void add_unknown(EncoderState& state, std::span<const char> text);

/// "a stretch of more than ... bytes whose tokens depend on what follows".
Status word_too_long(const EncoderState& state, Error* error);

/// The part of TokenizerDef that is the same for both. The check also finds the traits of the pieces.
Status check_sentencepiece(Tokenizer& tokenizer, Error* error);
void start_sentencepiece(EncoderState& state);
void sentencepiece_behind_token(EncoderState& state);
void decode_sentencepiece(DecoderState& state, uint32_t token);

}  // namespace oxbow

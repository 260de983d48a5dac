#pragma once

// A model's tokenizer, verified: views of the tables in the file, and the functions of its kind. Read
// only after open, so any number of encoders and decoders share one.
//
//   text ──▶ Encoder: added tokens are taken out ──▶ kind's encode(): a word at a time ──▶ ids
//   ids  ──▶ Decoder: kind's decode(): bytes of a token ──▶ whole characters only ──▶ text

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/text/tables/char_classes.h"
#include "runtime/text/tables/char_map.h"
#include "runtime/text/tables/merges.h"
#include "runtime/text/tables/trie.h"

namespace oxbow {

struct Tokenizer;
struct EncoderState;
struct DecoderState;

/// What a kind of tokenizer consists of: one line in tokenizer.cc, one file beside it.
struct TokenizerDef {
  schema::TokenizerKind kind;
  const char* name;
  /// Completes open_tokenizer(): what this kind needs is there and consistent.
  Status (*check)(const Tokenizer& tokenizer, Error* error);
  /// Bytes of EncoderState::scratch, for words of at most this many bytes; null: none.
  size_t (*scratch_bytes)(const Tokenizer& tokenizer, size_t max_word_bytes);
  /// Takes the next piece of text whose tokens do not depend on what follows it, tells how many bytes
  /// it had and adds its tokens to EncoderState::pending. `last`: nothing follows `text`. Takes
  /// nothing, without failing, when it must see more of the text first; never when `last` is set and
  /// there is text. With `last` and no text left, adds what was held back. On failure *consumed
  /// tells where the offending place begins.
  Status (*encode)(EncoderState& state, std::span<const char> text, bool last, size_t* consumed,
                   Error* error);
  /// Adds the bytes of a token, which is below Tokenizer::tokens, to DecoderState::out.
  void (*decode)(DecoderState& state, uint32_t token);
};

/// SentencePiece: what the texts of the pieces tell.
struct PieceTraits {
  /// No piece has the mark of a space behind anything else, or anything else behind the mark: text can
  /// be cut there.
  bool marks_begin_words = true;
  bool marks_end_words = true;
  /// Bits for the first bytes of pieces that are whole wherever they occur.
  uint64_t whole_first[4] = {};
};

struct Tokenizer {
  /// Null: the model has none.
  const schema::Tokenizer* table = nullptr;
  const TokenizerDef* def = nullptr;
  /// Ids the model takes; those from `tokens` on have no text.
  uint32_t vocabulary = 0;
  uint32_t tokens = 0;
  /// Tokens and what follows them: see the schema.
  uint32_t pieces = 0;
  std::span<const uint8_t> texts;
  std::span<const uint32_t> text_ends;
  std::span<const uint8_t> roles;
  Trie trie;
  Trie added_trie;
  /// Tokens of it that are not looked for plainly, sorted by token.
  std::span<const schema::AddedToken> added;
  /// For both passes of the search for added tokens: whether one begins with this byte.
  bool added_begins[2][256] = {};
  /// One of them takes the white space before it.
  bool added_strip_left = false;
  MergeTable merges;
  CharClasses classes;
  CharMap char_map;
  PieceTraits traits;
  /// Of all pieces.
  size_t longest_text = 0;
  /// Char: ids sorted by code point. Allocated at open.
  std::span<uint32_t> char_order;

  std::span<const char> text(uint32_t piece) const {
    const uint32_t begin = piece == 0 ? 0 : text_ends[piece - 1];
    return {reinterpret_cast<const char*>(texts.data()) + begin, text_ends[piece] - begin};
  }
  schema::TokenRole role(uint32_t piece) const {
    return static_cast<schema::TokenRole>(roles[piece]);
  }
  /// The token a piece stands for.
  int32_t token(uint32_t piece) const {
    return static_cast<int32_t>(piece < tokens ? piece : table->aliases()->Get(piece - tokens));
  }
};

/// Verifies the tables of `table` for a model of `vocabulary` tokens and fills `tokenizer`.
Status open_tokenizer(const schema::Tokenizer* table, uint32_t vocabulary, Tokenizer* tokenizer,
                      Error* error);
void close_tokenizer(Tokenizer* tokenizer);

}  // namespace oxbow

#pragma once

// A model's tokenizer, verified: views of the tables in the file, and the functions of its kind. Read
// only after open, so any number of encoders and decoders share one.
//
//   text ──▶ Encoder: added tokens are taken out ──▶ kind's encode(): a word at a time ──▶ ids
//   ids  ──▶ Decoder: kind's decode(): bytes of a token ──▶ whole characters only ──▶ text

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>

#include "runtime/api/oxbow.h"
#include "runtime/base/status.h"
#include "runtime/text/normalizer.h"
#include "runtime/text/pattern.h"
#include "runtime/text/tables/char_classes.h"
#include "runtime/text/tables/char_map.h"
#include "runtime/text/tables/merges.h"
#include "runtime/text/tables/trie.h"

namespace oxbow {

struct Tokenizer;
struct EncoderState;
struct DecoderState;

/// Room for what only one kind knows of: a struct of its own, made once and read from then on.
template <size_t kBytes>
class KindRoom {
 public:
  template <typename T>
  T& make() {
    static_assert(sizeof(T) <= kBytes && alignof(T) <= alignof(std::max_align_t));
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
    return *new (bytes_) T();
  }
  template <typename T>
  T& as() {
    return *std::launder(reinterpret_cast<T*>(bytes_));
  }
  template <typename T>
  const T& as() const {
    return *std::launder(reinterpret_cast<const T*>(bytes_));
  }

 private:
  alignas(std::max_align_t) std::byte bytes_[kBytes] = {};
};

/// What a kind of tokenizer consists of. kinds/<name>.cc defines <name>_tokenizer; the build finds it by its name.
struct TokenizerDef {
  /// Its number in files, and in the C interface.
  schema::TokenizerKind kind = {};
  oxb_tokenizer_kind public_kind = OXB_TOKENIZER_NONE;
  const char* name = nullptr;
  /// Sets `tokens`, `pieces` and `longest_text`. Null: they are those of the texts in the file.
  Status (*open)(Tokenizer& tokenizer, Error* error) = nullptr;
  /// Completes open_tokenizer(): what this kind needs is there and consistent.
  Status (*check)(Tokenizer& tokenizer, Error* error) = nullptr;
  /// Bytes of EncoderState::scratch, for words of at most this many bytes; null: none.
  size_t (*scratch_bytes)(const Tokenizer& tokenizer, size_t max_word_bytes) = nullptr;
  /// A text begins: makes what the kind keeps in EncoderState::kind. Null: it keeps nothing.
  void (*start)(EncoderState& state) = nullptr;
  /// An added token was taken, and text may follow it. Null: that is nothing special.
  void (*behind_token)(EncoderState& state) = nullptr;
  /// Takes the next piece of text whose tokens do not depend on what follows it, tells how many bytes
  /// it had and adds its tokens to EncoderState::pending. `last`: nothing follows `text`. Takes
  /// nothing, without failing, when it must see more of the text first; never when `last` is set and
  /// there is text. With `last` and no text left, adds what was held back. On failure *consumed
  /// tells where the offending place begins.
  Status (*encode)(EncoderState& state, std::span<const char> text, bool last, size_t* consumed,
                   Error* error) = nullptr;
  /// Adds the bytes of a token, which is below Tokenizer::tokens, to DecoderState::out.
  void (*decode)(DecoderState& state, uint32_t token) = nullptr;
  /// The bytes a token stands for by itself, in `room` if they are nowhere else. Null: the text of its piece.
  std::span<const char> (*token_text)(const Tokenizer& tokenizer, uint32_t token,
                                      std::span<char> room) = nullptr;
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
  /// How words are cut; none: as the kind says.
  PatternSet patterns;
  /// What is done with text before.
  NormalTables steps[kMaxNormalSteps];
  size_t step_count = 0;
  /// Of all pieces.
  size_t longest_text = 0;
  /// What the kind found out at open.
  KindRoom<64> kind;
  /// Numbers that the kind allocated at open with new[], or none.
  std::span<uint32_t> numbers;

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

/// Null: this library does not know it.
const TokenizerDef* find_tokenizer_def(schema::TokenizerKind kind);

/// Verifies the tables of `table` for a model of `vocabulary` tokens and fills `tokenizer`.
Status open_tokenizer(const schema::Tokenizer* table, uint32_t vocabulary, Tokenizer* tokenizer,
                      Error* error);
void close_tokenizer(Tokenizer* tokenizer);

}  // namespace oxbow

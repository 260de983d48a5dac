// SentencePiece's byte-pair encoding: the characters of a word are joined. SentencePiece joins those of
// a whole line; but where no piece reaches across a place, both sides of it are joined as if the other
// were not there. Such places are where words begin or end, in the vocabularies that are in use.

#include <algorithm>
#include <cstring>

#include "runtime/text/bpe.h"
#include "runtime/text/decoder.h"
#include "runtime/text/encoder.h"
#include "runtime/text/sentencepiece.h"
#include "runtime/text/utf8.h"

namespace oxbow {
namespace {

/// scratch:  Symbol symbols[N] | of merge_symbols() | char buffer[N]
struct Parts {
  std::span<Symbol> symbols;
  std::span<std::byte> merging;
  std::span<char> buffer;

  explicit Parts(EncoderState& state) {
    const size_t count = buffer_bytes(*state.tokenizer, state.word.size());
    const size_t merging_bytes = merge_scratch_bytes(count);
    symbols = {reinterpret_cast<Symbol*>(state.scratch.data()), count};
    merging = state.scratch.subspan(count * sizeof(Symbol), merging_bytes);
    buffer = {reinterpret_cast<char*>(merging.data() + merging_bytes), count};
  }
};

size_t scratch_bytes(const Tokenizer& tokenizer, size_t max_word_bytes) {
  const size_t count = buffer_bytes(tokenizer, max_word_bytes);
  return count * sizeof(Symbol) + merge_scratch_bytes(count) + count;
}

bool is_mark(const char* at) { return std::memcmp(at, kSpaceMark.data(), kSpaceMark.size()) == 0; }

/// The end of the word that begins at `done`; `done` itself when it cannot be seen yet.
size_t find_word(const PieceTraits& traits, const char* text, SentencePieceState& state) {
  const size_t mark = kSpaceMark.size();
  if (traits.has_affixes) return state.complete ? state.filled : state.done;
  size_t at = std::max(state.frontier, state.done + 1);
  // One mark must be seen behind the place, and no byte of one before it is lost.
  for (; at + mark <= state.filled; ++at) {
    if (text[at] != kSpaceMark[0] && text[at - 1] != kSpaceMark[2]) continue;
    const bool behind = is_mark(text + at);
    const bool before = at >= state.done + mark && is_mark(text + at - mark);
    if (behind != before && (behind ? traits.marks_begin_words : traits.marks_end_words)) break;
  }
  state.frontier = at;
  if (at + mark <= state.filled) return at;
  return state.complete ? state.filled : state.done;
}

/// The last place in the full buffer that no piece reaches across; 0: there is none.
size_t find_cut(const Tokenizer& tokenizer, const char* text, const SentencePieceState& state) {
  const size_t seen = std::max(tokenizer.longest_text, kMaxCharacterBytes);
  size_t cut = 0;
  size_t reach = 0;
  for (size_t at = 0; at < state.filled && state.filled - at >= seen;) {
    if (reach <= at) cut = at;
    Trie::Match match;
    tokenizer.trie.longest({text + at, state.filled - at}, &match);
    const size_t end = at + character_bytes(text[at]);
    reach = std::max({reach, end, at + match.bytes});
    at = end;
  }
  return cut;
}

/// Goes on by all of some bytes, unless no piece does.
bool step(Trie::Walk& walk, std::span<const char> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [&](char byte) { return walk.step(byte); });
}

std::span<const char> view(const flatbuffers::String* text) {
  return text == nullptr ? std::span<const char>() : std::span(text->data(), text->size());
}

/// The first character of a text, with what pieces have there when it begins a word, or does not, and when it ends one.
Symbol find_character(const Tokenizer& tokenizer, std::span<const char> text, bool begins,
                      bool ends) {
  const size_t bytes = std::min(character_bytes(text[0]), text.size());
  Trie::Walk walk = tokenizer.trie.walk();
  const bool found = (begins || step(walk, view(tokenizer.table->inner_prefix()))) &&
                     step(walk, text.first(bytes)) &&
                     (!ends || step(walk, view(tokenizer.table->word_suffix()))) && walk.ends() &&
                     walk.value() < tokenizer.pieces;
  return {found ? walk.value() : kNoPiece, static_cast<uint32_t>(bytes)};
}

/// A word that is a token as it stands.
uint32_t find_whole_word(const Tokenizer& tokenizer, std::span<const char> text) {
  Trie::Walk walk = tokenizer.trie.walk();
  const bool found = step(walk, text) && walk.ends() && walk.value() < tokenizer.pieces;
  return found ? walk.value() : kNoPiece;
}

/// Makes the symbols of the text up to `end` those to be given out.
void join_word(const Tokenizer& tokenizer, const Parts& parts, size_t end,
               SentencePieceState& state) {
  const bool has_affixes = piece_traits(tokenizer).has_affixes;
  const bool keeps_unknown =
      tokenizer.table->unknown_token() >= 0 || tokenizer.table->byte_pieces() != nullptr;
  size_t count = 0;
  size_t at = state.done;
  if (tokenizer.table->words() && tokenizer.table->whole_words() && at < end) {
    const uint32_t whole = find_whole_word(tokenizer, parts.buffer.subspan(at, end - at));
    if (whole != kNoPiece) {
      parts.symbols[count++] = {whole, static_cast<uint32_t>(end - at)};
      at = end;
    }
  }
  while (at < end) {
    const std::span<const char> left = parts.buffer.subspan(at, end - at);
    const size_t bytes = std::min(character_bytes(left[0]), left.size());
    Symbol symbol = find_character(tokenizer, left, !has_affixes || at == state.done,
                                   has_affixes && bytes == left.size());
    if (may_begin_whole(tokenizer, left[0])) {
      bool open = false;
      const uint32_t whole = find_whole_piece(tokenizer, left, &open);
      if (whole != kNoPiece) {
        symbol = {whole, static_cast<uint32_t>(tokenizer.text(whole).size())};
      }
    }
    // Without a token for what is unknown it is as if it were not there.
    if (symbol.piece != kNoPiece || keeps_unknown) parts.symbols[count++] = symbol;
    at += symbol.bytes;
  }
  state.emit_from = 0;
  state.emit_to = merge_symbols(tokenizer.merges, parts.symbols.first(count), parts.merging);
  state.emit_end = state.done;
  state.done = end;
}

/// Gives out as many of the symbols as there is room for.
void give(EncoderState& state, const Parts& parts) {
  SentencePieceState& s = sentencepiece_state(state);
  const Tokenizer& tokenizer = *state.tokenizer;
  const int32_t unknown = tokenizer.table->unknown_token();
  while (s.emit_from < s.emit_to && state.pending.left() > 0) {
    Symbol& symbol = parts.symbols[s.emit_from];
    const int32_t token = symbol.piece == kNoPiece ? unknown : tokenizer.token(symbol.piece);
    if (token != unknown) {
      state.pending.add(token);
      s.after_unknown = false;
      s.emit_end += symbol.bytes;
      ++s.emit_from;
      continue;
    }
    const bool as_bytes = tokenizer.table->byte_pieces() != nullptr;
    const size_t bytes =
        as_bytes ? std::min<size_t>(symbol.bytes, state.pending.left()) : symbol.bytes;
    add_unknown(state, parts.buffer.subspan(s.emit_end, bytes));
    s.emit_end += bytes;
    symbol.bytes -= static_cast<uint32_t>(bytes);
    if (symbol.bytes == 0) ++s.emit_from;
  }
}

Status encode(EncoderState& state, std::span<const char> text, bool last, size_t* consumed,
              Error* error) {
  const Tokenizer& tokenizer = *state.tokenizer;
  const Parts parts(state);
  SentencePieceState& s = sentencepiece_state(state);
  *consumed = 0;
  for (;;) {
    give(state, parts);
    if (s.emit_from < s.emit_to || state.pending.left() == 0) return Status::kOk;
    size_t end = find_word(piece_traits(tokenizer), parts.buffer.data(), s);
    if (end > s.done) {
      join_word(tokenizer, parts, end, s);
      continue;
    }
    s.frontier -= std::min(s.frontier, s.done);
    drop_front(parts.buffer, s.done, s);
    if (s.complete) {
      // What follows is a text of its own.
      s = {};
      if (tokenizer.table->words() && *consumed < text.size()) continue;
      return Status::kOk;
    }
    const size_t filled = s.filled;
    *consumed += fill_buffer(state, text.subspan(*consumed), last, parts.buffer);
    if (s.complete || s.filled > filled) continue;
    if (!s.full) return Status::kOk;
    const bool whole = piece_traits(tokenizer).has_affixes || tokenizer.table->whole_words();
    end = whole ? 0 : find_cut(tokenizer, parts.buffer.data(), s);
    if (end == 0) return word_too_long(state, error);
    join_word(tokenizer, parts, end, s);
  }
}

}  // namespace

extern const TokenizerDef sp_bpe_tokenizer;
const TokenizerDef sp_bpe_tokenizer = {
    .kind = schema::TokenizerKind::Bpe,
    .public_kind = OXB_TOKENIZER_BPE,
    .name = "SentencePiece bpe",
    .check = check_sentencepiece,
    .scratch_bytes = scratch_bytes,
    .start = start_sentencepiece,
    .behind_token = sentencepiece_behind_token,
    .encode = encode,
    .decode = decode_sentencepiece,
};

}  // namespace oxbow

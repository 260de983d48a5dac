// Byte-pair encoding of words, as GPT-2 does it: a word's bytes become pieces, and neighbours join.

#include <algorithm>

#include "runtime/text/bpe.h"
#include "runtime/text/decoder.h"
#include "runtime/text/encoder.h"
#include "runtime/text/pattern.h"
#include "runtime/text/split.h"
#include "runtime/text/utf8.h"

namespace oxbow {
namespace {

// Words with a limit of digits are never too long.
constexpr uint32_t kMaxDigits = 8;

Status check(Tokenizer& tokenizer, Error* error) {
  const schema::Tokenizer& table = *tokenizer.table;
  const auto are_pieces = [&](const flatbuffers::Vector<uint32_t>& list) {
    return list.size() == 256 && std::all_of(list.begin(), list.end(), [&](uint32_t piece) {
             return piece == kNoPiece || piece < tokenizer.pieces;
           });
  };
  const auto* last_pieces = table.last_byte_pieces();
  if (table.byte_pieces() == nullptr || !are_pieces(*table.byte_pieces()) ||
      (last_pieces != nullptr && !are_pieces(*last_pieces))) {
    return fail(error, Status::kFileCorrupt, "tokenizer: the bytes have no pieces");
  }
  if (tokenizer.classes.empty()) {
    return fail(error, Status::kFileCorrupt, "tokenizer: the table of characters is missing");
  }
  if (table.split() > schema::WordSplit::MAX || table.max_digits() > kMaxDigits) {
    return fail(error, Status::kFileUnsupported,
                "tokenizer: words are cut in a way this library does not know: use a newer one");
  }
  return Status::kOk;
}

size_t scratch_bytes(const Tokenizer&, size_t max_word_bytes) {
  return max_word_bytes * sizeof(Symbol) + merge_scratch_bytes(max_word_bytes);
}

/// A word or part of one, with U+FFFD for what is malformed.
struct Word {
  std::span<const char> text;
  /// The text ends before the word does, or may.
  bool cut_off = false;
};

/// The word without what is malformed, in EncoderState::word.
Word repaired(EncoderState& state, std::span<const char> text) {
  size_t size = 0;
  while (!text.empty()) {
    const Utf8Character next = read_utf8(text);
    const bool good = next.kind == Utf8Character::Kind::kCharacter;
    const std::span<const char> bytes =
        good ? text.first(next.bytes) : std::span("\xef\xbf\xbd", 3);
    if (bytes.size() > state.word.size() - size) return {state.word.first(size), true};
    std::copy(bytes.begin(), bytes.end(), state.word.begin() + static_cast<ptrdiff_t>(size));
    size += bytes.size();
    text = text.subspan(good ? next.bytes : malformed_bytes(text));
  }
  return {state.word.first(size), false};
}

/// How many bytes of malformed text the first `repaired` of it were made of.
size_t bytes_before_repair(std::span<const char> text, size_t repaired) {
  size_t used = 0;
  while (repaired > 0) {
    const Utf8Character next = read_utf8(text.subspan(used));
    const bool good = next.kind == Utf8Character::Kind::kCharacter;
    used += good ? next.bytes : malformed_bytes(text.subspan(used));
    repaired -= std::min<size_t>(repaired, good ? next.bytes : 3);
  }
  return used;
}

/// The last place, `limit` at most, that no piece's text lies across, between two characters; 0: there
/// is none. What is on its two sides never joins.
size_t safe_cut(const Tokenizer& tokenizer, const Word& word, size_t limit) {
  size_t safe = 0;
  size_t reach = 0;
  for (size_t start = 0; start < word.text.size() && start <= limit; ++start) {
    const bool boundary = (static_cast<uint8_t>(word.text[start]) & 0xc0) != 0x80;
    if (boundary && reach <= start) safe = start;
    Trie::Walk walk = tokenizer.trie.walk();
    size_t at = start;
    while (at < word.text.size() && walk.step(word.text[at])) {
      ++at;
      if (walk.ends()) reach = std::max(reach, at);
    }
    if (at == word.text.size() && word.cut_off) break;
    // Pieces with a zero byte are not in the trie.
    if (at < word.text.size() && word.text[at] == 0) {
      reach = std::max(reach, start + tokenizer.longest_text);
    }
  }
  return safe;
}

/// Whether what stands beside a byte may not be what stands beside it in the text, or its piece not that of the byte.
bool needs_whole_words(const Tokenizer& tokenizer) {
  const auto* pieces = tokenizer.table->byte_pieces();
  return tokenizer.table->last_byte_pieces() != nullptr ||
         (tokenizer.table->unknown_token() < 0 &&
          std::find(pieces->begin(), pieces->end(), kNoPiece) != pieces->end());
}

/// `ends`: the text ends the word.
void add_merged(EncoderState& state, std::span<const char> text, bool ends) {
  const Tokenizer& tokenizer = *state.tokenizer;
  const uint32_t* byte_pieces = tokenizer.table->byte_pieces()->data();
  const auto* last_pieces = ends ? tokenizer.table->last_byte_pieces() : nullptr;
  const int32_t unknown = tokenizer.table->unknown_token();
  auto* symbols = reinterpret_cast<Symbol*>(state.scratch.data());
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const bool last = last_pieces != nullptr && i + 1 == text.size();
    const uint32_t piece = last ? last_pieces->Get(byte) : byte_pieces[byte];
    // Without a token for what is unknown it is as if it were not there.
    if (piece != kNoPiece || unknown >= 0) symbols[count++] = {piece, 1};
  }
  count = merge_symbols(tokenizer.merges, {symbols, count},
                        state.scratch.subspan(state.word.size() * sizeof(Symbol)));
  for (const Symbol& symbol : std::span(symbols, count)) {
    state.pending.add(symbol.piece == kNoPiece ? unknown : tokenizer.token(symbol.piece));
  }
}

bool add_whole(EncoderState& state, std::span<const char> text) {
  const Tokenizer& tokenizer = *state.tokenizer;
  if (text.size() > tokenizer.longest_text) return false;
  Trie::Walk walk = tokenizer.trie.walk();
  for (const char byte : text) {
    if (!walk.step(byte)) return false;
  }
  // The number comes from the file.
  if (!walk.ends() || walk.value() >= tokenizer.pieces) return false;
  state.pending.add(tokenizer.token(walk.value()));
  return true;
}

/// How far the words of the text were cut.
struct WordState {
  /// What a word that was too long to be taken whole goes on with.
  WordRest rest = WordRest::kNone;
  PatternState patterns;
  /// Part of the word was taken.
  bool begun = false;
};

void start(EncoderState& state) { state.kind.make<WordState>(); }

/// Cuts text into words, by the patterns of the file or in one of the ways that have a name.
class Words {
 public:
  explicit Words(EncoderState& state)
      : tokenizer_(*state.tokenizer),
        state_(state.kind.as<WordState>()),
        splitter_(tokenizer_.table->split(), tokenizer_.table->max_digits(), tokenizer_.classes) {}

  SplitWord next(std::span<const char> text, bool last, size_t enough, bool* dropped) {
    if (tokenizer_.table->patterns() == nullptr) return splitter_.next(text, last, state_.rest);
    const PatternWord word =
        PatternCutter(tokenizer_.patterns, state_.patterns, text, last).next(enough);
    *dropped = word.dropped;
    return {word.bytes, word.malformed, word.open, WordRest::kNone};
  }
  /// `taken` are the first bytes of the word, or all of it.
  void take(std::span<const char> taken, const SplitWord& word, bool whole) {
    state_.begun = !whole;
    state_.rest = whole ? WordRest::kNone : word.rest;
    if (tokenizer_.table->patterns() == nullptr) return;
    PatternCutter(tokenizer_.patterns, state_.patterns, taken, false).take(taken.size());
  }
  bool begun() const { return state_.begun; }

 private:
  const Tokenizer& tokenizer_;
  WordState& state_;
  WordSplitter splitter_;
};

Status encode(EncoderState& state, std::span<const char> text, bool last, size_t* consumed,
              Error* error) {
  const Tokenizer& tokenizer = *state.tokenizer;
  Words words(state);
  const size_t most = state.word.size();
  while (*consumed < text.size()) {
    const std::span<const char> rest = text.subspan(*consumed);
    bool dropped = false;
    const SplitWord next = words.next(rest, last, most + tokenizer.longest_text, &dropped);
    // All pieces that begin where the word may be cut must be seen, or the cut, and whether there is
    // one, would depend on how much text is there.
    if (next.open && next.bytes <= most + tokenizer.longest_text) return Status::kOk;
    if (next.bytes == 0) {
      words.take({}, next, true);
      continue;
    }
    if (dropped) {
      words.take(rest.first(next.bytes), next, !next.open);
      *consumed += next.bytes;
      continue;
    }
    Word word{rest.first(next.bytes), next.open};
    if (next.malformed) {
      word = repaired(state, word.text);
      word.cut_off |= next.open;
    }
    if (state.pending.left() < std::min(word.text.size(), most)) return Status::kOk;
    if (!words.begun() && !word.cut_off && tokenizer.table->whole_words() &&
        add_whole(state, word.text)) {
      words.take(rest.first(next.bytes), next, true);
      *consumed += next.bytes;
      continue;
    }
    if (!word.cut_off && word.text.size() <= most) {
      add_merged(state, word.text, true);
      words.take(rest.first(next.bytes), next, true);
      *consumed += next.bytes;
      continue;
    }
    const size_t cut = needs_whole_words(tokenizer) ? 0 : safe_cut(tokenizer, word, most);
    if (cut == 0) {
      return fail(error, Status::kTextStopped,
                  "a word of more than %zu bytes; give the encoder a larger max_word_bytes", most);
    }
    add_merged(state, word.text.first(cut), false);
    const size_t taken = next.malformed ? bytes_before_repair(rest, cut) : cut;
    words.take(rest.first(taken), next, false);
    *consumed += taken;
  }
  return Status::kOk;
}

void decode(DecoderState& state, uint32_t token) { state.out.add(state.tokenizer->text(token)); }

}  // namespace

extern const TokenizerDef byte_bpe_tokenizer;
const TokenizerDef byte_bpe_tokenizer = {
    .kind = schema::TokenizerKind::ByteBpe,
    .public_kind = OXB_TOKENIZER_BYTE_BPE,
    .name = "byte_bpe",
    .check = check,
    .scratch_bytes = scratch_bytes,
    .start = start,
    .behind_token = start,
    .encode = encode,
    .decode = decode,
};

}  // namespace oxbow

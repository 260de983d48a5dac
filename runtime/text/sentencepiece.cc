#include "runtime/text/sentencepiece.h"

#include <algorithm>
#include <cstring>

#include "runtime/text/decoder.h"
#include "runtime/text/utf8.h"

namespace oxbow {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

bool starts_with(std::span<const char> text, std::string_view start) {
  return text.size() >= start.size() && std::memcmp(text.data(), start.data(), start.size()) == 0;
}

/// Special tokens are not: where text may name them, the encoder has cut them out of it before.
bool is_whole(const Tokenizer& tokenizer, uint32_t piece) {
  return tokenizer.role(piece) == schema::TokenRole::Added;
}

/// The next thing in a text that is replaced as a whole, or a character.
struct Part {
  /// 0: more text must be seen.
  size_t bytes = 0;
  /// Lies in the tokenizer when `replaced`, else in the text.
  std::span<const char> becomes;
  bool replaced = false;
};

Part next_part(const Tokenizer& tokenizer, std::span<const char> text, bool last) {
  if (may_begin_whole(tokenizer, text[0])) {
    bool open = false;
    const uint32_t whole = find_whole_piece(tokenizer, text, &open);
    if (open && !last) return {};
    if (whole != kNoPiece) return {tokenizer.text(whole).size(), tokenizer.text(whole), true};
  }
  const CharMap::Replacement found = tokenizer.char_map.find(text);
  if (found.open && !last) return {};
  if (found.bytes > 0) return {found.bytes, found.text, true};
  const Utf8Character next = read_utf8(text);
  if (next.kind == Utf8Character::Kind::kIncomplete && !last) return {};
  if (next.kind != Utf8Character::Kind::kCharacter) return {1, kReplacement, true};
  return {next.bytes, text.first(next.bytes), false};
}

/// Writes to the buffer until it is full.
class Writer {
 public:
  Writer(std::span<char> buffer, bool hold_spaces, SentencePieceState& state)
      : buffer_(buffer), hold_spaces_(hold_spaces), state_(state) {}

  size_t room() const { return buffer_.size() - state_.filled; }

  /// Marks of spaces are held back where they would go at the end of the text.
  bool put_space() {
    if (hold_spaces_) {
      ++state_.held_spaces;
      return true;
    }
    return put(kSpaceMark);
  }
  bool put(std::span<const char> bytes) {
    state_.full = room() < bytes.size();
    if (state_.full) return false;
    std::memcpy(buffer_.data() + state_.filled, bytes.data(), bytes.size());
    state_.filled += bytes.size();
    return true;
  }
  bool put_held_spaces() {
    for (; state_.held_spaces > 0; --state_.held_spaces) {
      if (!put(kSpaceMark)) return false;
    }
    return true;
  }
  /// All of `text`, or as much as there is room for; what is left of it is told.
  bool put_all(std::span<const char>& text) {
    while (!text.empty()) {
      const size_t space = text[0] == ' ' ? 1 : starts_with(text, kSpaceMark) ? 3 : 0;
      if (space > 0) {
        if (!put_space()) return false;
        text = text.subspan(space);
      } else {
        if (!put_held_spaces() || !put(text.first(1))) return false;
        text = text.subspan(1);
      }
    }
    return true;
  }
  /// A character of the text, or nothing when there is no room for it.
  bool put_character(std::span<const char> character) {
    if (character[0] == ' ' || starts_with(character, kSpaceMark)) return put_space();
    return put_held_spaces() && put(character);
  }

 private:
  std::span<char> buffer_;
  bool hold_spaces_;
  SentencePieceState& state_;
};

/// How many bytes at the beginning of `text` are copied as they are: no spaces, and nothing that is
/// replaced.
size_t plain_bytes(const Tokenizer& tokenizer, std::span<const char> text) {
  size_t count = 0;
  while (count + 1 < text.size() && text[count] != ' ' &&
         tokenizer.char_map.plain_ascii(text[count]) && !may_begin_whole(tokenizer, text[count]) &&
         static_cast<uint8_t>(text[count + 1]) < 0x80) {
    ++count;
  }
  return count;
}

void find_piece_traits(const Tokenizer& tokenizer, PieceTraits& traits) {
  for (uint32_t piece = 0; piece < tokenizer.text_ends.size(); ++piece) {
    const std::span<const char> text = tokenizer.text(piece);
    if (is_whole(tokenizer, piece) && !text.empty()) {
      const auto first = static_cast<uint8_t>(text[0]);
      traits.whole_first[first / 64] |= uint64_t{1} << first % 64;
    }
    for (size_t at = 0, before = 0; at < text.size();) {
      const bool mark = starts_with(text.subspan(at), kSpaceMark);
      // 1: a mark came before; 2: anything else.
      if (mark && before == 2) traits.marks_begin_words = false;
      if (!mark && before == 1) traits.marks_end_words = false;
      before = mark ? 1 : 2;
      at += mark ? kSpaceMark.size() : 1;
    }
  }
}

/// A word as its pieces know it. Returns how many bytes of the text were taken; those of a word that is left out too.
size_t take_word(const Tokenizer& tokenizer, std::span<const char> text, bool last,
                 std::span<char> buffer, PiecesState& state) {
  const schema::Tokenizer& table = *tokenizer.table;
  SentencePieceState& out = state.text;
  WordsState& words = state.words;
  size_t taken = 0;
  out.full = false;
  const auto fits = [&](size_t bytes) {
    out.full |= buffer.size() - out.filled < bytes;
    return !out.full;
  };
  const auto put = [&](std::string_view bytes) {
    std::memcpy(buffer.data() + out.filled, bytes.data(), bytes.size());
    out.filled += bytes.size();
  };
  while (!out.complete && !out.full) {
    const std::span<const char> rest = text.subspan(taken);
    PatternWord word{rest.size(), !last, false, false};
    PatternCutter cutter(tokenizer.patterns, words.cutting, rest, last);
    if (tokenizer.patterns.count > 0) word = cutter.next(buffer.size());
    if (rest.empty() && !last) return taken;
    if (word.bytes == 0 && word.open) {
      // All of the text was taken.
      out.complete = last && rest.empty();
      return taken;
    }
    size_t used = word.dropped ? word.bytes : 0;
    while (used < word.bytes) {
      const std::span<const char> left = rest.subspan(used, word.bytes - used);
      const Utf8Character next = read_utf8(left);
      if (next.kind == Utf8Character::Kind::kIncomplete && word.open && !last) break;
      const bool good = next.kind == Utf8Character::Kind::kCharacter;
      std::string_view character =
          good ? std::string_view(left.data(), next.bytes) : std::string_view("\xef\xbf\xbd");
      if (table.mark_spaces() && character == " ") character = kSpaceMark;
      if (!fits(kSpaceMark.size() + kMaxCharacterBytes)) break;
      const bool marked = table.word_mark() == schema::WordMark::Every ||
                          (table.word_mark() == schema::WordMark::First && words.text_start);
      if (words.word_start && marked && character != kSpaceMark) put(kSpaceMark);
      words.word_start = words.text_start = false;
      put(character);
      used += good ? next.bytes : malformed_bytes(left);
    }
    const bool ended = used == word.bytes && !word.open;
    if (used > 0) words.text_start = false;
    if (tokenizer.patterns.count > 0) {
      if (used > 0) {
        cutter.take(used);
      } else if (ended) {
        cutter.end_word();
      }
    }
    taken += used;
    if (ended) {
      out.complete = !words.word_start || rest.empty();
      words.word_start = true;
    } else if (used < word.bytes || rest.empty()) {
      return taken;
    }
  }
  return taken;
}

}  // namespace

size_t buffer_bytes(const Tokenizer& tokenizer, size_t max_word_bytes) {
  return max_word_bytes + tokenizer.longest_text + kMaxCharacterBytes;
}

uint32_t find_whole_piece(const Tokenizer& tokenizer, std::span<const char> text, bool* open) {
  uint32_t found = kNoPiece;
  Trie::Walk walk = tokenizer.trie.walk();
  size_t used = 0;
  while (used < text.size() && walk.step(text[used])) {
    ++used;
    // The number comes from the file.
    if (walk.ends() && walk.value() < tokenizer.pieces && is_whole(tokenizer, walk.value()) &&
        tokenizer.text(walk.value()).size() == used) {
      found = walk.value();
    }
  }
  *open = used == text.size();
  return found;
}

size_t normalise(const Tokenizer& tokenizer, std::span<const char> text, bool last,
                 std::span<char> buffer, SentencePieceState& state) {
  const bool single_spaces = tokenizer.table->single_spaces();
  const bool space_before = tokenizer.table->space_before_text() &&
                            !(state.behind_token && tokenizer.table->space_at_start_only());
  const bool behind_word = tokenizer.table->space_behind_word();
  Writer writer(buffer, single_spaces, state);
  size_t taken = 0;
  state.full = false;
  while (!state.complete && writer.put_all(state.rest)) {
    if (taken == text.size()) {
      if (!last) break;
      // Marks that are still held back are those that go.
      if (state.begun && space_before && behind_word && !writer.put(kSpaceMark)) break;
      state.complete = true;
      break;
    }
    const std::span<const char> left = text.subspan(taken);
    if (state.begun) {
      const size_t plain = plain_bytes(tokenizer, left);
      if (plain > 0) {
        if (!writer.put_held_spaces()) break;
        const size_t count = std::min(plain, std::max<size_t>(writer.room(), 1));
        if (!writer.put(left.first(count))) break;
        state.after_space = false;
        taken += count;
        continue;
      }
    }
    const Part part = next_part(tokenizer, left, last);
    if (part.bytes == 0) break;
    std::span<const char> becomes = part.becomes;
    if (!state.begun) {
      if (single_spaces && becomes.size() == 1 && becomes[0] == ' ') {
        taken += part.bytes;
        continue;
      }
      const bool there = tokenizer.table->space_unless_there() &&
                         (starts_with(becomes, " ") || starts_with(becomes, kSpaceMark));
      if (space_before && !there && !behind_word && !writer.put_space()) break;
      state.begun = true;
      state.after_space = single_spaces;
    }
    while (state.after_space && starts_with(becomes, " ")) becomes = becomes.subspan(1);
    if (part.replaced) {
      state.rest = becomes;
    } else if (!becomes.empty() && !writer.put_character(becomes)) {
      break;
    }
    taken += part.bytes;
    if (!becomes.empty()) state.after_space = single_spaces && becomes.back() == ' ';
  }
  return taken;
}

size_t fill_buffer(EncoderState& state, std::span<const char> text, bool last,
                   std::span<char> buffer) {
  SentencePieceState& s = sentencepiece_state(state);
  if (!state.tokenizer->table->words()) return normalise(*state.tokenizer, text, last, buffer, s);
  return take_word(*state.tokenizer, text, last, buffer, state.kind.as<PiecesState>());
}

void drop_front(std::span<char> buffer, size_t count, SentencePieceState& state) {
  std::memmove(buffer.data(), buffer.data() + count, state.filled - count);
  state.filled -= count;
  state.done -= count;
}

void add_unknown(EncoderState& state, std::span<const char> text) {
  const auto* bytes = state.tokenizer->table->byte_pieces();
  bool& after_unknown = sentencepiece_state(state).after_unknown;
  if (bytes != nullptr) {
    for (const char byte : text) {
      state.pending.add(static_cast<int32_t>(bytes->Get(static_cast<uint8_t>(byte))));
    }
  } else if (!after_unknown) {
    if (state.tokenizer->table->unknown_token() >= 0) {
      state.pending.add(state.tokenizer->table->unknown_token());
    }
  }
  after_unknown = !state.tokenizer->table->unknown_apart();
}

Status word_too_long(const EncoderState& state, Error* error) {
  return fail(error, Status::kTextStopped,
              "a stretch of more than %zu bytes whose tokens depend on what follows; give the "
              "encoder a larger max_word_bytes",
              state.word.size());
}

Status check_sentencepiece(Tokenizer& tokenizer, Error* error) {
  // Words without one lose what is unknown.
  if (tokenizer.table->unknown_token() < 0 && !tokenizer.table->words()) {
    return fail(error, Status::kFileCorrupt, "tokenizer: no token for unknown text");
  }
  if (const auto* bytes = tokenizer.table->byte_pieces(); bytes != nullptr) {
    if (bytes->size() != 256 || std::any_of(bytes->begin(), bytes->end(), [&](uint32_t piece) {
          return piece >= tokenizer.tokens;
        })) {
      return fail(error, Status::kFileCorrupt, "tokenizer: not a token for each byte");
    }
  }
  PieceTraits& traits = tokenizer.kind.make<PieceTraits>();
  find_piece_traits(tokenizer, traits);
  const auto there = [](const flatbuffers::String* text) {
    return text != nullptr && text->size() > 0;
  };
  traits.has_affixes =
      there(tokenizer.table->word_suffix()) || there(tokenizer.table->inner_prefix());
  return Status::kOk;
}

void start_sentencepiece(EncoderState& state) { state.kind.make<PiecesState>(); }

void sentencepiece_behind_token(EncoderState& state) {
  PiecesState& pieces = state.kind.as<PiecesState>();
  pieces.text.behind_token = true;
  pieces.words = {};
  pieces.words.text_start = false;
}

void decode_sentencepiece(DecoderState& state, uint32_t token) {
  const Tokenizer& tokenizer = *state.tokenizer;
  const schema::Tokenizer& table = *tokenizer.table;
  const schema::TokenRole role = tokenizer.role(token);
  std::span<const char> text = tokenizer.text(token);
  state.out.replace_each_byte();
  if (role == schema::TokenRole::Byte) {
    state.out.add(text);
    state.leading = false;
    return;
  }
  state.out.flush();
  if (role == schema::TokenRole::Control) return;
  if (state.leading && starts_with(text, kSpaceMark) &&
      table.drop_first_space().value_or(table.space_before_text() || table.single_spaces())) {
    text = text.subspan(kSpaceMark.size());
    // Only one is left out, unless the text has none at its beginning anyway.
    if (!table.single_spaces()) state.leading = false;
  }
  if (role == schema::TokenRole::Unknown) {
    text = {};
    if (table.unknown_text() != nullptr) {
      text = {table.unknown_text()->data(), table.unknown_text()->size()};
    }
    state.out.add(text);
  } else {
    for (size_t at = 0; at < text.size();) {
      const bool mark = starts_with(text.subspan(at), kSpaceMark);
      state.out.add(mark ? ' ' : text[at]);
      at += mark ? kSpaceMark.size() : 1;
    }
  }
  if (!text.empty()) state.leading = false;
}

}  // namespace oxbow

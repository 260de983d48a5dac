// BERT's tokenizer. Text is cleaned, and perhaps stripped of accents and put in lower case, a
// character at a time as the file's tables say; a word ends at white space, and punctuation is a
// word of its own. A word is cut into the longest pieces of the vocabulary, from its beginning; when
// that leaves a rest, all of it is unknown.
//
// With Tokenizer.words, text is changed before it comes here and cut by the patterns of the file instead. A word that
// must be a token as it stands is a special case: no piece is inside of one.
//
// All text that is there is taken: the word it ends in is kept, as it was changed, until its end.

#include <algorithm>
#include <cstring>

#include "runtime/text/decoder.h"
#include "runtime/text/encoder.h"
#include "runtime/text/pattern.h"
#include "runtime/text/utf8.h"

namespace oxbow {
namespace {

using Kind = Utf8Character::Kind;

// The bound keeps the time for a word small whatever the file says.
constexpr uint32_t kMaxWordCharacters = 1000;
constexpr uint8_t kEndsWord = kSpace | kPunctuation | kIsolated;

constexpr uint32_t kHangulFirst = 0xac00;
constexpr uint32_t kHangulLast = 0xd7a3;

std::span<const char> inner_prefix(const Tokenizer& tokenizer) {
  const flatbuffers::String* prefix = tokenizer.table->inner_prefix();
  return prefix == nullptr ? std::span<const char>() : std::span(prefix->data(), prefix->size());
}

bool begins_with(std::span<const char> text, std::span<const char> prefix) {
  return text.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), text.begin());
}

Status check(Tokenizer& tokenizer, Error* error) {
  const bool words = tokenizer.table->words();
  if ((tokenizer.classes.empty() && !words) || tokenizer.table->unknown_token() < 0) {
    return fail(error, Status::kFileCorrupt,
                "tokenizer: the table of characters or the token for unknown words is missing");
  }
  const uint32_t characters = tokenizer.table->max_word_characters();
  if (characters == 0 || characters > kMaxWordCharacters) {
    return fail(error, Status::kFileCorrupt, "tokenizer: words of %u characters; expected 1 to %u",
                static_cast<unsigned>(characters), static_cast<unsigned>(kMaxWordCharacters));
  }
  return Status::kOk;
}

size_t scratch_bytes(const Tokenizer& tokenizer, size_t) {
  return size_t{tokenizer.table->max_word_characters()} * kMaxCharacterBytes;
}

/// The word that is being read, as far as it came. Its bytes are in EncoderState::scratch.
struct WordPieceState {
  size_t bytes = 0;
  size_t characters = 0;
  /// Marks behind this place may change their order.
  size_t order_from = 0;
  /// It has too many characters: it is unknown, whatever they are.
  bool given_up = false;
  /// Its end was seen, but there was no room for its tokens.
  bool over = false;
  /// Tokenizer.words: how far the text is cut.
  PatternState cutting;
};

void start(EncoderState& state) { state.kind.make<WordPieceState>(); }

/// Builds that word.
class Word {
 public:
  explicit Word(EncoderState& state)
      : tokenizer_(*state.tokenizer),
        pending_(state.pending),
        word_(state.kind.as<WordPieceState>()),
        room_(reinterpret_cast<char*>(state.scratch.data()), state.scratch.size()),
        max_characters_(tokenizer_.table->max_word_characters()),
        prefix_(inner_prefix(tokenizer_)),
        inner_(tokenizer_.trie.walk()),
        has_inner_(!tokenizer_.table->whole_words()) {
    for (const char byte : prefix_) has_inner_ = has_inner_ && inner_.step(byte);
    if (const auto* marks = tokenizer_.table->ordered_marks(); marks != nullptr) {
      marks_ = {marks->data(), marks->size()};
    }
  }

  /// One character as it is.
  void add(std::span<const char> character) {
    if (word_.characters == max_characters_ || character.size() > room_.size() - word_.bytes) {
      word_.given_up = true;
      return;
    }
    std::memcpy(room_.data() + word_.bytes, character.data(), character.size());
    word_.bytes += character.size();
    ++word_.characters;
  }

  /// What the tables make of a character of class kChanged.
  void add_changed(uint32_t code_point, std::span<const char> character) {
    if (tokenizer_.table->split_hangul() && code_point >= kHangulFirst &&
        code_point <= kHangulLast) {
      add_jamo(code_point - kHangulFirst);
      return;
    }
    const CharMap::Replacement found = tokenizer_.char_map.find(character);
    std::span<const char> text = found.bytes == character.size() ? found.text : character;
    while (!text.empty()) {
      const Utf8Character next = read_utf8(text);
      // The file's strings are bytes of any kind.
      const size_t bytes = next.kind == Kind::kCharacter ? next.bytes : 1;
      add(text.first(bytes));
      if (const uint8_t order = order_of(next.code_point); order > 0) put_in_order(bytes, order);
      text = text.subspan(bytes);
    }
  }

  /// What comes next is not reordered with what was there before.
  void end_order() { word_.order_from = word_.bytes; }

  /// The tokens of the word, which is over. False when there is no room for all of them; the word
  /// stays.
  bool finish() {
    if (word_.characters == 0 && !word_.given_up) return true;
    word_.over = true;
    if (pending_.left() == 0) return false;
    const size_t before = pending_.end;
    switch (word_.given_up ? Cut::kUnknown : cut()) {
      case Cut::kNoRoom:
        pending_.end = before;
        return false;
      case Cut::kUnknown:
        pending_.end = before;
        pending_.add(tokenizer_.table->unknown_token());
        break;
      case Cut::kDone:
        break;
    }
    const PatternState cutting = word_.cutting;
    word_ = {};
    word_.cutting = cutting;
    return true;
  }

 private:
  enum class Cut { kDone, kUnknown, kNoRoom };

  Cut cut() {
    const std::span<const char> word = room_.first(word_.bytes);
    Trie::Walk walk = tokenizer_.trie.walk();
    for (size_t at = 0; at < word.size(); walk = inner_) {
      if (at > 0 && !has_inner_) return Cut::kUnknown;
      size_t end = at;
      uint32_t piece = 0;
      for (size_t i = at; i < word.size() && walk.step(word[i]); ++i) {
        // The number comes from the file.
        if (walk.ends() && walk.value() < tokenizer_.tokens) {
          end = i + 1;
          piece = walk.value();
        }
      }
      if (end == at) return Cut::kUnknown;
      if (pending_.left() == 0) return Cut::kNoRoom;
      pending_.add(static_cast<int32_t>(piece));
      at = end;
    }
    return Cut::kDone;
  }

  void add_jamo(uint32_t index) {
    constexpr uint32_t kVowels = 21;
    constexpr uint32_t kTails = 28;
    const uint32_t tail = index % kTails;
    char bytes[4];
    add(std::span(bytes, write_utf8(0x1100 + index / (kVowels * kTails), bytes)));
    add(std::span(bytes, write_utf8(0x1161 + index / kTails % kVowels, bytes)));
    if (tail > 0) add(std::span(bytes, write_utf8(0x11a7 + tail, bytes)));
  }

  /// The combining class of a mark that can change places with others, or 0.
  uint8_t order_of(uint32_t code_point) const {
    if (marks_.empty() || code_point < marks_.front() >> 8) return 0;
    const auto found = std::lower_bound(marks_.begin(), marks_.end(), code_point << 8);
    return found != marks_.end() && *found >> 8 == code_point ? static_cast<uint8_t>(*found) : 0;
  }

  /// Moves the mark that was added last before those of a higher class.
  void put_in_order(size_t bytes, uint8_t order) {
    if (word_.given_up) return;
    const size_t last = word_.bytes - bytes;
    size_t place = last;
    while (place > word_.order_from) {
      size_t before = place - 1;
      while (before > word_.order_from && (room_[before] & 0xc0) == 0x80) --before;
      const Utf8Character mark = read_utf8(room_.subspan(before, place - before));
      if (mark.kind != Kind::kCharacter || order_of(mark.code_point) <= order) break;
      place = before;
    }
    std::rotate(room_.data() + place, room_.data() + last, room_.data() + word_.bytes);
  }

  const Tokenizer& tokenizer_;
  PendingIds& pending_;
  WordPieceState& word_;
  std::span<char> room_;
  size_t max_characters_;
  std::span<const char> prefix_;
  /// Behind the prefix of pieces inside a word, when any piece has it.
  Trie::Walk inner_;
  bool has_inner_;
  std::span<const uint32_t> marks_;
};

Status no_room(const EncoderState& state, Error* error) {
  // What was found before is given out first, which makes room.
  if (!state.pending.empty()) return Status::kOk;
  return fail(error, Status::kTextStopped,
              "a word of more than %zu tokens; give the encoder a larger max_word_bytes",
              state.pending.room.size());
}

/// Words as the patterns of the file cut them.
Status encode_words(EncoderState& state, std::span<const char> text, bool last, size_t* consumed,
                    Error* error) {
  const PatternSet& patterns = state.tokenizer->patterns;
  PatternState& cutting = state.kind.as<WordPieceState>().cutting;
  Word word(state);
  if (state.kind.as<WordPieceState>().over && !word.finish()) return no_room(state, error);
  while (*consumed < text.size() || last) {
    const std::span<const char> rest = text.subspan(*consumed);
    PatternCutter cutter(patterns, cutting, rest, last);
    PatternWord next{rest.size(), !last, false, false};
    if (patterns.count > 0) next = cutter.next(state.word.size());
    if (next.bytes == 0 && next.open) return Status::kOk;
    size_t used = next.dropped ? next.bytes : 0;
    while (used < next.bytes) {
      const std::span<const char> left = rest.subspan(used, next.bytes - used);
      const Utf8Character character = read_utf8(left);
      const bool good = character.kind == Kind::kCharacter;
      if (character.kind == Kind::kIncomplete && next.open && !last) break;
      word.add(good ? left.first(character.bytes) : std::span("\xef\xbf\xbd", 3));
      used += good ? character.bytes : malformed_bytes(left);
    }
    const bool ended = used == next.bytes && !next.open;
    if (patterns.count > 0 && used > 0) {
      cutter.take(used);
    } else if (patterns.count > 0 && ended) {
      cutter.end_word();
    }
    *consumed += used;
    if (ended && !word.finish()) return no_room(state, error);
    if (!ended && used < next.bytes) return Status::kOk;
    if (rest.empty()) return Status::kOk;
  }
  return Status::kOk;
}

Status encode(EncoderState& state, std::span<const char> text, bool last, size_t* consumed,
              Error* error) {
  if (state.tokenizer->table->words()) return encode_words(state, text, last, consumed, error);
  const CharClasses& classes = state.tokenizer->classes;
  Word word(state);
  if (state.kind.as<WordPieceState>().over && !word.finish()) return no_room(state, error);
  size_t& at = *consumed;
  while (at < text.size()) {
    Utf8Character next = {Kind::kCharacter, static_cast<uint8_t>(text[at]), 1};
    if (next.code_point >= 0x80) {
      next = read_utf8(text.subspan(at));
      if (next.kind == Kind::kIncomplete && !last) return Status::kOk;
    }
    std::span<const char> character = text.subspan(at, next.bytes);
    if (next.kind != Kind::kCharacter) {
      next = {Kind::kCharacter, kReplacementCharacter, malformed_bytes(text.subspan(at))};
      character = std::span("\xef\xbf\xbd", 3);
    }
    const uint8_t bits = classes.of(next.code_point);
    if ((bits & kEndsWord) != 0 && !word.finish()) return no_room(state, error);
    if ((bits & kSpace) != 0) {
    } else if ((bits & kRemoved) != 0) {
      if ((bits & kChanged) != 0) word.end_order();
    } else if ((bits & kChanged) != 0) {
      word.add_changed(next.code_point, character);
    } else {
      word.add(character);
    }
    at += next.bytes;
    // A word of its own.
    if ((bits & (kPunctuation | kIsolated)) != 0 && !word.finish()) return no_room(state, error);
  }
  if (last && !word.finish()) return no_room(state, error);
  return Status::kOk;
}

/// Whether people write this text without a space before it.
bool follows_closely(std::span<const char> text) {
  for (const std::string_view begin : {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"}) {
    if (begins_with(text, begin)) return true;
  }
  return false;
}

void decode(DecoderState& state, uint32_t token) {
  const Tokenizer& tokenizer = *state.tokenizer;
  std::span<const char> text = tokenizer.text(token);
  if (!state.text_start) {
    const std::span<const char> prefix = inner_prefix(tokenizer);
    if (!prefix.empty() && begins_with(text, prefix)) {
      text = text.subspan(prefix.size());
    } else if (!tokenizer.table->tidy() || !follows_closely(text)) {
      state.out.add(' ');
    }
  }
  state.out.add(text);
}

}  // namespace

extern const TokenizerDef wordpiece_tokenizer;
const TokenizerDef wordpiece_tokenizer = {
    .kind = schema::TokenizerKind::WordPiece,
    .public_kind = OXB_TOKENIZER_WORDPIECE,
    .name = "wordpiece",
    .check = check,
    .scratch_bytes = scratch_bytes,
    .start = start,
    .behind_token = start,
    .encode = encode,
    .decode = decode,
};

}  // namespace oxbow

#include "runtime/text/added_tokens.h"

#include <algorithm>

#include "runtime/text/utf8.h"

namespace oxbow {
namespace {

using Kind = AddedNext::Kind;

/// Null for a token that is looked for plainly.
const schema::AddedToken* manner(const Tokenizer& tokenizer, uint32_t token) {
  const auto found = std::lower_bound(
      tokenizer.added.begin(), tokenizer.added.end(), token,
      [](const schema::AddedToken& added, uint32_t wanted) { return added.token() < wanted; });
  return found == tokenizer.added.end() || found->token() != token ? nullptr : &*found;
}

/// Bits and bytes of the character that `text` ends with; none when it is malformed.
Utf8Character last_character(std::span<const char> text) {
  for (size_t bytes = 1; bytes <= std::min(text.size(), kMaxCharacterBytes); ++bytes) {
    const Utf8Character character = read_utf8(text.last(bytes));
    if (character.kind == Utf8Character::Kind::kCharacter && character.bytes == bytes) {
      return character;
    }
  }
  return {};
}

bool is(const Tokenizer& tokenizer, const Utf8Character& character, CharClass what) {
  return character.kind == Utf8Character::Kind::kCharacter &&
         (tokenizer.classes.of(character.code_point) & what) != 0;
}

/// Where the white space at the end of `text` begins.
size_t before_space(const Tokenizer& tokenizer, std::span<const char> text) {
  size_t at = text.size();
  for (;;) {
    const Utf8Character character = last_character(text.first(at));
    if (!is(tokenizer, character, kSpace)) return at;
    at -= character.bytes;
  }
}

/// Where the white space at the beginning of `text` ends.
size_t behind_space(const Tokenizer& tokenizer, std::span<const char> text) {
  size_t at = 0;
  for (;;) {
    const Utf8Character character = read_utf8(text.subspan(at));
    if (!is(tokenizer, character, kSpace)) return at;
    at += character.bytes;
  }
}

}  // namespace

/// Whether a token of this pass begins at Pass::clear. Goes beyond it otherwise, unless more must be
/// seen to know.
bool AddedScanner::match(const Tokenizer& tokenizer, std::span<const char> text, bool ends,
                         int pass) {
  Pass& state = passes_[pass];
  Trie::Walk walk = tokenizer.added_trie.walk();
  size_t end = 0;
  const schema::AddedToken* how = nullptr;
  size_t at = state.clear;
  while (at < text.size() && walk.step(text[at])) {
    ++at;
    // The number comes from the file.
    if (!walk.ends() || walk.value() >= tokenizer.tokens) continue;
    const schema::AddedToken* found = manner(tokenizer, walk.value());
    if ((found != nullptr && found->second()) != (pass == 1)) continue;
    end = at;
    how = found;
    state.token = walk.value();
  }
  const bool longer_possible = at == text.size() && !ends;
  if (longer_possible) return false;
  if (end == 0) {
    ++state.clear;
    return false;
  }
  if (how != nullptr && how->single_word()) {
    bool in_word = state.clear == 0
                       ? state.behind_word
                       : is(tokenizer, last_character(text.first(state.clear)), kWordCharacter);
    if (!in_word) {
      const Utf8Character behind = read_utf8(text.subspan(end));
      if (behind.kind == Utf8Character::Kind::kIncomplete && !ends) return false;
      in_word = is(tokenizer, behind, kWordCharacter);
    }
    if (in_word) {
      // What begins inside of it is not looked for.
      state.clear = end;
      return false;
    }
  }
  state.found = true;
  state.end = end;
  state.begin = how != nullptr && how->strip_left()
                    ? before_space(tokenizer, text.first(state.clear))
                    : state.clear;
  return true;
}

void AddedScanner::scan(const Tokenizer& tokenizer, std::span<const char> text, bool ends,
                        int pass) {
  Pass& state = passes_[pass];
  const std::span<const bool, 256> begins(tokenizer.added_begins[pass]);
  while (!state.found) {
    while (state.clear < text.size() && !begins[static_cast<uint8_t>(text[state.clear])]) {
      ++state.clear;
    }
    if (state.clear >= text.size()) return;
    const size_t before = state.clear;
    if (match(tokenizer, text, ends, pass) || state.clear == before) return;
  }
}

size_t AddedScanner::plain(const Tokenizer& tokenizer, std::span<const char> text, bool ends,
                           const Pass& pass) {
  if (pass.found) return std::min(pass.begin, text.size());
  const size_t clear = std::min(pass.clear, text.size());
  // A token that may follow takes the white space before it.
  if (!tokenizer.added_strip_left || (ends && clear == text.size())) return clear;
  return before_space(tokenizer, text.first(clear));
}

AddedNext AddedScanner::next(const Tokenizer& tokenizer, std::span<const char> text, bool last) {
  if (tokenizer.added_trie.empty()) return {Kind::kPlain, text.size(), 0, last};
  // A text that became shorter is another one.
  for (const Pass& pass : passes_) {
    if (std::max(pass.clear, pass.end) > text.size()) {
      passes_[0] = passes_[1] = {};
      break;
    }
  }
  AddedNext next;
  next.ends = last;
  for (int pass = 0; pass < kPasses; ++pass) {
    scan(tokenizer, text, next.ends, pass);
    const Pass& state = passes_[pass];
    const size_t bytes = plain(tokenizer, text, next.ends, state);
    next.ends = state.found || (next.ends && bytes == text.size());
    text = text.first(bytes);
    if (state.found) {
      next.token = state.token;
      next.kind = Kind::kToken;
      next.bytes = state.end;
    }
  }
  if (text.empty()) return next;
  next = {Kind::kPlain, text.size(), 0, next.ends};
  if (!stripping_) return next;
  if (const size_t space = behind_space(tokenizer, text); space > 0) {
    return {Kind::kNothing, space, 0, false};
  }
  // The rest of the white space may be to come.
  const bool cut_off = !next.ends && read_utf8(text).kind == Utf8Character::Kind::kIncomplete;
  if (cut_off) next.bytes = 0;
  return next;
}

void AddedScanner::take(const Tokenizer& tokenizer, const AddedNext& what,
                        std::span<const char> taken) {
  if (tokenizer.added_trie.empty() || taken.empty()) return;
  const bool is_token = what.kind == Kind::kToken;
  const schema::AddedToken* how = is_token ? manner(tokenizer, what.token) : nullptr;
  const bool behind_word = is(tokenizer, last_character(taken), kWordCharacter);
  for (Pass& pass : passes_) {
    pass.behind_word = behind_word;
    if (pass.found && pass.end > taken.size()) {
      pass.begin -= std::min(pass.begin, taken.size());
      pass.end -= taken.size();
    } else {
      pass.found = false;
      pass.end = 0;
    }
    pass.clear -= std::min(pass.clear, taken.size());
  }
  // For the second pass a token of the first is where its text begins.
  const bool second = how != nullptr && how->second();
  if (is_token && !second) passes_[1].behind_word = false;
  if (what.kind != Kind::kNothing) stripping_ = how != nullptr && how->strip_right();
}

}  // namespace oxbow

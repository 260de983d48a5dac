#include "runtime/text/added_tokens.h"

namespace oxbow {

AddedMatch find_added(const Tokenizer& tokenizer, std::span<const char> text, bool last) {
  for (size_t at = 0; at < text.size() && !tokenizer.added_trie.empty(); ++at) {
    Trie::Match match;
    const bool found = tokenizer.added_trie.longest(text.subspan(at), &match);
    if (match.open && !last) return {at, at, 0};
    // The number comes from the file.
    if (found && match.value < tokenizer.tokens) return {at, at + match.bytes, match.value};
  }
  return {text.size(), text.size(), 0};
}

}  // namespace oxbow

#pragma once

// Tokens whose text is taken out of a text before anything else is done with it, as Hugging Face's
// tokenizers do: from the left, the longest of those that begin at the same place. They are looked
// for in two passes, the second in what the first leaves.
//
//   text, seen so far:  plain ... | white space of a token | token | white space of it | plain ... | unknown

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/text/tokenizer.h"

namespace oxbow {

/// What a text begins with.
struct AddedNext {
  enum class Kind {
    /// `bytes` without any added token; with none, more of the text must be seen.
    kPlain,
    /// `bytes` that are `token`.
    kToken,
    /// `bytes` of white space that belong to the token before them.
    kNothing,
  };
  Kind kind = Kind::kPlain;
  size_t bytes = 0;
  uint32_t token = 0;
  /// Plain: nothing follows, or an added token does.
  bool ends = false;
};

/// Goes through a text whose beginning is taken away again and again. What was looked through once is
/// remembered, so a long text without added tokens is looked through once.
class AddedScanner {
 public:
  /// What `text` begins with. `last`: nothing follows `text`.
  AddedNext next(const Tokenizer& tokenizer, std::span<const char> text, bool last);
  /// `taken` were the first bytes of the text. The next text begins behind them.
  void take(const Tokenizer& tokenizer, const AddedNext& what, std::span<const char> taken);

 private:
  static constexpr int kPasses = 2;

  /// Places are counted from the beginning of the text that is left.
  struct Pass {
    /// No token begins before this place.
    size_t clear = 0;
    /// The one that begins at `clear`, when `found`: from `begin` on, its white space included.
    bool found = false;
    size_t begin = 0;
    size_t end = 0;
    uint32_t token = 0;
    /// The character before the text is part of a word.
    bool behind_word = false;
  };

  void scan(const Tokenizer& tokenizer, std::span<const char> text, bool ends, int pass);
  bool match(const Tokenizer& tokenizer, std::span<const char> text, bool ends, int pass);
  /// How far a pass knows the text to be plain.
  static size_t plain(const Tokenizer& tokenizer, std::span<const char> text, bool ends,
                      const Pass& pass);

  Pass passes_[kPasses];
  /// The last token takes the white space behind it.
  bool stripping_ = false;
};

}  // namespace oxbow

#pragma once

// Text from outside on a terminal: how wide it is, and where its rows end.

#include <cstddef>
#include <string>
#include <string_view>

namespace oxbow {

/// Columns that a terminal gives the characters of `text`: two for most of Chinese, Japanese and Korean, none for accents
/// that stand on the character before.
size_t columns_of(std::string_view text);

/// Makes text that comes in pieces fit for a terminal. A word that does not fit into its row is written anew in the next
/// one, so that nothing is held back and no word is cut that a row has room for. What a terminal would obey, and what is
/// no UTF-8, becomes U+FFFD; carriage returns are left out.
class RowText {
 public:
  /// What to write for the next piece, in rows of at most `columns`; 0: rows are not ended.
  std::string next(std::string_view piece, size_t columns);
  /// Something is in the row.
  bool line_open() const { return column_ > 0 || !begun_.empty(); }

 private:
  void add(std::string_view character, size_t columns, std::string* out);
  void begin_row(std::string* out);

  size_t column_ = 0;
  /// The word that the row ends with, until it is as wide as a row.
  std::string word_;
  size_t word_columns_ = 0;
  /// The first bytes of a character.
  std::string begun_;
};

}  // namespace oxbow

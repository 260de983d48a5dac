#include "host/row_text.h"

#include <clocale>
#include <cwchar>

#include "runtime/text/shown.h"
#include "runtime/text/utf8.h"

namespace oxbow {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";
constexpr size_t kTab = 8;
constexpr size_t kMostWord = 4096;

/// The C library knows the widths, in a locale of Unicode; programs here have none.
size_t columns_of(uint32_t code_point) {
  static const locale_t unicode = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (code_point < 0x80 || unicode == nullptr) return 1;
  const locale_t before = ::uselocale(unicode);
  const int columns = ::wcwidth(static_cast<wchar_t>(code_point));
  ::uselocale(before);
  return columns < 0 ? 1 : static_cast<size_t>(columns);
}

}  // namespace

size_t columns_of(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    const Utf8Character next = read_utf8(text);
    const bool whole = next.kind == Utf8Character::Kind::kCharacter;
    columns += whole ? columns_of(next.code_point) : 1;
    text.remove_prefix(whole ? next.bytes : malformed_bytes(text));
  }
  return columns;
}

std::string RowText::next(std::string_view piece, size_t columns) {
  begun_ += piece;
  std::string_view text = begun_;
  std::string out;
  while (!text.empty()) {
    const Utf8Character next = read_utf8(text);
    if (next.kind == Utf8Character::Kind::kIncomplete) break;
    const bool whole = next.kind == Utf8Character::Kind::kCharacter;
    const size_t bytes = whole ? next.bytes : malformed_bytes(text);
    const bool ordinary = text[0] == '\n' || text[0] == '\t';
    if (whole && (ordinary || !is_obeyed(next.code_point))) {
      add(text.substr(0, bytes), columns, &out);
    } else if (text[0] != '\r') {
      add(kReplacement, columns, &out);
    }
    text.remove_prefix(bytes);
  }
  begun_.erase(0, begun_.size() - text.size());
  return out;
}

void RowText::begin_row(std::string* out) {
  *out += '\n';
  column_ = 0;
  word_.clear();
  word_columns_ = 0;
}

void RowText::add(std::string_view character, size_t columns, std::string* out) {
  if (character == "\n") return begin_row(out);
  const bool space = character == " " || character == "\t";
  const size_t width = character == "\t" ? kTab - column_ % kTab : columns_of(character);
  // Wide characters are written without spaces: a row may end in front of each. Accents may go on without end.
  if (space || width > 1 || word_.size() > kMostWord) {
    word_.clear();
    word_columns_ = 0;
  }
  if (columns > 0 && column_ + width > columns) {
    // A space that would begin a row is only a place to break.
    if (space) return begin_row(out);
    if (word_columns_ < column_ && word_columns_ + width <= columns) {
      const std::string word = word_;
      const size_t word_columns = word_columns_;
      if (word_columns > 0) *out += "\033[" + std::to_string(word_columns) + "D\033[K";
      begin_row(out);
      *out += word;
      word_ = word;
      column_ = word_columns_ = word_columns;
    } else {
      begin_row(out);
    }
  }
  *out += character;
  column_ += width;
  if (space || columns == 0) return;
  word_ += character;
  word_columns_ += width;
}

}  // namespace oxbow

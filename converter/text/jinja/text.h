#pragma once

// Text as Python sees it: made of code points, with Unicode's white space. All of it is UTF-8 that
// has been checked.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace oxbow::convert::jinja {

/// Bytes of the white space character that `text` begins with, 0 when it does not.
size_t space_bytes(std::string_view text);

std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);

/// As above, of the characters in `set`.
std::string_view strip_left(std::string_view text, std::string_view set);
std::string_view strip_right(std::string_view text, std::string_view set);

std::vector<std::string_view> characters(std::string_view text);

/// str.split() without a separator: at runs of white space, of which the ends do not count.
std::vector<std::string_view> words(std::string_view text);

bool is_ascii(std::string_view text);

// Letters, for ASCII alone.
std::string upper(std::string_view text);
std::string lower(std::string_view text);
/// str.title(): whatever follows something that is no letter begins a word.
std::string title_by_letters(std::string_view text);
/// The filter title, to which only white space and a few opening signs are between words.
std::string title_by_spaces(std::string_view text);

/// Every `from`, which is not empty, becomes `to`.
std::string replaced(std::string_view text, std::string_view from, std::string_view to);

}  // namespace oxbow::convert::jinja

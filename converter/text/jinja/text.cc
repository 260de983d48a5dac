#include "converter/text/jinja/text.h"

#include <algorithm>
#include <span>

#include "runtime/text/utf8.h"

namespace oxbow::convert::jinja {
namespace {

bool is_space(uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

size_t first_character_bytes(std::string_view text) {
  return std::max<size_t>(1, read_utf8(std::span(text.data(), text.size())).bytes);
}

std::string_view last_character(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) --begin;
  return text.substr(begin);
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
char to_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }
char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Upper case where a word begins, lower case elsewhere.
template <typename InWord>
std::string title(std::string_view text, InWord in_word) {
  std::string out;
  bool inside = false;
  for (const char c : text) {
    out += inside ? to_lower(c) : to_upper(c);
    inside = in_word(c);
  }
  return out;
}

}  // namespace

size_t space_bytes(std::string_view text) {
  if (text.empty()) return 0;
  const Utf8Character character = read_utf8(std::span(text.data(), text.size()));
  return character.kind == Utf8Character::Kind::kCharacter && is_space(character.code_point)
             ? character.bytes
             : 0;
}

std::string_view strip_left(std::string_view text) {
  while (const size_t bytes = space_bytes(text)) text.remove_prefix(bytes);
  return text;
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    const std::string_view last = last_character(text);
    if (space_bytes(last) == 0) break;
    text.remove_suffix(last.size());
  }
  return text;
}

std::string_view strip_left(std::string_view text, std::string_view set) {
  while (!text.empty()) {
    const std::string_view first = text.substr(0, first_character_bytes(text));
    if (set.find(first) == set.npos) break;
    text.remove_prefix(first.size());
  }
  return text;
}

std::string_view strip_right(std::string_view text, std::string_view set) {
  while (!text.empty()) {
    const std::string_view last = last_character(text);
    if (set.find(last) == set.npos) break;
    text.remove_suffix(last.size());
  }
  return text;
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    out.push_back(text.substr(0, first_character_bytes(text)));
    text.remove_prefix(out.back().size());
  }
  return out;
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  for (text = strip_left(text); !text.empty(); text = strip_left(text)) {
    size_t end = 0;
    while (end < text.size() && space_bytes(text.substr(end)) == 0) ++end;
    out.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), to_upper);
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), to_lower);
  return out;
}

std::string title_by_letters(std::string_view text) { return title(text, is_letter); }

std::string title_by_spaces(std::string_view text) {
  return title(text, [](char c) {
    return !is_space(static_cast<unsigned char>(c)) && c != '-' && c != '(' && c != '{' &&
           c != '[' && c != '<';
  });
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  size_t begin = 0;
  for (size_t found; (found = text.find(from, begin)) != text.npos; begin = found + from.size()) {
    out += text.substr(begin, found - begin);
    out += to;
  }
  return out += text.substr(begin);
}

}  // namespace oxbow::convert::jinja

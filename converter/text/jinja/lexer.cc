#include "converter/text/jinja/lexer.h"

#include <algorithm>
#include <string_view>

#include "converter/text/jinja/meter.h"
#include "converter/text/jinja/text.h"
#include "runtime/text/utf8.h"

namespace oxbow::convert::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

/// Every kind of newline becomes \n, and the last one goes.
std::string with_plain_newlines(const std::string& source) {
  std::string out;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(const std::string& source)
      : source_(with_plain_newlines(source)), rest_(source_) {}

  std::vector<Token> run() {
    while (!rest_.empty()) {
      const size_t begin = find_tag();
      std::string_view text = rest_.substr(0, begin);
      if (begin == rest_.size()) {
        add(Token::Kind::kText, text);
        break;
      }
      const char kind = rest_[begin + 1];
      const char sign = begin + 2 < rest_.size() ? rest_[begin + 2] : ' ';
      if (sign == '-') {
        text = strip_right(text);
      } else if (sign != '+' && kind != '{') {
        text = without_indentation(text);
      }
      if (!text.empty()) add(Token::Kind::kText, text);
      take(begin + 2 + (sign == '-' || sign == '+' ? 1 : 0));
      if (kind == '#') {
        skip_comment();
      } else {
        read_tag(kind);
      }
    }
    add(Token::Kind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  size_t find_tag() const {
    for (size_t at = rest_.find('{'); at != rest_.npos; at = rest_.find('{', at + 1)) {
      if (at + 1 < rest_.size() &&
          (rest_[at + 1] == '{' || rest_[at + 1] == '%' || rest_[at + 1] == '#')) {
        return at;
      }
    }
    return rest_.size();
  }

  std::string_view without_indentation(std::string_view text) const {
    const size_t newline = text.rfind('\n');
    if (newline == text.npos && !line_starts_) return text;
    const size_t line = newline == text.npos ? 0 : newline + 1;
    return strip_left(text.substr(line)).empty() ? text.substr(0, line) : text;
  }

  void add(Token::Kind kind, std::string_view text) {
    tokens_.push_back({kind, line_, std::string(text)});
  }

  void take(size_t bytes) {
    const std::string_view taken = rest_.substr(0, bytes);
    line_ += static_cast<int>(std::count(taken.begin(), taken.end(), '\n'));
    line_starts_ = !taken.empty() && taken.back() == '\n';
    rest_.remove_prefix(bytes);
  }

  /// The end of a tag, `bytes` long with the sign before it, and the white space that goes with it.
  void take_end(char sign, size_t bytes, bool is_output) {
    const std::string_view behind = rest_.substr(bytes);
    if (sign == '-') {
      bytes += behind.size() - strip_left(behind).size();
    } else if (sign != '+' && !is_output && !behind.empty() && behind[0] == '\n') {
      ++bytes;
    }
    take(bytes);
  }

  void skip_comment() {
    const size_t end = rest_.find("#}");
    if (end == rest_.npos) refuse(line_, "the comment is not closed, expected #}");
    take_end(end > 0 ? rest_[end - 1] : ' ', end + 2, false);
  }

  void read_tag(char kind) {
    const bool is_output = kind == '{';
    const std::string_view end = is_output ? "}}" : "%}";
    add(is_output ? Token::Kind::kOutputBegin : Token::Kind::kBlockBegin, "");
    const int first_line = line_;
    std::string open;  // brackets: the tag does not end inside them
    while (true) {
      while (const size_t bytes = space_bytes(rest_)) take(bytes);
      if (rest_.empty()) {
        refuse(first_line, "the tag is not closed, expected " + std::string(end));
      }
      if (open.empty()) {
        const char sign = rest_[0] == '-' || (rest_[0] == '+' && !is_output) ? rest_[0] : ' ';
        const size_t at = sign == ' ' ? 0 : 1;
        if (rest_.substr(at, 2) == end) {
          add(is_output ? Token::Kind::kOutputEnd : Token::Kind::kBlockEnd, "");
          take_end(sign, at + 2, is_output);
          return;
        }
      }
      read_token(open);
    }
  }

  void read_token(std::string& open) {
    const char c = rest_[0];
    if (is_digit(c)) {
      read_integer();
    } else if (begins_name(c)) {
      read_name();
    } else if (c == '\'' || c == '"') {
      read_string();
    } else {
      read_operator(open);
    }
  }

  void read_integer() {
    size_t size = 0;
    while (size < rest_.size() && is_digit(rest_[size])) ++size;
    const char next = size < rest_.size() ? rest_[size] : ' ';
    const bool has_fraction = next == '.' && size + 1 < rest_.size() && is_digit(rest_[size + 1]);
    if (has_fraction || begins_name(next) || (size > 1 && rest_[0] == '0')) {
      refuse(line_, "the number at " + quoted(std::string(rest_.substr(0, size + 1))) +
                        " is not supported, only decimal integers are");
    }
    add(Token::Kind::kInteger, rest_.substr(0, size));
    take(size);
  }

  void read_name() {
    size_t size = 0;
    while (size < rest_.size() && (begins_name(rest_[size]) || is_digit(rest_[size]))) ++size;
    const std::string_view name = rest_.substr(0, size);
    if (size > kMaxNameBytes || !is_ascii(name)) {
      refuse(line_, "the name " + quoted(std::string(name)) + " is not supported, expected up to " +
                        std::to_string(kMaxNameBytes) + " ASCII characters");
    }
    // What stands in it is not made of tokens.
    if (name == "raw" && tokens_.back().kind == Token::Kind::kBlockBegin) {
      refuse(line_, "the tag \"raw\" is not supported");
    }
    add(Token::Kind::kName, name);
    take(size);
  }

  void read_string() {
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != rest_[0]) end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) refuse(line_, "the string is not closed");
    add(Token::Kind::kString, unescaped(rest_.substr(1, end - 1)));
    take(end + 1);
  }

  std::string unescaped(std::string_view text) const {
    std::string out;
    while (!text.empty()) {
      const size_t plain = std::min(text.find('\\'), text.size());
      out += text.substr(0, plain);
      text.remove_prefix(plain);
      if (!text.empty()) append_escape(text, out);
    }
    return out;
  }

  /// Takes an escape, as Python has them, from the front of `text`.
  void append_escape(std::string_view& text, std::string& out) const {
    constexpr std::string_view kNames = "\\'\"abfnrtv\n";
    constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
    const char c = text[1];  // a string never ends in a lone backslash
    if (const size_t at = kNames.find(c); at != kNames.npos) {
      if (at < kMeanings.size()) out += kMeanings[at];
      text.remove_prefix(2);
      return;
    }
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0) {
      if (is_digit(c) || c == 'N' || (c & 0x80) != 0) {
        refuse(line_, "the escape " + quoted(std::string(text.substr(0, 2))) + " is not supported");
      }
      out += text.substr(0, 2);  // no escape at all: the backslash stays
      text.remove_prefix(2);
      return;
    }
    const std::string_view hex = text.substr(2, digits);
    uint32_t value = 0;
    for (const char digit : hex) {
      const size_t place = std::string_view("0123456789abcdef").find(lower({&digit, 1}));
      if (place > 15) refuse(line_, "an escape lacks hexadecimal digits");
      value = value << 4 | static_cast<uint32_t>(place);
    }
    if (hex.size() != digits || !is_code_point(value)) {
      refuse(line_, "an escape is not a Unicode character");
    }
    char bytes[kMaxCharacterBytes];
    out.append(bytes, write_utf8(value, bytes));
    text.remove_prefix(2 + digits);
  }

  void read_operator(std::string& open) {
    for (const std::string_view two : {"==", "!=", ">=", "<=", "//", "**"}) {
      if (rest_.substr(0, 2) == two) {
        add(Token::Kind::kOperator, two);
        take(2);
        return;
      }
    }
    const char c = rest_[0];
    if (std::string_view("+-/*%~[](){}<>=.:|,").find(c) == std::string_view::npos) {
      refuse(line_, "unexpected " + quoted(std::string(1, c)));
    }
    if (c == '(') open += ')';
    if (c == '[') open += ']';
    if (c == '{') open += '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) refuse(line_, "unexpected " + quoted({c}));
      open.pop_back();
    }
    add(Token::Kind::kOperator, rest_.substr(0, 1));
    take(1);
  }

  const std::string source_;
  std::string_view rest_;
  std::vector<Token> tokens_;
  int line_ = 1;
  bool line_starts_ = true;
};

}  // namespace

std::vector<Token> read_tokens(const std::string& source) { return Lexer(source).run(); }

}  // namespace oxbow::convert::jinja

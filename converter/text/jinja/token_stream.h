#pragma once

// The parser's place among the tokens, and how deep it is.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/text/jinja/lexer.h"
#include "converter/text/jinja/meter.h"

namespace oxbow::convert::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  int line() const { return current().line; }

  /// The current token, which is left behind. The last one stays.
  const Token& take() {
    const Token& token = tokens_[at_];
    if (token.kind != Token::Kind::kEnd) ++at_;
    return token;
  }

  bool is(Token::Kind kind) const { return current().kind == kind; }
  bool is_operator(std::string_view text) const {
    return is(Token::Kind::kOperator) && current().text == text;
  }
  bool is_name(std::string_view text) const {
    return is(Token::Kind::kName) && current().text == text;
  }
  bool next_is_name(std::string_view text) const {
    return at_ + 1 < tokens_.size() && tokens_[at_ + 1].kind == Token::Kind::kName &&
           tokens_[at_ + 1].text == text;
  }

  bool skip_operator(std::string_view text) { return is_operator(text) && (++at_, true); }
  bool skip_name(std::string_view text) { return is_name(text) && (++at_, true); }

  void expect_operator(std::string_view text) {
    if (!skip_operator(text)) unexpected("\"" + std::string(text) + "\"");
  }
  void expect(Token::Kind kind, const char* expected) {
    if (!is(kind)) unexpected(expected);
    take();
  }
  std::string expect_name() {
    if (!is(Token::Kind::kName)) unexpected("a name");
    return take().text;
  }

  [[noreturn]] void unexpected(const std::string& expected) const {
    const Token& token = current();
    const bool has_text = token.kind == Token::Kind::kName ||
                          token.kind == Token::Kind::kOperator ||
                          token.kind == Token::Kind::kInteger;
    refuse(token.line, "unexpected " +
                           (has_text                               ? quoted(token.text)
                            : token.kind == Token::Kind::kString   ? "string " + quoted(token.text)
                            : token.kind == Token::Kind::kText     ? "text"
                            : token.kind == Token::Kind::kEnd      ? "end of the template"
                            : token.kind == Token::Kind::kBlockEnd ? "%}"
                                                                   : "tag") +
                           ", expected " + expected);
  }

  /// Lives as long as one level of brackets or tags is parsed.
  class Level {
   public:
    explicit Level(TokenStream& stream) : stream_(stream) {
      if (++stream_.depth_ > kMaxParseDepth) {
        refuse(stream_.line(), "nested deeper than " + std::to_string(kMaxParseDepth) + " levels");
      }
    }
    ~Level() { --stream_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    TokenStream& stream_;
  };

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace oxbow::convert::jinja

#include "converter/text/jinja/parser.h"

#include <initializer_list>
#include <utility>

namespace oxbow::convert::jinja {
namespace {

using Kind = Statement::Kind;

class Parser {
 public:
  explicit Parser(const std::string& source) : stream_(read_tokens(source)) {}

  Body run() {
    Body out = parse_body({});
    if (!stream_.is(Token::Kind::kEnd)) stream_.unexpected("the end of the template");
    return out;
  }

 private:
  /// Up to a block tag with one of these names, of which `{%` has been taken, or to the end.
  Body parse_body(std::initializer_list<const char*> ends) {
    const TokenStream::Level level(stream_);
    Body out;
    while (!stream_.is(Token::Kind::kEnd)) {
      const Token& token = stream_.take();
      if (token.kind == Token::Kind::kText) {
        Statement text = make(Kind::kText, token.line);
        text.text = token.text;
        out.push_back(std::move(text));
      } else if (token.kind == Token::Kind::kOutputBegin) {
        Statement output = make(Kind::kOutput, token.line);
        output.expressions.push_back(parse_expression(stream_));
        stream_.expect(Token::Kind::kOutputEnd, "}}");
        out.push_back(std::move(output));
      } else {  // kBlockBegin: the lexer puts nothing else between tags
        for (const char* end : ends) {
          if (stream_.is_name(end)) return out;
        }
        out.push_back(parse_statement());
      }
    }
    if (ends.size() != 0) stream_.unexpected("{% " + std::string(*(ends.end() - 1)) + " %}");
    return out;
  }

  Statement parse_statement() {
    const int line = stream_.line();
    const std::string name = stream_.expect_name();
    if (name == "if") return parse_if(line);
    if (name == "for") return parse_for(line);
    if (name == "set") return parse_set(line);
    if (name == "macro") return parse_macro(line);
    if (name == "generation") return parse_generation(line);
    if (name == "break" || name == "continue") {
      if (loops_ == 0) refuse(line, "the tag " + quoted(name) + " stands outside of a loop");
      end_tag();
      return make(name == "break" ? Kind::kBreak : Kind::kContinue, line);
    }
    refuse(line, "the tag " + quoted(name) + " is not supported here");
  }

  Statement parse_if(int line) {
    Statement out = make(Kind::kIf, line);
    do {
      out.expressions.push_back(parse_condition(stream_));
      end_tag();
      out.bodies.push_back(parse_body({"elif", "else", "endif"}));
    } while (stream_.skip_name("elif"));
    if (stream_.skip_name("else")) {
      end_tag();
      out.bodies.push_back(parse_body({"endif"}));
    }
    end_tag("endif");
    return out;
  }

  Statement parse_for(int line) {
    Statement out = make(Kind::kFor, line);
    do {
      out.names.push_back(new_name());
    } while (stream_.skip_operator(","));
    if (!stream_.skip_name("in")) stream_.unexpected("\"in\"");
    out.expressions.push_back(parse_condition(stream_));
    if (stream_.skip_name("if")) out.expressions.push_back(parse_expression(stream_));
    if (stream_.is_name("recursive")) refuse(stream_.line(), "recursive loops are not supported");
    end_tag();
    ++loops_;
    out.bodies.push_back(parse_body({"else", "endfor"}));
    --loops_;
    if (stream_.skip_name("else")) {
      end_tag();
      out.bodies.push_back(parse_body({"endfor"}));
    }
    end_tag("endfor");
    return out;
  }

  Statement parse_set(int line) {
    Statement out = make(Kind::kSet, line);
    out.text = new_name();
    if (stream_.skip_operator(".")) out.attribute = stream_.expect_name();
    if (stream_.skip_operator("=")) {
      out.expressions.push_back(parse_expression(stream_));
      end_tag();
      return out;
    }
    end_tag();
    out.bodies.push_back(parse_body({"endset"}));
    end_tag("endset");
    return out;
  }

  Statement parse_macro(int line) {
    Statement out = make(Kind::kMacro, line);
    out.text = new_name();
    stream_.expect_operator("(");
    while (!stream_.is_operator(")")) {
      out.names.push_back(new_name());
      const bool has_default = stream_.skip_operator("=");
      out.expressions.push_back(has_default ? parse_expression(stream_) : nullptr);
      if (stream_.is_operator(")")) break;
      stream_.expect_operator(",");
    }
    stream_.expect_operator(")");
    end_tag();
    parse_apart(out, "endmacro");
    return out;
  }

  /// Marks what an assistant said, for those who train; prints what is in it.
  Statement parse_generation(int line) {
    Statement out = make(Kind::kGeneration, line);
    end_tag();
    parse_apart(out, "endgeneration");
    return out;
  }

  /// A body that no loop around it is left from.
  void parse_apart(Statement& out, const char* end) {
    const int loops = std::exchange(loops_, 0);
    out.bodies.push_back(parse_body({end}));
    loops_ = loops;
    end_tag(end);
  }

  std::string new_name() {
    if (stream_.is(Token::Kind::kName) && is_reserved(stream_.current().text)) {
      stream_.unexpected("a name");
    }
    return stream_.expect_name();
  }

  void end_tag() { stream_.expect(Token::Kind::kBlockEnd, "%}"); }
  void end_tag(const char* name) {
    if (!stream_.skip_name(name)) stream_.unexpected("{% " + std::string(name) + " %}");
    end_tag();
  }

  static Statement make(Kind kind, int line) {
    Statement out;
    out.kind = kind;
    out.line = line;
    return out;
  }

  TokenStream stream_;
  int loops_ = 0;
};

}  // namespace

Body parse_template(const std::string& source) { return Parser(source).run(); }

}  // namespace oxbow::convert::jinja

#include <charconv>
#include <utility>

#include "converter/text/jinja/parser.h"

namespace oxbow::convert::jinja {
namespace {

using Kind = Expression::Kind;

ExpressionPtr parse_unary(TokenStream& stream, bool with_filters);

ExpressionPtr make(Kind kind, int line) {
  auto out = std::make_unique<Expression>();
  out->kind = kind;
  out->line = line;
  return out;
}

ExpressionPtr make_constant(Value value, int line) {
  ExpressionPtr out = make(Kind::kConstant, line);
  out->constant = std::move(value);
  return out;
}

/// operand (operator operand)*, or the operand alone. `take` returns the operator it took, or "".
template <typename Operand, typename Take>
ExpressionPtr parse_chain(TokenStream& stream, Kind kind, Operand operand, Take take) {
  const int line = stream.line();
  ExpressionPtr first = operand(stream);
  std::string sign = take(stream);
  if (sign.empty()) return first;
  ExpressionPtr out = make(kind, line);
  out->parts.push_back(std::move(first));
  for (; !sign.empty(); sign = take(stream)) {
    out->operators.push_back(sign);
    out->parts.push_back(operand(stream));
  }
  return out;
}

template <size_t N>
std::string take_one_of(TokenStream& stream, const char* const (&signs)[N]) {
  for (const char* sign : signs) {
    if (stream.skip_operator(sign)) return sign;
  }
  return "";
}

ExpressionPtr parse_integer(TokenStream& stream) {
  const Token& token = stream.take();
  int64_t value = 0;
  const char* end = token.text.data() + token.text.size();
  if (std::from_chars(token.text.data(), end, value).ec != std::errc()) {
    refuse(token.line, "the number " + quoted(token.text) + " is too large");
  }
  return make_constant(value, token.line);
}

/// (a), (), (a,) and (a, b)
ExpressionPtr parse_parentheses(TokenStream& stream) {
  const int line = stream.line();
  stream.expect_operator("(");
  ExpressionPtr tuple = make(Kind::kTuple, line);
  bool has_comma = false;
  while (!stream.is_operator(")")) {
    tuple->parts.push_back(parse_expression(stream));
    if (stream.is_operator(")")) break;
    stream.expect_operator(",");
    has_comma = true;
  }
  stream.expect_operator(")");
  if (tuple->parts.size() == 1 && !has_comma) return std::move(tuple->parts[0]);
  return tuple;
}

/// [a, b] and {a: b, c: d}
ExpressionPtr parse_collection(TokenStream& stream, bool is_dict) {
  ExpressionPtr out = make(is_dict ? Kind::kDict : Kind::kList, stream.line());
  const char* end = is_dict ? "}" : "]";
  stream.take();
  while (!stream.is_operator(end)) {
    out->parts.push_back(parse_expression(stream));
    if (is_dict) {
      stream.expect_operator(":");
      out->parts.push_back(parse_expression(stream));
    }
    if (stream.is_operator(end)) break;
    stream.expect_operator(",");
  }
  stream.expect_operator(end);
  return out;
}

ExpressionPtr parse_primary(TokenStream& stream) {
  const int line = stream.line();
  switch (stream.current().kind) {
    case Token::Kind::kInteger:
      return parse_integer(stream);
    case Token::Kind::kString: {
      std::string text;
      while (stream.is(Token::Kind::kString)) text += stream.take().text;
      return make_constant(std::make_shared<const std::string>(std::move(text)), line);
    }
    case Token::Kind::kName: {
      const std::string& name = stream.current().text;
      if (name == "true" || name == "True" || name == "false" || name == "False") {
        return make_constant(name == "true" || name == "True", stream.take().line);
      }
      if (name == "none" || name == "None") {
        stream.take();
        return make_constant(None{}, line);
      }
      if (is_reserved(name)) stream.unexpected("a value");
      ExpressionPtr out = make(Kind::kName, line);
      out->name = stream.take().text;
      return out;
    }
    default:
      if (stream.is_operator("(")) return parse_parentheses(stream);
      if (stream.is_operator("[")) return parse_collection(stream, false);
      if (stream.is_operator("{")) return parse_collection(stream, true);
      stream.unexpected("a value");
  }
}

std::vector<Argument> parse_arguments(TokenStream& stream) {
  std::vector<Argument> out;
  stream.expect_operator("(");
  while (!stream.is_operator(")")) {
    if (stream.is_operator("*") || stream.is_operator("**")) {
      refuse(stream.line(),
             "arguments with " + quoted(stream.current().text) + " are not supported");
    }
    Argument argument;
    argument.value = parse_expression(stream);
    if (argument.value->kind == Kind::kName && stream.skip_operator("=")) {
      argument.name = argument.value->name;
      argument.value = parse_expression(stream);
    } else if (!out.empty() && !out.back().name.empty()) {
      refuse(stream.line(), "an argument without a name follows one with a name");
    }
    out.push_back(std::move(argument));
    if (stream.is_operator(")")) break;
    stream.expect_operator(",");
  }
  stream.expect_operator(")");
  return out;
}

/// [a] and [a:b:c]
Access parse_subscript(TokenStream& stream) {
  Access out{Access::Kind::kItem, stream.line(), "", {}, false};
  stream.expect_operator("[");
  std::vector<ExpressionPtr> parts(1);
  while (!stream.is_operator("]")) {
    if (stream.skip_operator(":")) {
      out.kind = Access::Kind::kSlice;
      parts.emplace_back();
    } else if (parts.back() == nullptr) {
      parts.back() = parse_expression(stream);
    } else {
      stream.unexpected("\"]\"");
    }
  }
  if (parts.size() > 3 || (parts.size() == 1 && parts[0] == nullptr)) stream.unexpected("an index");
  stream.expect_operator("]");
  if (out.kind == Access::Kind::kSlice) parts.resize(3);
  for (ExpressionPtr& part : parts) out.arguments.push_back({"", std::move(part)});
  return out;
}

/// Behind `is`: [not] name, and an argument with or without brackets.
Access parse_test(TokenStream& stream) {
  Access out{Access::Kind::kTest, stream.line(), "", {}, false};
  out.is_negated = stream.skip_name("not");
  out.name = stream.expect_name();
  const bool is_argument = stream.is(Token::Kind::kString) || stream.is(Token::Kind::kInteger) ||
                           stream.is_operator("[") || stream.is_operator("{") ||
                           (stream.is(Token::Kind::kName) && !stream.is_name("else") &&
                            !stream.is_name("or") && !stream.is_name("and"));
  if (stream.is_operator("(")) {
    out.arguments = parse_arguments(stream);
  } else if (is_argument) {
    out.arguments.push_back({"", parse_unary(stream, false)});
  }
  return out;
}

bool parse_access(TokenStream& stream, bool with_filters, std::vector<Access>& out) {
  const int line = stream.line();
  if (stream.skip_operator(".")) {
    out.push_back({Access::Kind::kAttribute, line, stream.expect_name(), {}, false});
  } else if (stream.is_operator("[")) {
    out.push_back(parse_subscript(stream));
  } else if (stream.is_operator("(")) {
    out.push_back({Access::Kind::kCall, line, "", parse_arguments(stream), false});
  } else if (with_filters && stream.skip_operator("|")) {
    Access filter{Access::Kind::kFilter, line, stream.expect_name(), {}, false};
    if (stream.is_operator("(")) filter.arguments = parse_arguments(stream);
    out.push_back(std::move(filter));
  } else if (with_filters && stream.skip_name("is")) {
    out.push_back(parse_test(stream));
  } else {
    return false;
  }
  return true;
}

/// [-] value and what follows it. What binds weaker than `-` follows the whole.
ExpressionPtr parse_unary(TokenStream& stream, bool with_filters) {
  const int line = stream.line();
  ExpressionPtr base;
  if (stream.skip_operator("-")) {
    const TokenStream::Level level(stream);
    base = make(Kind::kNegative, line);
    base->parts.push_back(parse_unary(stream, false));
  } else {
    base = parse_primary(stream);
  }
  ExpressionPtr out = make(Kind::kAccess, line);
  bool after_filter = false;
  while (parse_access(stream, with_filters, out->accesses)) {
    const Access::Kind kind = out->accesses.back().kind;
    // An attribute of a filter's result needs brackets, a call does not.
    if (after_filter && (kind == Access::Kind::kAttribute || kind == Access::Kind::kItem ||
                         kind == Access::Kind::kSlice)) {
      refuse(out->accesses.back().line, "an attribute or index directly behind a filter or test");
    }
    after_filter |= kind == Access::Kind::kFilter || kind == Access::Kind::kTest;
  }
  if (out->accesses.empty()) return base;
  out->parts.push_back(std::move(base));
  return out;
}

ExpressionPtr parse_product(TokenStream& stream) {
  return parse_chain(
      stream, Kind::kArithmetic, [](TokenStream& s) { return parse_unary(s, true); },
      [](TokenStream& s) {
        if (s.is_operator("**")) refuse(s.line(), "the operator \"**\" is not supported");
        return take_one_of(s, {"*", "//", "/", "%"});
      });
}

ExpressionPtr parse_concatenation(TokenStream& stream) {
  return parse_chain(stream, Kind::kConcatenation, parse_product,
                     [](TokenStream& s) { return take_one_of(s, {"~"}); });
}

ExpressionPtr parse_sum(TokenStream& stream) {
  return parse_chain(stream, Kind::kArithmetic, parse_concatenation, [](TokenStream& s) {
    return take_one_of(s, {"+", "-"});
  });
}

ExpressionPtr parse_comparison(TokenStream& stream) {
  return parse_chain(stream, Kind::kCompare, parse_sum, [](TokenStream& s) -> std::string {
    if (s.skip_name("in")) return "in";
    if (s.is_name("not") && s.next_is_name("in")) {
      s.take();
      s.take();
      return "not in";
    }
    return take_one_of(s, {"==", "!=", "<=", ">=", "<", ">"});
  });
}

ExpressionPtr parse_not(TokenStream& stream) {
  const int line = stream.line();
  if (!stream.skip_name("not")) return parse_comparison(stream);
  const TokenStream::Level level(stream);
  ExpressionPtr out = make(Kind::kNot, line);
  out->parts.push_back(parse_not(stream));
  return out;
}

ExpressionPtr parse_and(TokenStream& stream) {
  return parse_chain(stream, Kind::kAnd, parse_not,
                     [](TokenStream& s) -> std::string { return s.skip_name("and") ? "and" : ""; });
}

}  // namespace

bool is_reserved(const std::string& name) {
  for (const char* word : {"true", "True", "false", "False", "none", "None", "and", "or", "not",
                           "if", "elif", "else", "in", "is"}) {
    if (name == word) return true;
  }
  return false;
}

ExpressionPtr parse_condition(TokenStream& stream) {
  return parse_chain(stream, Kind::kOr, parse_and,
                     [](TokenStream& s) -> std::string { return s.skip_name("or") ? "or" : ""; });
}

ExpressionPtr parse_expression(TokenStream& stream) {
  const TokenStream::Level level(stream);
  const int line = stream.line();
  ExpressionPtr value = parse_condition(stream);
  if (!stream.skip_name("if")) return value;
  ExpressionPtr out = make(Kind::kChoice, line);
  out->parts.push_back(std::move(value));
  out->parts.push_back(parse_condition(stream));
  if (stream.skip_name("else")) out->parts.push_back(parse_expression(stream));
  return out;
}

}  // namespace oxbow::convert::jinja

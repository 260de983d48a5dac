#pragma once

// From tokens to a tree, by recursive descent. Statements are in parser.cc, expressions in
// expressions.cc.

#include <string>

#include "converter/text/jinja/syntax.h"
#include "converter/text/jinja/token_stream.h"

namespace oxbow::convert::jinja {

/// Throws InputError.
Body parse_template(const std::string& source);

/// With `a if b else c`, where it is not a part of something else.
ExpressionPtr parse_expression(TokenStream& stream);
/// Without it, as after `if` and `in`.
ExpressionPtr parse_condition(TokenStream& stream);

/// Names that mean something else.
bool is_reserved(const std::string& name);

}  // namespace oxbow::convert::jinja

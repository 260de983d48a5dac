#pragma once

// From a template's bytes to tokens. White space is settled here: `-` and `+` at the tags, the
// newline after a block tag and the indentation before one (trim_blocks and lstrip_blocks).

#include <string>
#include <vector>

namespace oxbow::convert::jinja {

struct Token {
  enum class Kind {
    kText,
    kOutputBegin,  // {{
    kOutputEnd,    // }}
    kBlockBegin,   // {%
    kBlockEnd,     // %}
    kName,
    kString,
    kInteger,
    kOperator,
    kEnd,  // always the last
  };
  Kind kind = Kind::kEnd;
  int line = 1;
  std::string text;  // of a string: what it means, escapes resolved
};

/// `source` is UTF-8 that has been checked. Throws InputError.
std::vector<Token> read_tokens(const std::string& source);

}  // namespace oxbow::convert::jinja

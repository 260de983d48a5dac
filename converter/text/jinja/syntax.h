#pragma once

// A template after parsing. What can be repeated without brackets (sums, comparisons, attributes,
// elif) is a list and not a nest, so that the tree is no deeper than the template's brackets and
// tags.

#include <memory>
#include <string>
#include <vector>

#include "converter/text/jinja/value.h"

namespace oxbow::convert::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Argument {
  std::string name;  // empty: given by its place
  ExpressionPtr value;
};

/// What can follow a value: .name [item] [a:b:c] (arguments) |filter is test
struct Access {
  enum class Kind { kAttribute, kItem, kSlice, kCall, kFilter, kTest };
  Kind kind;
  int line = 1;
  std::string name;                 // of an attribute, a filter, a test
  std::vector<Argument> arguments;  // of a slice: three, null where left out
  bool is_negated = false;          // is not
};

struct Expression {
  enum class Kind {
    kConstant,
    kName,
    kList,
    kTuple,
    kDict,        // parts: key, value, key, value...
    kNot,         // parts: one
    kNegative,    // parts: one
    kAnd,         // parts
    kOr,          // parts
    kCompare,     // parts, `operators` between them
    kArithmetic,  // parts, `operators` between them, from left to right
    kConcatenation,
    kChoice,  // parts: value, condition and, unless left out, what else
    kAccess,  // parts: one, and `accesses` one after the other
  };
  Kind kind;
  int line = 1;
  std::string name;
  Value constant;
  std::vector<ExpressionPtr> parts;
  std::vector<std::string> operators;
  std::vector<Access> accesses;
};

struct Statement;
using Body = std::vector<Statement>;

struct Statement {
  enum class Kind {
    kText,
    kOutput,  // expressions: one
    kIf,      // expressions: conditions; bodies: one each and perhaps one more
    kFor,  // names; expressions: list, perhaps a condition; bodies: one, perhaps another for no elements
    kSet,         // text[.attribute] = expressions[0], or bodies[0] when there is none
    kMacro,       // text(names), expressions: defaults or null; bodies: one
    kGeneration,  // bodies: one
    kBreak,
    kContinue,
  };
  Kind kind;
  int line = 1;
  std::string text;
  std::string attribute;
  std::vector<std::string> names;
  std::vector<ExpressionPtr> expressions;
  std::vector<Body> bodies;
};

}  // namespace oxbow::convert::jinja

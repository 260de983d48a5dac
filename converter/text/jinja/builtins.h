#pragma once

// Filters, tests and methods, found by name. What is not known is refused when it is used, not when
// it is read: a branch that is not taken cannot change what is printed.

#include <string>
#include <utility>
#include <vector>

#include "converter/text/jinja/value.h"

namespace oxbow::convert::jinja {

struct Arguments {
  std::vector<Value> places;
  std::vector<std::pair<std::string, Value>> names;

  /// The argument at a place or of that name, null when there is none.
  const Value* find(size_t place, const char* name) const;
};

/// Refuses more than `count` arguments by place, and names other than those in `names`.
void check_arguments(const Meter& meter, const std::string& what, const Arguments& arguments,
                     size_t count, std::initializer_list<const char*> names = {});

Value apply_filter(Meter& meter, const std::string& name, const Value& value,
                   const Arguments& arguments);
bool apply_test(Meter& meter, const std::string& name, const Value& value,
                const Arguments& arguments);
Value call_method(Meter& meter, const Value& value, const std::string& name,
                  const Arguments& arguments);

/// a + b and so on, with what Python means by it.
Value calculate(Meter& meter, const std::string& sign, const Value& a, const Value& b);

}  // namespace oxbow::convert::jinja

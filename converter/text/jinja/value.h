#pragma once

// What expressions are made of. Values do not change and are shared, so copies are cheap; only a
// namespace can be written to, and like loops it belongs to the evaluator, so that nothing can own
// itself.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "converter/text/jinja/meter.h"

namespace oxbow::convert::jinja {

struct List;
struct Dict;
struct Namespace;
struct Loop;
struct Statement;

/// What a name stands for that nobody set: false, prints nothing, and has no attributes.
struct Undefined {
  std::string name;
};
struct None {};
/// One that every template has.
struct Function {
  std::string_view name;
};

using Text = std::shared_ptr<const std::string>;
using ListPtr = std::shared_ptr<const List>;
using DictPtr = std::shared_ptr<const Dict>;
using Value = std::variant<Undefined, None, bool, int64_t, Text, ListPtr, DictPtr, Namespace*,
                           const Loop*, const Statement*, Function>;

struct List {
  std::vector<Value> items;
  bool is_tuple = false;
  int depth = 1;
};
struct Dict {
  std::vector<std::pair<std::string, Value>> entries;
  int depth = 1;
};
struct Namespace {
  std::map<std::string, Value> names;
};
struct Loop {
  ListPtr list;
  size_t index = 0;
};

// Makers. They count what they make.
Value make_text(Meter& meter, std::string text);
Value make_list(Meter& meter, std::vector<Value> items, bool is_tuple = false);
Value make_dict(Meter& meter, std::vector<std::pair<std::string, Value>> entries);

/// "a string", "none", ...: for messages.
std::string kind_of(const Value& value);

bool is_true(const Value& value);
bool is_undefined(const Value& value);
/// Null when it is not a string.
const std::string* as_text(const Value& value);
/// Truth values count as 0 and 1. Null when it is no number.
const int64_t* as_integer(const Value& value, int64_t& storage);

/// What {{ value }} prints.
std::string to_text(Meter& meter, const Value& value);
std::string to_json(Meter& meter, const Value& value);

bool equal(Meter& meter, const Value& a, const Value& b);
/// Less than zero, zero or more, of two numbers or two strings.
int compare(Meter& meter, const Value& a, const Value& b);
bool contains(Meter& meter, const Value& container, const Value& value);

/// Null when the key is not there.
const Value* find(Meter& meter, const Dict& dict, const std::string& key);

/// What a loop over the value goes through.
ListPtr iterate(Meter& meter, const Value& value);
size_t length(Meter& meter, const Value& value);

/// value.name, value[key], value[begin:end:step] with null for what is left out.
Value attribute(Meter& meter, const Value& value, const std::string& name);
Value item(Meter& meter, const Value& value, const Value& key);
Value slice(Meter& meter, const Value& value, const Value* begin, const Value* end,
            const Value* step);

}  // namespace oxbow::convert::jinja

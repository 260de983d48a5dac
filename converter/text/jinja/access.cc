// value.name, value[key] and value[begin:end:step].

#include <algorithm>
#include <limits>
#include <string_view>

#include "converter/text/jinja/text.h"
#include "converter/text/jinja/value.h"

namespace oxbow::convert::jinja {
namespace {

// What Python's own types have. Such a name is never an undefined attribute, so it is refused where
// it is not one of the methods we know.
constexpr std::string_view kTextNames[] = {
    "capitalize",   "casefold",    "center",    "count",      "encode",       "endswith",
    "expandtabs",   "find",        "format",    "format_map", "index",        "isalnum",
    "isalpha",      "isascii",     "isdecimal", "isdigit",    "isidentifier", "islower",
    "isnumeric",    "isprintable", "isspace",   "istitle",    "isupper",      "join",
    "ljust",        "lower",       "lstrip",    "maketrans",  "partition",    "removeprefix",
    "removesuffix", "replace",     "rfind",     "rindex",     "rjust",        "rpartition",
    "rsplit",       "rstrip",      "split",     "splitlines", "startswith",   "strip",
    "swapcase",     "title",       "translate", "upper",      "zfill"};
constexpr std::string_view kListNames[] = {"append", "clear",   "copy",   "count",
                                           "extend", "index",   "insert", "pop",
                                           "remove", "reverse", "sort"};
constexpr std::string_view kDictNames[] = {"clear",      "copy",   "fromkeys", "get",
                                           "items",      "keys",   "pop",      "popitem",
                                           "setdefault", "update", "values"};

template <size_t N>
bool is_one_of(const std::string& name, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Value loop_attribute(const Meter& meter, const Loop& loop, const std::string& name) {
  const std::vector<Value>& items = loop.list->items;
  const auto integer = [](size_t value) { return Value(static_cast<int64_t>(value)); };
  if (name == "index") return integer(loop.index + 1);
  if (name == "index0") return integer(loop.index);
  if (name == "revindex") return integer(items.size() - loop.index);
  if (name == "revindex0") return integer(items.size() - loop.index - 1);
  if (name == "length") return integer(items.size());
  if (name == "first") return loop.index == 0;
  if (name == "last") return loop.index + 1 == items.size();
  if (name == "previtem") return loop.index == 0 ? Value(Undefined{name}) : items[loop.index - 1];
  if (name == "nextitem") {
    return loop.index + 1 == items.size() ? Value(Undefined{name}) : items[loop.index + 1];
  }
  meter.refuse("loop." + name + " is not supported");
}

/// The characters of a string, the elements of a list: what can be cut.
std::vector<Value> parts_of(Meter& meter, const Value& value) {
  if (as_text(value) == nullptr && !std::holds_alternative<ListPtr>(value)) {
    meter.refuse(kind_of(value) + " cannot be cut into slices");
  }
  const ListPtr all = iterate(meter, value);
  meter.step(all->items.size());
  return all->items;
}

/// A place of a slice as Python understands it: negative from the end, and never outside.
int64_t clamped(const Meter& meter, const Value* value, int64_t size, int64_t lowest,
                int64_t highest, int64_t otherwise) {
  if (value == nullptr || std::holds_alternative<None>(*value)) return otherwise;
  int64_t storage = 0;
  const int64_t* place = as_integer(*value, storage);
  if (place == nullptr) meter.refuse("a slice begins or ends at " + kind_of(*value));
  return std::clamp(*place < 0 ? *place + size : *place, lowest, highest);
}

}  // namespace

Value attribute(Meter& meter, const Value& value, const std::string& name) {
  meter.step();
  if (is_undefined(value)) {
    meter.refuse(kind_of(value) + " has no attribute " + quoted(name));
  }
  const Undefined missing{name.substr(0, kMaxNameBytes)};
  if (const auto* space = std::get_if<Namespace*>(&value)) {
    const auto found = (*space)->names.find(name);
    return found == (*space)->names.end() ? Value(missing) : found->second;
  }
  if (const auto* loop = std::get_if<const Loop*>(&value))
    return loop_attribute(meter, **loop, name);
  const bool is_text = as_text(value) != nullptr;
  const bool is_list = std::holds_alternative<ListPtr>(value);
  const auto* dict = std::get_if<DictPtr>(&value);
  if ((is_text && is_one_of(name, kTextNames)) || (is_list && is_one_of(name, kListNames)) ||
      (dict != nullptr && is_one_of(name, kDictNames)) || name.starts_with("_")) {
    meter.refuse("the attribute " + quoted(name) + " of " + kind_of(value) + " is not supported");
  }
  if (dict != nullptr) {
    const Value* found = find(meter, **dict, name);
    return found == nullptr ? Value(missing) : *found;
  }
  if (is_text || is_list || std::holds_alternative<None>(value)) return missing;
  meter.refuse("attributes of " + kind_of(value) + " are not supported");
}

Value item(Meter& meter, const Value& value, const Value& key) {
  meter.step();
  if (const std::string* name = as_text(key)) {
    if (const auto* dict = std::get_if<DictPtr>(&value)) {
      if (const Value* found = find(meter, **dict, *name)) return *found;
    }
    return attribute(meter, value, *name);
  }
  int64_t storage = 0;
  const int64_t* place = as_integer(key, storage);
  const std::string* text = as_text(value);
  const auto* list = std::get_if<ListPtr>(&value);
  if (place == nullptr || (text == nullptr && list == nullptr)) {
    meter.refuse(kind_of(value) + " cannot be asked for " + kind_of(key));
  }
  const ListPtr all = iterate(meter, value);
  const auto size = static_cast<int64_t>(all->items.size());
  if (*place >= size || *place < -size) return Undefined{std::to_string(*place)};
  return all->items[static_cast<size_t>(*place < 0 ? *place + size : *place)];
}

Value slice(Meter& meter, const Value& value, const Value* begin, const Value* end,
            const Value* step) {
  const std::vector<Value> parts = parts_of(meter, value);
  const auto size = static_cast<int64_t>(parts.size());
  int64_t storage = 1;
  const int64_t* given = step == nullptr || std::holds_alternative<None>(*step)
                             ? &storage
                             : as_integer(*step, storage);
  if (given == nullptr || *given == 0) meter.refuse("the step of a slice must be an integer but 0");
  // A larger step takes one element as well.
  const int64_t stride = std::clamp(*given, -size - 1, size + 1);
  const bool forward = stride > 0;
  const int64_t lowest = forward ? 0 : -1, highest = forward ? size : size - 1;
  const int64_t first = clamped(meter, begin, size, lowest, highest, forward ? lowest : highest);
  const int64_t last = clamped(meter, end, size, lowest, highest, forward ? highest : lowest);

  std::vector<Value> items;
  for (int64_t i = first; forward ? i < last : i > last; i += stride) {
    items.push_back(parts[static_cast<size_t>(i)]);
  }
  if (const auto* list = std::get_if<ListPtr>(&value)) {
    return make_list(meter, std::move(items), (*list)->is_tuple);
  }
  std::string text;
  for (const Value& character : items) text += *as_text(character);
  return make_text(meter, std::move(text));
}

}  // namespace oxbow::convert::jinja

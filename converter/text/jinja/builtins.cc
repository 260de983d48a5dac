#include "converter/text/jinja/builtins.h"

#include <algorithm>

#include "converter/text/jinja/text.h"

namespace oxbow::convert::jinja {
namespace {

/// A string argument that must be there.
const std::string& text_argument(const Meter& meter, const std::string& what,
                                 const Arguments& arguments, size_t place, const char* name) {
  const Value* value = arguments.find(place, name);
  if (value == nullptr) meter.refuse(what + " lacks an argument");
  const std::string* text = as_text(*value);
  if (text == nullptr) meter.refuse(what + " expects a string, not " + kind_of(*value));
  return *text;
}

void check_ascii(const Meter& meter, const std::string& what, const std::string& text) {
  if (!is_ascii(text)) meter.refuse(what + " of text that is not ASCII is not supported");
}

Value replace(Meter& meter, const std::string& what, const std::string& text,
              const Arguments& arguments) {
  check_arguments(meter, what, arguments, 2);
  const std::string& from = text_argument(meter, what, arguments, 0, "old");
  const std::string& to = text_argument(meter, what, arguments, 1, "new");
  if (from.empty()) meter.refuse(what + " of nothing is not supported");
  meter.search(text.size(), from.size());
  // The most it can become, counted before it is made.
  if (to.size() > from.size()) {
    size_t count = 0;
    for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + from.size())) {
      ++count;
    }
    meter.text(text.size() + std::min(count, kMaxTextBytes) * std::min(to.size(), kMaxTextBytes));
  }
  return make_text(meter, replaced(text, from, to));
}

/// strip, lstrip, rstrip and trim: of white space, or of the characters given.
Value strip(Meter& meter, const std::string& what, const std::string& text,
            const Arguments& arguments, bool left, bool right) {
  check_arguments(meter, what, arguments, 1, {"chars"});
  const Value* given = arguments.find(0, "chars");
  std::string_view out = text;
  if (given == nullptr || std::holds_alternative<None>(*given)) {
    if (left) out = strip_left(out);
    if (right) out = strip_right(out);
  } else {
    const std::string& set = text_argument(meter, what, arguments, 0, "chars");
    meter.search(text.size(), set.size());
    if (left) out = strip_left(out, set);
    if (right) out = strip_right(out, set);
  }
  return make_text(meter, std::string(out));
}

Value split(Meter& meter, const std::string& text, const Arguments& arguments) {
  const std::string what = "the method \"split\"";
  check_arguments(meter, what, arguments, 2, {"sep", "maxsplit"});
  std::vector<Value> items;
  const auto add = [&](std::string_view part) {
    items.push_back(make_text(meter, std::string(part)));
  };
  const Value* separator = arguments.find(0, "sep");
  const Value* limit = arguments.find(1, "maxsplit");
  int64_t storage = -1;
  const int64_t* most = limit == nullptr ? &storage : as_integer(*limit, storage);
  if (most == nullptr) meter.refuse(what + " expects an integer, not " + kind_of(*limit));
  if (separator == nullptr || std::holds_alternative<None>(*separator)) {
    if (*most >= 0) meter.refuse(what + " at white space has no limit here");
    meter.bytes(text.size());
    for (const std::string_view word : words(text)) add(word);
    return make_list(meter, std::move(items));
  }
  const std::string& sign = text_argument(meter, what, arguments, 0, "sep");
  if (sign.empty()) meter.refuse(what + " expects a separator that is not empty");
  meter.search(text.size(), sign.size());
  size_t begin = 0;
  for (int64_t left = *most; left != 0; --left) {
    const size_t found = text.find(sign, begin);
    if (found == text.npos) break;
    add(std::string_view(text).substr(begin, found - begin));
    begin = found + sign.size();
  }
  add(std::string_view(text).substr(begin));
  return make_list(meter, std::move(items));
}

/// startswith and endswith: of one string or any of a tuple.
bool has_end(Meter& meter, const std::string& what, const std::string& text,
             const Arguments& arguments, bool at_begin) {
  check_arguments(meter, what, arguments, 1);
  const auto fits = [&](const Value& value) {
    const std::string* part = as_text(value);
    if (part == nullptr) meter.refuse(what + " expects a string, not " + kind_of(value));
    meter.bytes(part->size());
    return at_begin ? text.starts_with(*part) : text.ends_with(*part);
  };
  const Value* value = arguments.find(0, "");
  if (value == nullptr) meter.refuse(what + " lacks an argument");
  const auto* list = std::get_if<ListPtr>(value);
  if (list == nullptr || !(*list)->is_tuple) return fits(*value);
  return std::any_of((*list)->items.begin(), (*list)->items.end(), fits);
}

/// upper, lower and both kinds of title.
Value change_case(Meter& meter, const std::string& what, const std::string& text,
                  const Arguments& arguments, std::string (*change)(std::string_view)) {
  check_arguments(meter, what, arguments, 0);
  check_ascii(meter, what, text);
  return make_text(meter, change(text));
}

Value text_method(Meter& meter, const std::string& text, const std::string& name,
                  const Arguments& arguments) {
  const std::string what = "the method " + quoted(name);
  if (name == "strip") return strip(meter, what, text, arguments, true, true);
  if (name == "lstrip") return strip(meter, what, text, arguments, true, false);
  if (name == "rstrip") return strip(meter, what, text, arguments, false, true);
  if (name == "split") return split(meter, text, arguments);
  if (name == "startswith") return has_end(meter, what, text, arguments, true);
  if (name == "endswith") return has_end(meter, what, text, arguments, false);
  if (name == "upper") return change_case(meter, what, text, arguments, upper);
  if (name == "lower") return change_case(meter, what, text, arguments, lower);
  if (name == "title") return change_case(meter, what, text, arguments, title_by_letters);
  if (name == "replace") return replace(meter, what, text, arguments);
  meter.refuse(what + " of a string is not supported");
}

Value items_of(Meter& meter, const Dict& dict) {
  std::vector<Value> out;
  for (const auto& [key, value] : dict.entries) {
    out.push_back(make_list(meter, {make_text(meter, key), value}, true));
  }
  return make_list(meter, std::move(out));
}

Value dict_method(Meter& meter, const Dict& dict, const std::string& name,
                  const Arguments& arguments) {
  const std::string what = "the method " + quoted(name);
  if (name == "get") {
    check_arguments(meter, what, arguments, 2);
    const std::string& key = text_argument(meter, what, arguments, 0, "");
    if (const Value* found = find(meter, dict, key)) return *found;
    const Value* otherwise = arguments.find(1, "");
    return otherwise == nullptr ? Value(None{}) : *otherwise;
  }
  if (name != "items" && name != "keys" && name != "values") {
    meter.refuse(what + " of a mapping is not supported");
  }
  check_arguments(meter, what, arguments, 0);
  if (name == "items") return items_of(meter, dict);
  std::vector<Value> out;
  for (const auto& [key, value] : dict.entries) {
    out.push_back(name == "keys" ? make_text(meter, key) : value);
  }
  return make_list(meter, std::move(out));
}

Value join(Meter& meter, const Value& value, const Arguments& arguments) {
  check_arguments(meter, "the filter \"join\"", arguments, 1, {"d"});
  const Value* separator = arguments.find(0, "d");
  const std::string sign = separator == nullptr ? "" : to_text(meter, *separator);
  const ListPtr list = iterate(meter, value);
  std::string out;
  for (const Value& element : list->items) {
    if (&element != list->items.data()) out += sign;
    out += to_text(meter, element);
    meter.bytes(sign.size());
    if (out.size() > kMaxTextBytes) break;  // make_text says so
  }
  return make_text(meter, std::move(out));
}

Value first_of(Meter& meter, const Value& value) {
  const ListPtr list = iterate(meter, value);
  return list->items.empty() ? Value(Undefined{"first"}) : list->items.front();
}

Value last_of(Meter& meter, const Value& value) {
  const ListPtr list = iterate(meter, value);
  return list->items.empty() ? Value(Undefined{"last"}) : list->items.back();
}

Value length_of(Meter& meter, const Value& value) {
  return static_cast<int64_t>(length(meter, value));
}

Value json_of(Meter& meter, const Value& value) { return make_text(meter, to_json(meter, value)); }

Value string_of(Meter& meter, const Value& value) {
  return make_text(meter, to_text(meter, value));
}

Value list_of(Meter& meter, const Value& value) {
  return make_list(meter, iterate(meter, value)->items);
}

Value pairs_of(Meter& meter, const Value& value) {
  if (is_undefined(value)) return make_list(meter, {});
  const auto* dict = std::get_if<DictPtr>(&value);
  if (dict == nullptr) {
    meter.refuse("the filter \"items\" expects a mapping, not " + kind_of(value));
  }
  return items_of(meter, **dict);
}

/// Filters without arguments.
constexpr std::pair<const char*, Value (*)(Meter&, const Value&)> kPlainFilters[] = {
    {"length", length_of}, {"count", length_of},  {"first", first_of}, {"last", last_of},
    {"tojson", json_of},   {"string", string_of}, {"list", list_of},   {"items", pairs_of},
};

Value multiply_text(Meter& meter, const std::string& text, int64_t times) {
  std::string out;
  if (times <= 0 || text.empty()) return make_text(meter, out);
  const auto count = static_cast<size_t>(times);
  meter.text(count > kMaxTextBytes ? count : count * text.size());
  for (size_t i = 0; i < count; ++i) out += text;
  return make_text(meter, std::move(out));
}

Value calculate_integers(const Meter& meter, const std::string& sign, int64_t a, int64_t b) {
  int64_t out = 0;
  bool overflows = false;
  if (sign == "+") {
    overflows = __builtin_add_overflow(a, b, &out);
  } else if (sign == "-") {
    overflows = __builtin_sub_overflow(a, b, &out);
  } else if (sign == "*") {
    overflows = __builtin_mul_overflow(a, b, &out);
  } else if (b == 0) {
    meter.refuse("a division by zero");
  } else if (b == -1) {  // the one quotient that does not fit
    overflows = sign == "//" && __builtin_sub_overflow(int64_t{0}, a, &out);
  } else {  // towards minus infinity, and a remainder that has the divisor's sign
    const bool down = a % b != 0 && (a % b < 0) != (b < 0);
    out = sign == "//" ? a / b - (down ? 1 : 0) : a % b + (down ? b : 0);
  }
  if (overflows) meter.refuse("a number becomes too large");
  return out;
}

}  // namespace

const Value* Arguments::find(size_t place, const char* name) const {
  if (place < places.size()) return &places[place];
  for (const auto& [given, value] : names) {
    if (given == name) return &value;
  }
  return nullptr;
}

void check_arguments(const Meter& meter, const std::string& what, const Arguments& arguments,
                     size_t count, std::initializer_list<const char*> names) {
  if (arguments.places.size() > count) {
    meter.refuse(what + " with " + std::to_string(arguments.places.size()) +
                 " arguments is not supported");
  }
  for (const auto& [name, value] : arguments.names) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      meter.refuse(what + " with the argument " + quoted(name) + " is not supported");
    }
  }
}

Value apply_filter(Meter& meter, const std::string& name, const Value& value,
                   const Arguments& arguments) {
  const std::string what = "the filter " + quoted(name);
  if (name == "default" || name == "d") {
    check_arguments(meter, what, arguments, 2, {"default_value", "boolean"});
    const Value* otherwise = arguments.find(0, "default_value");
    const Value* also_false = arguments.find(1, "boolean");
    const bool keeps =
        also_false != nullptr && is_true(*also_false) ? is_true(value) : !is_undefined(value);
    if (keeps) return value;
    return otherwise == nullptr ? make_text(meter, "") : *otherwise;
  }
  if (name == "join") return join(meter, value, arguments);
  if (name == "trim") return strip(meter, what, to_text(meter, value), arguments, true, true);
  if (name == "replace") return replace(meter, what, to_text(meter, value), arguments);
  if (name == "upper") return change_case(meter, what, to_text(meter, value), arguments, upper);
  if (name == "lower") return change_case(meter, what, to_text(meter, value), arguments, lower);
  if (name == "title") {
    return change_case(meter, what, to_text(meter, value), arguments, title_by_spaces);
  }
  for (const auto& [known, apply] : kPlainFilters) {
    if (name != known) continue;
    check_arguments(meter, what, arguments, 0);
    return apply(meter, value);
  }
  meter.refuse(what + " is not supported");
}

bool apply_test(Meter& meter, const std::string& name, const Value& value,
                const Arguments& arguments) {
  const bool is_text = as_text(value) != nullptr;
  const bool is_list = std::holds_alternative<ListPtr>(value);
  const bool is_dict = std::holds_alternative<DictPtr>(value);
  const bool is_integer = std::holds_alternative<int64_t>(value);
  const auto* truth = std::get_if<bool>(&value);
  // The original takes what is undefined for an empty list.
  const bool has_elements = is_text || is_list || is_dict || is_undefined(value);
  const std::pair<const char*, bool> tests[] = {
      {"defined", !is_undefined(value)},
      {"undefined", is_undefined(value)},
      {"none", std::holds_alternative<None>(value)},
      {"string", is_text},
      {"mapping", is_dict},
      {"iterable", has_elements},
      {"sequence", has_elements},
      {"true", truth != nullptr && *truth},
      {"false", truth != nullptr && !*truth},
      {"boolean", truth != nullptr},
      {"integer", is_integer},
      {"number", is_integer || truth != nullptr},
  };
  for (const auto& [known, holds] : tests) {
    if (name != known) continue;
    check_arguments(meter, "the test " + quoted(name), arguments, 0);
    return holds;
  }
  meter.refuse("the test " + quoted(name) + " is not supported");
}

Value call_method(Meter& meter, const Value& value, const std::string& name,
                  const Arguments& arguments) {
  if (const std::string* text = as_text(value)) return text_method(meter, *text, name, arguments);
  if (const auto* dict = std::get_if<DictPtr>(&value)) {
    return dict_method(meter, **dict, name, arguments);
  }
  meter.refuse("the method " + quoted(name) + " of " + kind_of(value) + " is not supported");
}

Value calculate(Meter& meter, const std::string& sign, const Value& a, const Value& b) {
  int64_t storage_a = 0, storage_b = 0;
  const int64_t* number_a = as_integer(a, storage_a);
  const int64_t* number_b = as_integer(b, storage_b);
  const std::string* text_a = as_text(a);
  const std::string* text_b = as_text(b);
  if (number_a != nullptr && number_b != nullptr && sign != "/") {
    return calculate_integers(meter, sign, *number_a, *number_b);
  }
  if (sign == "+" && text_a != nullptr && text_b != nullptr) {
    meter.text(text_a->size() + text_b->size());
    return make_text(meter, *text_a + *text_b);
  }
  if (sign == "*" && text_a != nullptr && number_b != nullptr) {
    return multiply_text(meter, *text_a, *number_b);
  }
  const auto* list_a = std::get_if<ListPtr>(&a);
  const auto* list_b = std::get_if<ListPtr>(&b);
  if (sign == "+" && list_a != nullptr && list_b != nullptr &&
      (*list_a)->is_tuple == (*list_b)->is_tuple) {
    meter.step((*list_a)->items.size() + (*list_b)->items.size());
    std::vector<Value> items = (*list_a)->items;
    items.insert(items.end(), (*list_b)->items.begin(), (*list_b)->items.end());
    return make_list(meter, std::move(items), (*list_a)->is_tuple);
  }
  meter.refuse("the operator " + quoted(sign) + " of " + kind_of(a) + " and " + kind_of(b) +
               " is not supported");
}

}  // namespace oxbow::convert::jinja

#include "converter/text/jinja/value.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "converter/text/jinja/text.h"

namespace oxbow::convert::jinja {
namespace {

int depth_of(const Value& value) {
  if (const auto* list = std::get_if<ListPtr>(&value)) return (*list)->depth;
  if (const auto* dict = std::get_if<DictPtr>(&value)) return (*dict)->depth;
  return 0;
}

int depth_above(const Meter& meter, int depth) {
  if (depth >= kMaxValueDepth) meter.refuse("lists are nested too deeply");
  return depth + 1;
}

void append_json(Meter& meter, const Value& value, std::string& out) {
  meter.text(out.size());
  int64_t storage = 0;
  if (std::holds_alternative<None>(value)) {
    out += "null";
  } else if (const auto* truth = std::get_if<bool>(&value)) {
    out += *truth ? "true" : "false";
  } else if (const int64_t* number = as_integer(value, storage)) {
    out += std::to_string(*number);
  } else if (const std::string* text = as_text(value)) {
    meter.text(text->size());
    out += nlohmann::json(*text).dump();
  } else if (const auto* list = std::get_if<ListPtr>(&value)) {
    out += '[';
    for (const Value& element : (*list)->items) {
      if (&element != (*list)->items.data()) out += ", ";
      append_json(meter, element, out);
    }
    out += ']';
  } else if (const auto* dict = std::get_if<DictPtr>(&value)) {
    out += '{';
    for (const auto& entry : (*dict)->entries) {
      if (&entry != (*dict)->entries.data()) out += ", ";
      out += nlohmann::json(entry.first).dump() + ": ";
      append_json(meter, entry.second, out);
    }
    out += '}';
  } else {
    meter.refuse("tojson of " + kind_of(value) + " is not supported");
  }
}

bool equal_lists(Meter& meter, const List& a, const List& b) {
  if (a.is_tuple != b.is_tuple || a.items.size() != b.items.size()) return false;
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(),
                    [&](const Value& x, const Value& y) { return equal(meter, x, y); });
}

bool equal_dicts(Meter& meter, const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
    const Value* other = find(meter, b, entry.first);
    return other != nullptr && equal(meter, entry.second, *other);
  });
}

}  // namespace

Value make_text(Meter& meter, std::string text) {
  meter.text(text.size());
  return std::make_shared<const std::string>(std::move(text));
}

Value make_list(Meter& meter, std::vector<Value> items, bool is_tuple) {
  meter.step(1 + items.size());
  int depth = 0;
  for (const Value& element : items) depth = std::max(depth, depth_of(element));
  return std::make_shared<const List>(List{std::move(items), is_tuple, depth_above(meter, depth)});
}

Value make_dict(Meter& meter, std::vector<std::pair<std::string, Value>> entries) {
  Dict out;
  int depth = 0;
  for (auto& [key, value] : entries) {
    depth = std::max(depth, depth_of(value));
    meter.step(1 + out.entries.size() / 16);
    const auto old = std::find_if(out.entries.begin(), out.entries.end(),
                                  [&](const auto& entry) { return entry.first == key; });
    if (old != out.entries.end()) {
      old->second = std::move(value);
    } else {
      meter.bytes(key.size());
      out.entries.emplace_back(std::move(key), std::move(value));
    }
  }
  out.depth = depth_above(meter, depth);
  return std::make_shared<const Dict>(std::move(out));
}

std::string kind_of(const Value& value) {
  static const char* const kKinds[] = {
      "an undefined value", "none",        "a truth value", "an integer", "a string",  "a list",
      "a mapping",          "a namespace", "a loop",        "a macro",    "a function"};
  static_assert(std::size(kKinds) == std::variant_size_v<Value>);
  if (const auto* undefined = std::get_if<Undefined>(&value)) {
    return "the undefined " + quoted(undefined->name);
  }
  return kKinds[value.index()];
}

bool is_true(const Value& value) {
  int64_t storage = 0;
  if (const int64_t* number = as_integer(value, storage)) return *number != 0;
  if (const std::string* text = as_text(value)) return !text->empty();
  if (const auto* list = std::get_if<ListPtr>(&value)) return !(*list)->items.empty();
  if (const auto* dict = std::get_if<DictPtr>(&value)) return !(*dict)->entries.empty();
  return !is_undefined(value) && !std::holds_alternative<None>(value);
}

bool is_undefined(const Value& value) { return std::holds_alternative<Undefined>(value); }

const std::string* as_text(const Value& value) {
  const auto* text = std::get_if<Text>(&value);
  return text == nullptr ? nullptr : text->get();
}

const int64_t* as_integer(const Value& value, int64_t& storage) {
  if (const auto* truth = std::get_if<bool>(&value)) {
    storage = *truth ? 1 : 0;
    return &storage;
  }
  return std::get_if<int64_t>(&value);
}

std::string to_text(Meter& meter, const Value& value) {
  if (is_undefined(value)) return "";
  if (std::holds_alternative<None>(value)) return "None";
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "True" : "False";
  if (const auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  if (const std::string* text = as_text(value)) {
    meter.bytes(text->size());
    return *text;
  }
  meter.refuse("printing " + kind_of(value) + " is not supported");
}

std::string to_json(Meter& meter, const Value& value) {
  std::string out;
  append_json(meter, value, out);
  return out;
}

bool equal(Meter& meter, const Value& a, const Value& b) {
  meter.step();
  int64_t storage_a = 0, storage_b = 0;
  const int64_t* number_a = as_integer(a, storage_a);
  const int64_t* number_b = as_integer(b, storage_b);
  if (number_a != nullptr && number_b != nullptr) return *number_a == *number_b;
  if (a.index() != b.index()) return false;
  if (is_undefined(a) || std::holds_alternative<None>(a)) return true;
  if (const std::string* text = as_text(a)) {
    meter.bytes(text->size());
    return *text == *as_text(b);
  }
  if (const auto* list = std::get_if<ListPtr>(&a)) {
    return equal_lists(meter, **list, *std::get<ListPtr>(b));
  }
  if (const auto* dict = std::get_if<DictPtr>(&a)) {
    return equal_dicts(meter, **dict, *std::get<DictPtr>(b));
  }
  meter.refuse("comparing " + kind_of(a) + " is not supported");
}

int compare(Meter& meter, const Value& a, const Value& b) {
  int64_t storage_a = 0, storage_b = 0;
  const int64_t* number_a = as_integer(a, storage_a);
  const int64_t* number_b = as_integer(b, storage_b);
  if (number_a != nullptr && number_b != nullptr)
    return (*number_a > *number_b) - (*number_a < *number_b);
  const std::string* text_a = as_text(a);
  const std::string* text_b = as_text(b);
  if (text_a == nullptr || text_b == nullptr) {
    meter.refuse(kind_of(a) + " and " + kind_of(b) + " have no order");
  }
  meter.bytes(std::min(text_a->size(), text_b->size()));
  return text_a->compare(*text_b);  // bytes of UTF-8 are in the order of code points
}

bool contains(Meter& meter, const Value& container, const Value& value) {
  if (const std::string* text = as_text(container)) {
    const std::string* part = as_text(value);
    if (part == nullptr) meter.refuse("a string cannot contain " + kind_of(value));
    meter.search(text->size(), part->size());
    return text->find(*part) != text->npos;
  }
  if (const auto* dict = std::get_if<DictPtr>(&container)) {
    const std::string* key = as_text(value);
    return key != nullptr && find(meter, **dict, *key) != nullptr;
  }
  if (is_undefined(container)) return false;
  const auto* list = std::get_if<ListPtr>(&container);
  if (list == nullptr) meter.refuse(kind_of(container) + " cannot contain anything");
  return std::any_of((*list)->items.begin(), (*list)->items.end(),
                     [&](const Value& element) { return equal(meter, element, value); });
}

const Value* find(Meter& meter, const Dict& dict, const std::string& key) {
  meter.step(1 + dict.entries.size() / 16);
  for (const auto& [name, value] : dict.entries) {
    if (name == key) return &value;
  }
  return nullptr;
}

ListPtr iterate(Meter& meter, const Value& value) {
  if (const auto* list = std::get_if<ListPtr>(&value)) return *list;
  std::vector<Value> items;
  if (const std::string* text = as_text(value)) {
    meter.step(text->size());
    for (const std::string_view character : characters(*text)) {
      items.push_back(make_text(meter, std::string(character)));
    }
  } else if (const auto* dict = std::get_if<DictPtr>(&value)) {
    for (const auto& entry : (*dict)->entries) items.push_back(make_text(meter, entry.first));
  } else if (!is_undefined(value)) {
    meter.refuse(kind_of(value) + " cannot be looped over");
  }
  return std::get<ListPtr>(make_list(meter, std::move(items)));
}

size_t length(Meter& meter, const Value& value) {
  if (const std::string* text = as_text(value)) {
    meter.bytes(text->size());
    return static_cast<size_t>(
        std::count_if(text->begin(), text->end(), [](char c) { return (c & 0xc0) != 0x80; }));
  }
  if (const auto* list = std::get_if<ListPtr>(&value)) return (*list)->items.size();
  if (const auto* dict = std::get_if<DictPtr>(&value)) return (*dict)->entries.size();
  if (is_undefined(value)) return 0;
  meter.refuse(kind_of(value) + " has no length");
}

}  // namespace oxbow::convert::jinja

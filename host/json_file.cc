#include "host/json_file.h"

#include <algorithm>

#include "host/errors.h"
#include "host/io_file.h"

namespace oxbow {
namespace {

// Tokenizers, the deepest of what is read here, have less than ten levels.
constexpr size_t kMaxDepth = 100;
// The largest vocabularies have two million with their merges; each takes up to 80 bytes of memory.
constexpr size_t kMaxValues = size_t{1} << 23;

}  // namespace

void check_json_size(const std::string& where, std::string_view text) {
  // The parser takes it for the end of the text and does not look at what follows.
  if (text.find('\0') != std::string_view::npos) {
    throw InputError(where + " is not valid JSON: it has a zero byte");
  }
  size_t depth = 0, values = 1;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
      continue;
    }
    in_string = c == '"';
    if (c == '[' || c == '{') {
      ++depth;
      ++values;
    } else if (c == ']' || c == '}') {
      depth -= std::min<size_t>(depth, 1);
    } else if (c == ',') {
      ++values;
    }
    if (depth > kMaxDepth) {
      throw InputError(where + " is nested deeper than " + std::to_string(kMaxDepth) + " levels");
    }
    if (values > kMaxValues) {
      throw InputError(where + " has more than " + std::to_string(kMaxValues) + " values");
    }
  }
}

nlohmann::json parse_json(const std::string& path, std::string_view text) {
  check_json_size(path, text);
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw InputError(path + " is not valid JSON in UTF-8 near byte " + std::to_string(error.byte));
  } catch (const nlohmann::json::exception&) {
    throw InputError(path + " is not valid JSON: a number in it is too large");
  }
}

nlohmann::json read_json(const std::string& path, size_t limit) {
  return parse_json(path, read_file(path, limit));
}

nlohmann::json read_json_object(const std::string& path) {
  nlohmann::json object = read_json(path);
  if (!object.is_object()) throw InputError(path + " is not a JSON object");
  return object;
}

}  // namespace oxbow

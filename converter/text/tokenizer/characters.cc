#include "converter/text/tokenizer/characters.h"

#include <map>
#include <optional>

#include "host/errors.h"
#include "runtime/text/utf8.h"

namespace oxbow::convert {
namespace {

/// The code point when `text` is exactly one.
std::optional<uint32_t> single_code_point(const std::string& text) {
  const Utf8Character first = read_utf8(text);
  const bool single = first.kind == Utf8Character::Kind::kCharacter && first.bytes == text.size();
  return single ? std::optional(first.code_point) : std::nullopt;
}

}  // namespace

std::unique_ptr<schema::TokenizerT> byte_tokenizer(uint32_t vocabulary) {
  if (vocabulary != 256) {
    throw InputError("a byte tokenizer needs a vocabulary of 256 tokens, the model has " +
                     std::to_string(vocabulary));
  }
  auto tokenizer = std::make_unique<schema::TokenizerT>();
  tokenizer->kind = schema::TokenizerKind::Byte;
  return tokenizer;
}

std::unique_ptr<schema::TokenizerT> read_characters(const std::string& source,
                                                    const nlohmann::json& list,
                                                    uint32_t vocabulary) {
  if (!list.is_array() || list.size() != vocabulary) {
    throw InputError(source +
                     (list.is_array() ? " has " + std::to_string(list.size()) + " entries"
                                      : " is not a JSON array") +
                     ", expected an array of " + std::to_string(vocabulary) +
                     " characters, one for each token");
  }
  auto tokenizer = std::make_unique<schema::TokenizerT>();
  tokenizer->kind = schema::TokenizerKind::Char;
  std::map<uint32_t, size_t> seen;
  for (size_t id = 0; id < list.size(); ++id) {
    const std::optional<uint32_t> code_point =
        list[id].is_string() ? single_code_point(list[id].get<std::string>()) : std::nullopt;
    if (!code_point) {
      throw InputError(source + ": entry " + std::to_string(id) + " is " +
                       printable(list[id].dump(-1, ' ', true), 40) +
                       ", expected a string of one character");
    }
    const auto [first, is_new] = seen.emplace(*code_point, id);
    if (!is_new) {
      throw InputError(source + ": entries " + std::to_string(first->second) + " and " +
                       std::to_string(id) + " are the same character");
    }
    tokenizer->code_points.push_back(*code_point);
  }
  return tokenizer;
}

}  // namespace oxbow::convert

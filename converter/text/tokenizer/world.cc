#include "converter/text/tokenizer/world.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "converter/text/tokenizer/piece_tables.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "runtime/text/utf8.h"

namespace oxbow::convert {
namespace {

constexpr uint32_t kNone = 0xffffffff;

std::optional<uint32_t> number(std::string_view text, int base = 10) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// One character behind a backslash, which `rest` begins with the letter of; nothing when it is none of those that
/// Python writes. Takes it from `rest`.
bool add_escaped(std::string_view& rest, bool bytes, std::string* out) {
  const char letter = rest[0];
  rest.remove_prefix(1);
  const size_t digits = letter == 'x' ? 2 : bytes ? 0 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
  if (digits == 0) {
    constexpr std::string_view kLetters = "\\'\"nrt", kMeant = "\\'\"\n\r\t";
    const size_t at = kLetters.find(letter);
    if (at == std::string_view::npos) return false;
    out->push_back(kMeant[at]);
    return true;
  }
  if (rest.size() < digits) return false;
  const std::optional<uint32_t> value = number(rest.substr(0, digits), 16);
  if (!value || *value > 0x10ffff || (*value >= 0xd800 && *value < 0xe000)) return false;
  rest.remove_prefix(digits);
  char text[4];
  if (bytes) {
    out->push_back(static_cast<char>(*value));
  } else {
    out->append(text, write_utf8(*value, text));
  }
  return true;
}

/// The bytes of 'text' or b'bytes', with either quote.
std::optional<std::string> literal(std::string_view text) {
  const bool bytes = text.starts_with('b');
  if (bytes) text.remove_prefix(1);
  if (text.size() < 2 || (text[0] != '\'' && text[0] != '"') || text.back() != text[0]) {
    return std::nullopt;
  }
  std::string_view rest = text.substr(1, text.size() - 2);
  std::string out;
  while (!rest.empty()) {
    const char next = rest[0];
    rest.remove_prefix(1);
    if (next != '\\') {
      out.push_back(next);
    } else if (rest.empty() || !add_escaped(rest, bytes, &out)) {
      return std::nullopt;
    }
  }
  return out;
}

class Reader {
 public:
  Reader(const std::string& path, uint32_t vocabulary) : path_(path), vocabulary_(vocabulary) {}

  std::unique_ptr<schema::TokenizerT> read() {
    const std::string text = read_file(path_);
    std::string_view rest = text;
    while (!rest.empty()) {
      const size_t end = rest.find('\n');
      std::string_view line = rest.substr(0, end);
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      ++line_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty()) add(line);
    }
    return make_world_tokenizer(path_, tokens_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError(path_ + ", line " + std::to_string(line_) + ": " + what);
  }

  void add(std::string_view line) {
    const size_t first = line.find(' '), last = line.rfind(' ');
    const std::optional<uint32_t> id = number(line.substr(0, first));
    const std::optional<uint32_t> bytes =
        last == std::string_view::npos ? std::nullopt : number(line.substr(last + 1));
    if (!id || !bytes || last <= first) {
      refuse("expected an id, a quoted text and its number of bytes");
    }
    const std::optional<std::string> text = literal(line.substr(first + 1, last - first - 1));
    if (!text) refuse("the text is not quoted as Python does");
    if (text->size() != *bytes || text->empty()) {
      refuse("the text has " + std::to_string(text->size()) + " bytes, expected " +
             std::to_string(*bytes));
    }
    if (*id >= vocabulary_) {
      refuse("id " + std::to_string(*id) + " is not below " + std::to_string(vocabulary_) +
             ", the model's vocabulary");
    }
    if (*id >= tokens_.size()) tokens_.resize(size_t{*id} + 1);
    if (!tokens_[*id].empty()) refuse("id " + std::to_string(*id) + " is there twice");
    tokens_[*id] = *text;
  }

  std::string path_;
  uint32_t vocabulary_;
  size_t line_ = 0;
  std::vector<std::string> tokens_;
};

}  // namespace

bool is_world_vocabulary(const std::string& name) {
  return name.starts_with("rwkv_vocab") && name.ends_with(".txt");
}

std::unique_ptr<schema::TokenizerT> make_world_tokenizer(const std::string& source,
                                                         const std::vector<std::string>& tokens) {
  auto tokenizer = std::make_unique<schema::TokenizerT>();
  tokenizer->kind = schema::TokenizerKind::Longest;
  tokenizer->byte_pieces.assign(256, kNone);
  PieceTables tables;
  tables.tokens.resize(std::max<size_t>(tokens.size(), 1));
  for (uint32_t id = 0; id < tokens.size(); ++id) {
    const std::string& text = tokens[id];
    if (text.empty()) continue;
    tables.tokens[id] = {text, schema::TokenRole::Plain, 0};
    // The tables cannot look up a byte of 0.
    if (text.size() == 1) {
      tokenizer->byte_pieces[static_cast<uint8_t>(text[0])] = id;
    } else if (text.find('\0') != std::string::npos) {
      throw InputError(source + ": token " + std::to_string(id) +
                       " has a byte of 0 inside a longer text, which is not supported");
    } else {
      tables.look_up(text, id);
    }
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    if (tokenizer->byte_pieces[byte] == kNone) {
      throw InputError(source + " has no token for the byte " + std::to_string(byte) +
                       ", expected one for each");
    }
  }
  // The end of a text, which the file does not list.
  if (tables.tokens[0].text.empty()) tables.tokens[0].role = schema::TokenRole::Control;
  tables.write(*tokenizer, false);
  return tokenizer;
}

std::unique_ptr<schema::TokenizerT> read_world_vocabulary(const std::string& path,
                                                          uint32_t vocabulary) {
  return Reader(path, vocabulary).read();
}

}  // namespace oxbow::convert

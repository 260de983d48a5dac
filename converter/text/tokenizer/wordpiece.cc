#include "converter/text/tokenizer/wordpiece.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "converter/text/tokenizer/bert_characters.h"
#include "converter/text/tokenizer/double_array.h"
#include "converter/text/tokenizer/unicode.h"
#include "converter/text/tokenizer/wordpiece_json.h"
#include "host/characters.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "runtime/text/utf8.h"

namespace oxbow::convert {
namespace {

constexpr const char* kTokenizerClasses[] = {"Bert",       "DistilBert",  "Electra",
                                             "MobileBert", "SqueezeBert", "ConvBert"};

/// Without white space at its end.
std::string_view trimmed(std::string_view line) {
  while (!line.empty()) {
    size_t begin = line.size() - 1;
    while (begin > 0 && (line[begin] & 0xc0) == 0x80) --begin;
    const Utf8Character last = read_utf8(line.substr(begin));
    if (last.kind != Utf8Character::Kind::kCharacter ||
        !contains(CodePoints::white_space(), last.code_point)) {
      break;
    }
    line = line.substr(0, begin);
  }
  return line;
}

std::vector<std::string> read_lines(const std::string& path, uint32_t vocabulary) {
  const std::string file = read_file(path);
  std::vector<std::string> tokens;
  std::map<std::string_view, size_t> seen;
  for (size_t begin = 0; begin < file.size();) {
    const size_t end = std::min(file.find('\n', begin), file.size());
    const std::string_view line = trimmed(std::string_view(file).substr(begin, end - begin));
    const std::string place = path + ", line " + std::to_string(tokens.size() + 1);
    if (tokens.size() == vocabulary) {
      throw InputError(place + ": the model has only " + std::to_string(vocabulary) + " tokens");
    }
    if (line.empty()) throw InputError(place + " is empty, expected a token");
    if (!is_utf8(line)) throw InputError(place + " is not UTF-8");
    const auto [first, is_new] = seen.emplace(line, tokens.size() + 1);
    if (!is_new) {
      throw InputError(place + ": '" + printable(std::string(line), 40) + "' is in line " +
                       std::to_string(first->second) + " already");
    }
    tokens.emplace_back(line);
    begin = end + 1;
  }
  return tokens;
}

/// Refuses what changes how text is cut and is not there.
void check_settings(const TokenizerSettings& settings) {
  const std::string file = "tokenizer_config.json: ";
  const auto name = settings.config.find("tokenizer_class");
  if (name != settings.config.end() && !name->is_null()) {
    const std::string given = name->is_string() ? name->get<std::string>() : name->type_name();
    if (std::none_of(std::begin(kTokenizerClasses), std::end(kTokenizerClasses), [&](auto known) {
          return given == std::string(known) + "Tokenizer" ||
                 given == std::string(known) + "TokenizerFast";
        })) {
      throw InputError(file + "tokenizer_class is " + printable(given, 60) +
                       ", expected BertTokenizer for a vocab.txt");
    }
  }
  if (!settings.flag("do_basic_tokenize", true)) {
    throw InputError(file + "do_basic_tokenize is false, which is not supported");
  }
  const auto never = settings.config.find("never_split");
  if (never != settings.config.end() && !never->is_null() && !never->empty()) {
    throw InputError(file + "never_split is not empty, which is not supported");
  }
}

/// Decoding leaves out what lies between tokens as people do, but looks at the beginning of a token
/// only, which is enough for tokens without spaces.
bool tidies_inside(const std::string& text) {
  return text.find(' ') != std::string::npos && (text.find_first_of(".?!,'") != std::string::npos ||
                                                 text.find("do not") != std::string::npos);
}

class Builder {
 public:
  Builder(WordPieceParts parts, uint32_t vocabulary)
      : parts_(std::move(parts)), vocabulary_(vocabulary) {}

  std::unique_ptr<schema::TokenizerT> build() {
    out_->kind = schema::TokenizerKind::WordPiece;
    out_->inner_prefix = parts_.prefix;
    out_->max_word_characters = parts_.max_word_characters;
    out_->tidy = parts_.tidy;
    const bool find_words = std::any_of(parts_.added.begin(), parts_.added.end(),
                                        [](const auto& token) { return token.single_word; });
    set_bert_characters(parts_.normalizer, find_words, out_.get());
    for (uint32_t id = 0; id < parts_.tokens.size(); ++id) ids_.emplace(parts_.tokens[id], id);
    out_->trie = build_double_array(ids_);
    roles_.resize(parts_.tokens.size(), schema::TokenRole::Plain);
    for (const AddedTokenSetting& token : parts_.added) add(token);
    out_->unknown_token = static_cast<int32_t>(id_of(parts_.unknown, "token for unknown words"));
    if (ids_.contains(parts_.mask)) out_->mask_token = static_cast<int32_t>(ids_[parts_.mask]);
    out_->before = ids_of(parts_.before, "token before a text");
    out_->after = ids_of(parts_.after, "token behind a text");
    out_->pair_between = ids_of(parts_.pair_between, "token between two texts");
    out_->pair_after = ids_of(parts_.pair_after, "token behind two texts");
    add_texts();
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(parts_.path + ": " + what);
  }

  static std::string quoted(const std::string& text) { return "'" + printable(text, 40) + "'"; }

  uint32_t id_of(const std::string& text, const std::string& what) const {
    const auto found = ids_.find(text);
    if (found == ids_.end()) fail("the " + what + " " + quoted(text) + " is not in the vocabulary");
    return found->second;
  }

  std::vector<uint32_t> ids_of(const std::vector<std::string>& texts,
                               const std::string& what) const {
    std::vector<uint32_t> ids;
    for (const std::string& text : texts) ids.push_back(id_of(text, what));
    return ids;
  }

  /// Whether a text that is looked for in normalised text stays as it is, so that it can be looked for before.
  bool stays(const std::string& text) const {
    return std::none_of(text.begin(), text.end(), [&](char c) {
      const bool capital = c >= 'A' && c <= 'Z' && parts_.normalizer.lower_case;
      return capital || static_cast<uint8_t>(c) <= ' ' || static_cast<uint8_t>(c) >= 0x80;
    });
  }

  /// White space around such a token gives no tokens anyway, so whether it belongs to the token
  /// makes no difference.
  void add(const AddedTokenSetting& token) {
    const std::string name = "the added token " + quoted(token.text);
    if (token.text.empty()) fail("an added token is empty");
    if (token.normalized && !stays(token.text)) {
      fail(name + " is looked for in normalized text, which is not supported");
    }
    const auto known = ids_.find(token.text);
    const auto next = static_cast<uint32_t>(parts_.tokens.size());
    const uint32_t id = known != ids_.end() ? known->second : token.id.value_or(next);
    if (token.id.value_or(id) != id || id > next) {
      fail(name + " has the id " + std::to_string(*token.id) + ", expected " +
           std::to_string(std::min(id, next)));
    }
    if (id == next) {
      if (next >= vocabulary_) {
        fail(name + " is one more than the " + std::to_string(vocabulary_) + " of the model");
      }
      parts_.tokens.push_back(token.text);
      ids_.emplace(token.text, id);
      roles_.push_back(schema::TokenRole::Plain);
    } else if (parts_.tokens[id] != token.text) {
      fail(name + " has the id " + std::to_string(id) + " of " + quoted(parts_.tokens[id]));
    }
    roles_[id] = token.special ? schema::TokenRole::Special : schema::TokenRole::Added;
    if (!added_.emplace(token.text, id).second) fail(name + " is there twice");
    if (token.single_word) {
      out_->added.emplace_back(id, /*strip_left=*/false, /*strip_right=*/false, true,
                               /*second=*/false);
    }
  }

  void add_texts() {
    for (const std::string& text : parts_.tokens) {
      if (parts_.tidy && tidies_inside(text)) {
        fail("the token " + quoted(text) + " has spaces in it, which is not supported");
      }
      out_->texts.insert(out_->texts.end(), text.begin(), text.end());
      out_->text_ends.push_back(static_cast<uint32_t>(out_->texts.size()));
    }
    out_->roles = roles_;
    out_->added_trie = build_double_array(added_);
    std::sort(out_->added.begin(), out_->added.end(),
              [](const auto& a, const auto& b) { return a.token() < b.token(); });
  }

  WordPieceParts parts_;
  uint32_t vocabulary_;
  std::unique_ptr<schema::TokenizerT> out_ = std::make_unique<schema::TokenizerT>();
  std::map<std::string, uint32_t> ids_;
  std::map<std::string, uint32_t> added_;
  std::vector<schema::TokenRole> roles_;
};

}  // namespace

std::unique_ptr<schema::TokenizerT> read_wordpiece_vocabulary(const std::string& path,
                                                              const TokenizerSettings& settings,
                                                              uint32_t vocabulary) {
  check_settings(settings);
  WordPieceParts parts;
  parts.path = path;
  parts.tokens = read_lines(path, vocabulary);
  parts.normalizer.lower_case = settings.flag("do_lower_case", true);
  parts.normalizer.strip_accents = settings.flag("strip_accents", parts.normalizer.lower_case);
  parts.normalizer.split_chinese = settings.flag("tokenize_chinese_chars", true);
  parts.added = settings.added;
  const auto name = [&](const char* key, const char* fallback) {
    const auto found = settings.named.find(key);
    if (found != settings.named.end()) return found->second;
    // Special even where no file says so.
    if (std::find(parts.tokens.begin(), parts.tokens.end(), fallback) != parts.tokens.end()) {
      AddedTokenSetting token;
      token.text = fallback;
      token.special = true;
      parts.added.push_back(token);
    }
    return std::string(fallback);
  };
  parts.unknown = name("unk_token", "[UNK]");
  parts.before = {name("cls_token", "[CLS]")};
  parts.after = {name("sep_token", "[SEP]")};
  parts.pair_between = parts.pair_after = parts.after;
  parts.mask = name("mask_token", "[MASK]");
  name("pad_token", "[PAD]");
  return make_wordpiece_tokenizer(std::move(parts), vocabulary);
}

std::unique_ptr<schema::TokenizerT> make_wordpiece_tokenizer(WordPieceParts parts,
                                                             uint32_t vocabulary) {
  if (parts.tokens.size() > vocabulary) {
    throw InputError(parts.path + ": " + std::to_string(parts.tokens.size()) +
                     " tokens for a model of " + std::to_string(vocabulary));
  }
  return Builder(std::move(parts), vocabulary).build();
}

std::unique_ptr<schema::TokenizerT> read_wordpiece_json(const std::string& path,
                                                        const nlohmann::json& file,
                                                        uint32_t vocabulary) {
  return Builder(parse_wordpiece_json(path, file, vocabulary), vocabulary).build();
}

}  // namespace oxbow::convert

#include "converter/text/tokenizer/find.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string_view>

#include "converter/formats/checkpoint_files.h"
#include "converter/text/chat_template.h"
#include "converter/text/tokenizer/byte_bpe.h"
#include "converter/text/tokenizer/characters.h"
#include "converter/text/tokenizer/gguf_tokenizer.h"
#include "converter/text/tokenizer/pieces_json.h"
#include "converter/text/tokenizer/rank_files.h"
#include "converter/text/tokenizer/sentencepiece.h"
#include "converter/text/tokenizer/settings.h"
#include "converter/text/tokenizer/wordpiece.h"
#include "converter/text/tokenizer/wordpiece_json.h"
#include "converter/text/tokenizer/words_json.h"
#include "converter/text/tokenizer/world.h"
#include "host/errors.h"
#include "host/folder.h"
#include "host/io_file.h"
#include "host/json_file.h"
#include "host/number_text.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;

// The vocabularies of large models have a quarter of a million tokens and their
// merges.
constexpr size_t kMaxFileBytes = size_t{256} << 20;
// What T5's own tokenizer adds when nothing else is said.
constexpr uint32_t kDefaultExtraIds = 100;
// Their texts have a token before them when nothing else is said.
constexpr std::string_view kBegin[] = {"llama", "mistral", "gemma"};
constexpr std::string_view kT5[] = {"t5", "mt5", "longt5", "umt5"};
// Their ids are not those of SentencePiece's file: fairseq's four come first.
constexpr std::string_view kFairseq[] = {"xlm-roberta", "xlm-roberta-xl"};

void read_chat(const std::string& chat_template, const std::map<std::string, std::string>& named,
               FoundTokenizer& found) {
  try {
    const ChatTexts texts = render_chat(chat_template, named);
    found.tokenizer->chat_before = texts.before;
    found.tokenizer->chat_after = texts.after;
    found.notes.push_back("chat template: a question goes between " +
                          printable(json(texts.before).dump(), 60) + " and " +
                          printable(json(texts.after).dump(), 60));
    if (texts.next) {
      found.tokenizer->chat_next = *texts.next;
      found.tokenizer->chat_answer = texts.lead;
      found.notes.push_back("chat template: an answer and the next question have " +
                            printable(json(*texts.next).dump(), 60) + " between them");
    } else {
      found.notes.push_back("chat template: one question only: " + texts.next_note);
    }
    if (texts.system_before) {
      found.tokenizer->chat_system_before = *texts.system_before;
      found.tokenizer->chat_system_after = *texts.system_after;
    } else {
      found.notes.push_back("chat template: no text of the system: " + texts.system_note);
    }
    found.tokenizer->chat_trims = texts.trims;
  } catch (const InputError& error) {
    found.notes.push_back(std::string("chat template left out: ") + error.what());
  }
}

/// What is the same wherever a tokenizer came from.
void finish(const std::string& chat_template, const std::map<std::string, std::string>& named,
            FoundTokenizer& found) {
  const schema::TokenizerT& tokenizer = *found.tokenizer;
  std::string files;
  for (const std::string& file : found.files) files += (files.empty() ? "" : ", ") + file;
  const size_t tokens = !tokenizer.code_points.empty()
                            ? tokenizer.code_points.size()
                            : tokenizer.text_ends.size() - tokenizer.aliases.size();
  found.notes.push_back(std::string("tokenizer: ") + schema::EnumNameTokenizerKind(tokenizer.kind) +
                        ", " + grouped_text(tokens) + " tokens, from " + files);
  if (!chat_template.empty()) read_chat(chat_template, named, found);
}

class Finder {
 public:
  Finder(std::string directory, const TokenizerModel& model)
      : directory_(std::move(directory)), model_(model) {}

  /// In this order: a file made for Oxbow first, then what the model was
  /// trained with, then what was made from that.
  FoundTokenizer find() {
    if (has("char_vocab.json")) return read("char_vocab.json");
    if (has("source.spm") && has("vocab.json")) return read("source.spm");
    for (const char* name : {"tokenizer.json", "spiece.model", "tokenizer.model",
                             "sentencepiece.bpe.model", "vocab.json", "vocab.txt", "tekken.json"}) {
      if (has(name) && !is_outdone(name)) return read(name);
    }
    // Their names have a date, or that of a model.
    std::set<std::string> worlds;
    std::set<std::string> ranks;
    for (const std::string& name : names_in(directory_)) {
      if (is_world_vocabulary(name)) worlds.insert(name);
      if (name.ends_with(".tiktoken") || name == "tiktoken.model") ranks.insert(name);
    }
    if (!worlds.empty()) return read(*worlds.rbegin());
    return ranks.size() == 1 ? read(*ranks.begin()) : FoundTokenizer();
  }

  FoundTokenizer read(const std::string& name) {
    const std::string path = directory_ + "/" + name;
    settings_ = read_tokenizer_settings(directory_);
    found_.files = {name};
    if (name.ends_with(".json")) {
      read_any_json(path, name);
    } else if (is_world_vocabulary(name)) {
      found_.tokenizer = read_world_vocabulary(path, model_.vocabulary);
    } else if (name.ends_with(".txt")) {
      found_.tokenizer = read_wordpiece_vocabulary(path, settings_, model_.vocabulary);
      if (!settings_.config.contains("do_lower_case")) warn_of_capitals();
    } else if (name == "source.spm") {
      read_two_languages();
    } else if (const std::string bytes = read_file(path); is_tiktoken(bytes)) {
      found_.tokenizer = read_tiktoken(path, bytes, settings_, model_.vocabulary);
    } else {
      read_pieces(path);
    }
    found_.files.insert(found_.files.end(), settings_.files.begin(), settings_.files.end());
    finish(settings_.chat_template, settings_.named, found_);
    if (!settings_.ignored.empty()) {
      found_.notes.push_back("tokenizer_config.json: ignored " + list_names(settings_.ignored));
    }
    return std::move(found_);
  }

 private:
  bool has(const std::string& name) const { return file_exists(directory_ + "/" + name); }

  /// SentencePiece's own file says more than what was made from it. Llama 3's
  /// file of the same name is another format, whose tokenizer.json is complete.
  bool is_outdone(const std::string& name) const {
    if (name != "tokenizer.json") return name == "vocab.json" && !has("merges.txt");
    const json file = read_json(directory_ + "/" + name, kMaxFileBytes);
    if (!file.is_object() || !file.contains("model") || !file["model"].is_object()) return false;
    const json& model = file["model"];
    // Other models of scores do more with text than SentencePiece's file says, or have other ids.
    const bool t5 = model.value("type", json()) == "Unigram" && is_like(kT5);
    return (t5 && has("spiece.model")) ||
           (model.value("byte_fallback", json()) == true && has("tokenizer.model"));
  }

  void read_any_json(const std::string& path, const std::string& name) {
    const json file = read_json(path, kMaxFileBytes);
    if (file.is_array()) {
      found_.tokenizer = read_characters(path, file, model_.vocabulary);
    } else if (!file.is_object()) {
      throw InputError(path + " is neither a list of characters nor a vocabulary");
    } else if (file.contains("config") && file.contains("vocab")) {
      found_.tokenizer = read_tekken(path, file, model_.vocabulary);
    } else if (!file.contains("model")) {
      if (!has("merges.txt"))
        throw InputError(
            path + " is not a tokenizer: it has no model, and there is no merges.txt beside it");
      found_.tokenizer =
          read_byte_bpe(path, directory_ + "/merges.txt", settings_, model_.vocabulary);
      found_.files.push_back("merges.txt");
    } else {
      read_tokenizer_json(path, name, file);
    }
  }

  void read_tokenizer_json(const std::string& path, const std::string& name, const json& file) {
    const json& model = file["model"];
    // Old files do not name the type; they are byte-pair encodings.
    const json type = model.is_object() ? model.value("type", json("BPE")) : json();
    const std::string splits = file.value("pre_tokenizer", json()).dump();
    if (type == "BPE" && splits.find("\"ByteLevel\"") != std::string::npos) {
      found_.tokenizer = read_byte_bpe_json(path, file, settings_, model_.vocabulary);
    } else if (type == "BPE" && is_pieces_json(path, file)) {
      found_.tokenizer = read_pieces_json(path, file, model_.vocabulary);
    } else if (type == "WordPiece" && is_bert_json(file)) {
      found_.tokenizer = read_wordpiece_json(path, file, model_.vocabulary);
    } else if (type == "BPE" || type == "Unigram" || type == "WordLevel" || type == "WordPiece") {
      const auto mask = settings_.named.find("mask_token");
      found_.tokenizer = read_words_json(
          path, file, mask == settings_.named.end() ? "" : mask->second, model_.vocabulary);
    } else {
      throw InputError(path + ": a model of type " + printable(type.dump(-1, ' ', true), 40) +
                       " is not supported in " + name +
                       ", expected BPE, Unigram, WordPiece or WordLevel");
    }
  }

  /// Nothing says that text is put in lower case, which is what BERT's files mean then; but a vocabulary of that kind
  /// has no capitals.
  void warn_of_capitals() {
    const schema::TokenizerT& tokenizer = *found_.tokenizer;
    size_t count = 0;
    for (size_t id = 0, begin = 0; id < tokenizer.text_ends.size(); ++id) {
      const size_t end = tokenizer.text_ends[id];
      const bool plain = tokenizer.roles[id] == schema::TokenRole::Plain &&
                         (begin == end || tokenizer.texts[begin] != '[');
      count += plain && std::any_of(tokenizer.texts.begin() + static_cast<ptrdiff_t>(begin),
                                    tokenizer.texts.begin() + static_cast<ptrdiff_t>(end),
                                    [](uint8_t c) { return c >= 'A' && c <= 'Z'; });
      begin = end;
    }
    if (count == 0) return;
    found_.warnings.push_back(
        "tokenizer: text is put in lower case, which no file says, but " + grouped_text(count) +
        " tokens have capitals: if the model tells them apart, put {\"do_lower_case\": false} into "
        "tokenizer_config.json");
  }

  void read_two_languages() {
    found_.tokenizer = read_marian(directory_ + "/source.spm", directory_ + "/target.spm",
                                   directory_ + "/vocab.json", model_.vocabulary);
    found_.files.insert(found_.files.end(), {"target.spm", "vocab.json"});
  }

  bool is_like(std::span<const std::string_view> types) const {
    return std::find(types.begin(), types.end(), model_.type) != types.end();
  }

  void read_pieces(const std::string& path) {
    SentencePieceModel pieces = read_sentencepiece_model(path);
    SentencePieceOptions options;
    options.added = settings_.added;
    if (is_like(kFairseq)) {
      read_fairseq(std::move(pieces), options);
      return;
    }
    const bool t5 = is_like(kT5);
    const bool names_extra =
        std::any_of(options.added.begin(), options.added.end(),
                    [](const auto& token) { return token.text.starts_with("<extra_id_"); });
    if (t5 && !names_extra && pieces.pieces.size() + kDefaultExtraIds <= model_.vocabulary) {
      for (uint32_t i = 0; i < kDefaultExtraIds; ++i) {
        AddedTokenSetting token;
        token.text = "<extra_id_" + std::to_string(i) + ">";
        token.special = true;
        options.added.push_back(token);
      }
    }
    if (settings_.flag("add_bos_token", is_like(kBegin))) {
      options.before = {special(pieces, "bos_token", "<s>")};
    }
    if (settings_.flag("add_eos_token", t5)) {
      options.after = {special(pieces, "eos_token", "</s>")};
    }
    // transformers calls it legacy that every part between special tokens gets
    // a space.
    options.space_at_start_only = !settings_.flag("legacy", true);
    found_.tokenizer = make_sentencepiece(pieces, options, model_.vocabulary);
  }

  /// Begin, padding, end and what is unknown come first, then the pieces of the file behind its own three, and the
  /// mask at last.
  void read_fairseq(SentencePieceModel model, SentencePieceOptions& options) {
    std::vector<SentencePiece> pieces = {{"<s>", 0, PieceType::kControl},
                                         {"<pad>", 0, PieceType::kControl},
                                         {"</s>", 0, PieceType::kControl},
                                         {"<unk>", 0, PieceType::kUnknown}};
    for (const SentencePiece& piece : model.pieces) {
      if (piece.type == PieceType::kNormal) pieces.push_back(piece);
    }
    if (pieces.size() != model.pieces.size() + 1) {
      throw InputError(model.name + ": expected three pieces that are not made of text");
    }
    model.pieces = std::move(pieces);
    options.before = {0};
    options.after = {2};
    const auto mask = static_cast<uint32_t>(model.pieces.size());
    if (mask < model_.vocabulary && options.added.empty()) {
      for (const auto& [text, id] :
           {std::pair("<s>", 0u), {"<pad>", 1u}, {"</s>", 2u}, {"<unk>", 3u}, {"<mask>", mask}}) {
        AddedTokenSetting token;
        token.text = text;
        token.id = id;
        token.special = true;
        token.strip_left = id == mask;
        options.added.push_back(token);
      }
    }
    found_.tokenizer = make_sentencepiece(model, options, model_.vocabulary);
    found_.tokenizer->pair_between = {2, 2};
    found_.tokenizer->pair_after = {2};
    if (mask < model_.vocabulary) found_.tokenizer->mask_token = static_cast<int32_t>(mask);
  }

  /// The id of a token that settings name, or that has its usual text.
  uint32_t special(const SentencePieceModel& model, const std::string& name,
                   const std::string& usual) const {
    const auto named = settings_.named.find(name);
    const std::string text = named == settings_.named.end() ? usual : named->second;
    for (size_t id = 0; id < model.pieces.size(); ++id) {
      if (model.pieces[id].text == text) return static_cast<uint32_t>(id);
    }
    for (const AddedTokenSetting& added : settings_.added) {
      if (added.text == text && added.id) return *added.id;
    }
    throw InputError(model.name + ": there is no token " + printable(text, 40) +
                     ", which tokenizer_config.json calls " + name);
  }

  std::string directory_;
  TokenizerModel model_;
  TokenizerSettings settings_;
  FoundTokenizer found_;
};

}  // namespace

FoundTokenizer find_tokenizer(const std::string& directory, const TokenizerModel& model) {
  return Finder(directory, model).find();
}

FoundTokenizer read_tokenizer(const std::string& source, const TokenizerModel& model) {
  if (source == "byte") return {byte_tokenizer(model.vocabulary), {}, {}, {}};
  const std::filesystem::path path(source);
  if (is_folder(source)) {
    FoundTokenizer found = Finder(source, model).find();
    if (!found.tokenizer) throw InputError(source + " has no tokenizer that is known");
    return found;
  }
  const std::string directory = path.parent_path().string();
  return Finder(directory.empty() ? "." : directory, model).read(path.filename().string());
}

FoundTokenizer read_gguf_tokenizer(const Gguf& gguf, const TokenizerModel& model) {
  const std::optional<GgufVocabulary> vocabulary = read_gguf_vocabulary(gguf);
  if (!vocabulary) return {};
  FoundTokenizer found;
  found.tokenizer = make_gguf_tokenizer(gguf.path(), *vocabulary, model.vocabulary);
  found.files = {std::filesystem::path(gguf.path()).filename().string()};
  std::map<std::string, std::string> named;
  if (vocabulary->begin_token) named["bos_token"] = vocabulary->tokens[*vocabulary->begin_token];
  if (vocabulary->end_token) named["eos_token"] = vocabulary->tokens[*vocabulary->end_token];
  finish(vocabulary->chat_template, named, found);
  return found;
}

}  // namespace oxbow::convert

#include "converter/text/tokenizer/gguf_vocabulary.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <utility>

#include "host/errors.h"

namespace oxbow::convert {
namespace {

using Kind = GgufVocabulary::Kind;

const std::string kPrefix = "tokenizer.ggml.";

/// The values of tokenizer.ggml.model.
constexpr std::pair<std::string_view, Kind> kKinds[] = {{"gpt2", Kind::kByteLevel},
                                                        {"llama", Kind::kSentencePiece},
                                                        {"t5", Kind::kUnigram},
                                                        {"bert", Kind::kWordPiece},
                                                        {"rwkv", Kind::kLongest}};

/// Keys that change what becomes of a text, and the kind whose vocabularies may have them.
struct OwnKey {
  const char* name;
  std::initializer_list<Kind> kinds;
};
constexpr OwnKey kOwnKeys[] = {
    {"precompiled_charsmap", {Kind::kUnigram}},
    {"normalizer.lowercase", {Kind::kWordPiece}},
    {"normalizer.strip_accents", {Kind::kWordPiece}},
    // Between two texts.
    {"add_sep_token", {Kind::kWordPiece, Kind::kByteLevel, Kind::kUnigram}},
    {"suppress_tokens", {}}};

const GgufCut& read_cut(const Gguf& gguf) {
  const std::string key = kPrefix + "pre";
  std::string name = gguf.text(key).value_or("default");
  // Files from before there were names, and those whose maker did not know it. A GPT-2 has but one.
  if (name == "default" && gguf.text("general.architecture") == "gpt2") name = "gpt-2";
  const GgufCut* cut = find_gguf_cut(name);
  if (cut == nullptr) {
    gguf.fail(key,
              "a name that is known, such as gpt-2, llama-bpe or qwen2; how text is cut into words "
              "is not known");
  }
  return *cut;
}

std::vector<PieceType> read_types(const Gguf& gguf, size_t count) {
  const std::string key = kPrefix + "token_type";
  const auto numbers = gguf.integers(key);
  if (!numbers) return std::vector<PieceType>(count, PieceType::kNormal);
  if (numbers->size() != count) gguf.fail(key, std::to_string(count) + ", one for each token");
  std::vector<PieceType> types;
  for (const int64_t number : *numbers) {
    if (number < 1 || number > 6) {
      gguf.fail(key, "numbers from 1 to 6; one is " + std::to_string(number));
    }
    types.push_back(static_cast<PieceType>(number));
  }
  return types;
}

std::vector<float> read_scores(const Gguf& gguf, size_t count) {
  const std::string key = kPrefix + "scores";
  std::optional<std::vector<float>> scores = gguf.numbers(key);
  const bool good =
      scores && scores->size() == count &&
      std::all_of(scores->begin(), scores->end(), [](float score) { return std::isfinite(score); });
  if (!good) gguf.fail(key, std::to_string(count) + " finite numbers, one for each token");
  return std::move(*scores);
}

std::string read_char_map(const Gguf& gguf) {
  const auto bytes = gguf.integers(kPrefix + "precompiled_charsmap");
  std::string out;
  for (const int64_t byte : bytes.value_or(std::vector<int64_t>())) {
    out.push_back(static_cast<char>(static_cast<uint8_t>(byte)));
  }
  return out;
}

std::vector<std::string> read_merges(const Gguf& gguf) {
  const std::string key = kPrefix + "merges";
  std::optional<std::vector<std::string>> merges = gguf.texts(key);
  if (!merges) gguf.fail(key, "a list of texts");
  return std::move(*merges);
}

std::optional<uint32_t> read_token(const Gguf& gguf, const std::string& name, size_t count) {
  const std::optional<uint64_t> id = gguf.integer(kPrefix + name);
  // Files write -1 as the largest number for a token that is not there.
  if (!id || *id == UINT32_MAX) return std::nullopt;
  if (*id >= count) gguf.fail(kPrefix + name, "a token below " + std::to_string(count));
  return static_cast<uint32_t>(*id);
}

void refuse_unsupported(const Gguf& gguf, Kind kind) {
  for (const auto& [name, kinds] : kOwnKeys) {
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) continue;
    const auto found = gguf.values().find(kPrefix + name);
    if (found == gguf.values().end()) continue;
    const GgufValue& value = found->second;
    const bool off = value.is_array ? value.count == 0
                                    : value.type == GgufType::kBool && !*gguf.flag(kPrefix + name);
    if (!off) gguf.fail(kPrefix + name, "nothing; it is not supported");
  }
}

}  // namespace

std::optional<GgufVocabulary> read_gguf_vocabulary(const Gguf& gguf) {
  const std::string model_key = kPrefix + "model";
  const std::string model = gguf.text(model_key).value_or("none");
  if (model == "none" || model == "no_vocab") return std::nullopt;
  GgufVocabulary out;
  const auto* const found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                         [&](const auto& kind) { return kind.first == model; });
  if (found == std::end(kKinds)) {
    gguf.fail(model_key, "gpt2, llama, t5, bert or rwkv; other vocabularies are not supported");
  }
  out.kind = found->second;
  refuse_unsupported(gguf, out.kind);

  std::optional<std::vector<std::string>> tokens = gguf.texts(kPrefix + "tokens");
  if (!tokens || tokens->empty()) gguf.fail(kPrefix + "tokens", "a list of texts");
  out.tokens = std::move(*tokens);
  const size_t count = out.tokens.size();
  out.types = read_types(gguf, count);
  bool adds_begin = true;
  if (out.kind == Kind::kByteLevel) {
    out.cut = &read_cut(gguf);
    adds_begin = out.cut->adds_begin;
    out.merges = read_merges(gguf);
  } else if (out.kind == Kind::kLongest) {
    adds_begin = false;
  } else if (out.kind == Kind::kWordPiece) {
    out.lower_case = gguf.flag(kPrefix + "normalizer.lowercase").value_or(true);
    out.strip_accents = gguf.flag(kPrefix + "normalizer.strip_accents").value_or(out.lower_case);
    out.mask_token = read_token(gguf, "mask_token_id", count);
  } else {
    out.scores = read_scores(gguf, count);
    out.char_map = read_char_map(gguf);
    out.space_before_text = gguf.flag(kPrefix + "add_space_prefix").value_or(true);
    out.single_spaces = gguf.flag(kPrefix + "remove_extra_whitespaces").value_or(false);
  }

  out.begin_token = read_token(gguf, "bos_token_id", count);
  out.end_token = read_token(gguf, "eos_token_id", count);
  out.unknown_token = read_token(gguf, "unknown_token_id", count);
  if (gguf.flag(kPrefix + "add_bos_token").value_or(adds_begin)) out.before = out.begin_token;
  if (gguf.flag(kPrefix + "add_eos_token").value_or(false)) out.after = out.end_token;
  if (out.kind == Kind::kWordPiece) {
    // What begins and ends a text has other names here; the format itself misspells one of them.
    const auto begin = read_token(gguf, "cls_token_id", count);
    const auto end = read_token(gguf, "seperator_token_id", count);
    out.before = begin ? begin : out.begin_token;
    out.after = end ? end : out.end_token;
  }
  out.chat_template = gguf.text("tokenizer.chat_template").value_or("");
  return out;
}

}  // namespace oxbow::convert

#include "converter/text/tokenizer/gguf_vocabulary.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "host/errors.h"

namespace oxbow::convert {
namespace {

using Kind = GgufVocabulary::Kind;

const std::string kPrefix = "tokenizer.ggml.";

/// Keys that change what becomes of a text and that no supported vocabulary has.
constexpr const char* kUnsupported[] = {"precompiled_charsmap", "normalizer.lowercase",
                                        "normalizer.strip_accents", "add_sep_token",
                                        "suppress_tokens"};

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

void refuse_unsupported(const Gguf& gguf) {
  for (const char* name : kUnsupported) {
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
  if (model == "gpt2") {
    out.kind = Kind::kByteLevel;
  } else if (model == "llama") {
    out.kind = Kind::kSentencePiece;
  } else {
    gguf.fail(model_key, "gpt2 or llama; other vocabularies are not supported");
  }
  refuse_unsupported(gguf);

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
  } else {
    out.scores = read_scores(gguf, count);
    out.space_before_text = gguf.flag(kPrefix + "add_space_prefix").value_or(true);
    out.single_spaces = gguf.flag(kPrefix + "remove_extra_whitespaces").value_or(false);
  }

  out.begin_token = read_token(gguf, "bos_token_id", count);
  out.end_token = read_token(gguf, "eos_token_id", count);
  out.unknown_token = read_token(gguf, "unknown_token_id", count);
  if (gguf.flag(kPrefix + "add_bos_token").value_or(adds_begin)) out.before = out.begin_token;
  if (gguf.flag(kPrefix + "add_eos_token").value_or(false)) out.after = out.end_token;
  out.chat_template = gguf.text("tokenizer.chat_template").value_or("");
  return out;
}

}  // namespace oxbow::convert

#include "converter/text/tokenizer/gguf_vocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "converter/testing/gguf.h"
#include "converter/text/tokenizer/gguf_tokenizer.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "host/testing/paths.h"
#include "runtime/testing/tokenizer.h"

namespace oxbow::convert {
namespace {

using testing::GgufBuilder;
using testing::raw;

const std::string kTests = testing::source_dir() + "/tests/";

GgufVocabulary vocabulary_of(const std::string& name) {
  const MappedFile file(kTests + "formats/gguf/" + name);
  return read_gguf_vocabulary(Gguf(file.path(), file.bytes())).value();
}

size_t count_of(const GgufVocabulary& vocabulary, PieceType type) {
  return static_cast<size_t>(std::count(vocabulary.types.begin(), vocabulary.types.end(), type));
}

TEST(GgufVocabulary, IsTheOneThatTheFileWasMadeWith) {
  const GgufVocabulary vocabulary = vocabulary_of("gpt2-vocabulary.gguf");
  EXPECT_EQ(vocabulary.kind, GgufVocabulary::Kind::kByteLevel);
  EXPECT_EQ(vocabulary.cut->name, "gpt-2");
  EXPECT_FALSE(vocabulary.cut->whole_words);
  const nlohmann::json ids =
      nlohmann::json::parse(read_file(kTests + "tokenizers/gpt2/latin/vocab.json"));
  ASSERT_EQ(vocabulary.tokens.size(), ids.size());
  for (const auto& [text, id] : ids.items()) EXPECT_EQ(vocabulary.tokens[id.get<size_t>()], text);
  std::ifstream merges(kTests + "tokenizers/gpt2/latin/merges.txt");
  std::string line;
  std::getline(merges, line);
  for (const std::string& merge : vocabulary.merges) {
    std::getline(merges, line);
    EXPECT_EQ(merge, line);
  }
  EXPECT_FALSE(std::getline(merges, line)) << line;
  EXPECT_EQ(count_of(vocabulary, PieceType::kControl), 1u);
  EXPECT_EQ(vocabulary.tokens[vocabulary.end_token.value()], "<|endoftext|>");
  EXPECT_EQ(vocabulary.before, std::nullopt);
}

TEST(GgufVocabulary, OfLlama3BeginsTextsAndTakesWholeWords) {
  const GgufVocabulary vocabulary = vocabulary_of("llama3-vocabulary.gguf");
  EXPECT_EQ(vocabulary.cut, find_gguf_cut("llama-bpe"));
  EXPECT_TRUE(vocabulary.cut->whole_words);
  EXPECT_EQ(vocabulary.tokens[vocabulary.before.value()], "<|begin_of_text|>");
  EXPECT_EQ(vocabulary.after, std::nullopt);
}

TEST(GgufVocabulary, OfSentencePieceHasScoresAndBytes) {
  const GgufVocabulary vocabulary = vocabulary_of("llama2-vocabulary.gguf");
  EXPECT_EQ(vocabulary.kind, GgufVocabulary::Kind::kSentencePiece);
  EXPECT_EQ(vocabulary.scores.size(), vocabulary.tokens.size());
  EXPECT_EQ(count_of(vocabulary, PieceType::kByte), 256u);
  EXPECT_EQ(count_of(vocabulary, PieceType::kUnknown), 1u);
  EXPECT_EQ(vocabulary.tokens[vocabulary.before.value()], "<s>");
  EXPECT_EQ(vocabulary.tokens[vocabulary.end_token.value()], "</s>");
  EXPECT_TRUE(vocabulary.space_before_text);
  EXPECT_FALSE(vocabulary.single_spaces);
}

/// Two tokens and a merge.
GgufBuilder toy() {
  GgufBuilder file;
  file.add("general.architecture", std::string("llama"));
  file.add("tokenizer.ggml.model", std::string("gpt2"));
  file.add("tokenizer.ggml.pre", std::string("qwen2"));
  file.add_texts("tokenizer.ggml.tokens", {"a", "b", "ab"});
  file.add_texts("tokenizer.ggml.merges", {"a b"});
  return file;
}

std::optional<GgufVocabulary> read(const GgufBuilder& file) {
  const std::string bytes = file.bytes();
  return read_gguf_vocabulary(Gguf("t.gguf", std::as_bytes(std::span(bytes))));
}

template <typename T>
void replace(GgufBuilder& file, const std::string& key, const T& value) {
  std::erase_if(file.keys, [&](const std::string& entry) {
    return entry.starts_with(testing::raw_text(key));
  });
  file.add(key, value);
}

TEST(GgufVocabulary, MayBeMissing) { EXPECT_EQ(read(GgufBuilder()).has_value(), false); }

TEST(GgufVocabulary, WithoutTypesIsOfNormalTokens) {
  const GgufVocabulary vocabulary = read(toy()).value();
  EXPECT_EQ(vocabulary.cut->name, "qwen2");
  EXPECT_EQ(count_of(vocabulary, PieceType::kNormal), 3u);
}

TEST(GgufVocabulary, OfSmolLmCutsDigits) {
  GgufBuilder file = toy();
  replace(file, "tokenizer.ggml.pre", std::string("smollm"));
  EXPECT_EQ(read(file).value().cut->name, "smollm");
}

TEST(GgufVocabulary, OfAGpt2NeedsNoNameOfItsSplit) {
  GgufBuilder file = toy();
  replace(file, "general.architecture", std::string("gpt2"));
  replace(file, "tokenizer.ggml.pre", std::string("default"));
  EXPECT_EQ(read(file).value().cut->name, "gpt-2");
}

/// The tokens that a vocabulary of such a model makes of a text.
std::vector<int32_t> ids_of(const std::string& model, const std::vector<std::string>& tokens,
                            const std::vector<int32_t>& types, const std::string& text,
                            const std::function<void(GgufBuilder&)>& edit = {}) {
  GgufBuilder file;
  file.add("general.architecture", std::string("llama"));
  file.add("tokenizer.ggml.model", model);
  file.add_texts("tokenizer.ggml.tokens", tokens);
  std::string numbers;
  for (const int32_t type : types) numbers += raw(type);
  file.add_array("tokenizer.ggml.token_type", GgufType::kI32, types.size(), numbers);
  if (edit) edit(file);
  const auto count = static_cast<uint32_t>(tokens.size());
  const auto table = make_gguf_tokenizer("t.gguf", read(file).value(), count);
  const OwnedTokenizer tokenizer(*table, count);
  EXPECT_EQ(tokenizer.status(), Status::kOk) << tokenizer.error();
  EncodeOptions options;
  options.add_template = 1;
  return encode_all(*tokenizer, text, options);
}

TEST(GgufVocabulary, OfBertHasMarksWhereWordsBegin) {
  const std::vector<std::string> tokens = {"[UNK]", "[CLS]", "[SEP]", "\u2581he", "llo", "\u2581."};
  EXPECT_EQ(ids_of("bert", tokens, {2, 3, 3, 1, 1, 1}, "H\u00e9llo. xyz",
                   [](GgufBuilder& file) {
                     file.add("tokenizer.ggml.unknown_token_id", 0u);
                     file.add("tokenizer.ggml.cls_token_id", 1u);
                     file.add("tokenizer.ggml.seperator_token_id", 2u);
                   }),
            (std::vector<int32_t>{1, 3, 4, 5, 0, 2}));
}

TEST(GgufVocabulary, OfT5HasPiecesWithScores) {
  const std::vector<std::string> tokens = {"<pad>", "</s>", "<unk>",   "\u2581",
                                           "a",     "b",    "\u2581ab"};
  EXPECT_EQ(ids_of("t5", tokens, {3, 3, 2, 1, 1, 1, 1}, "ab  ba z",
                   [](GgufBuilder& file) {
                     std::string scores;
                     for (const float score : {0.0f, 0.0f, 0.0f, -2.0f, -3.0f, -3.0f, -4.0f}) {
                       scores += raw(score);
                     }
                     file.add_array("tokenizer.ggml.scores", GgufType::kF32, 7, scores);
                     file.add("tokenizer.ggml.eos_token_id", 1u);
                     file.add("tokenizer.ggml.unknown_token_id", 2u);
                     file.add("tokenizer.ggml.add_eos_token", true);
                     file.add("tokenizer.ggml.remove_extra_whitespaces", true);
                   }),
            (std::vector<int32_t>{6, 3, 5, 4, 3, 2, 1}));
}

TEST(GgufVocabulary, OfRwkvHasTheLongestTokens) {
  std::vector<std::string> tokens = {"<s>"};
  std::vector<int32_t> types = {3};
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof(text), "\\x%02x", static_cast<unsigned>(byte));
    tokens.emplace_back(text);
    types.push_back(1);
  }
  tokens.insert(tokens.end(), {"ab", "abc", "\\n\\n", "\\\\"});
  // The last one is a byte that is there already; the later one is taken.
  types.insert(types.end(), {1, 1, 1, 1});
  EXPECT_EQ(ids_of("rwkv", tokens, types, "abcab\n\nx\\"),
            (std::vector<int32_t>{258, 257, 259, 'x' + 1, 260}));
}

struct Damage {
  const char* name;
  std::function<void(GgufBuilder&)> edit;
  std::vector<std::string> words;
};

class HostileVocabulary : public ::testing::TestWithParam<Damage> {};

TEST_P(HostileVocabulary, IsRefusedByName) {
  GgufBuilder file = toy();
  GetParam().edit(file);
  try {
    read(file);
    ADD_FAILURE() << "not refused";
  } catch (const InputError& error) {
    const std::string text = error.what();
    for (const std::string& word : GetParam().words) {
      EXPECT_NE(text.find(word), std::string::npos) << "no '" << word << "' in: " << text;
    }
  }
}

void as_sentencepiece(GgufBuilder& file) {
  replace(file, "tokenizer.ggml.model", std::string("llama"));
}

const Damage kDamages[] = {
    {"Model",
     [](GgufBuilder& f) { replace(f, "tokenizer.ggml.model", std::string("plamo2")); },
     {"tokenizer.ggml.model", "plamo2", "gpt2, llama, t5, bert or rwkv"}},
    {"Split",
     [](GgufBuilder& f) { replace(f, "tokenizer.ggml.pre", std::string("no-such")); },
     {"tokenizer.ggml.pre", "no-such", "llama-bpe"}},
    {"NoTokens", [](GgufBuilder& f) { f.keys.erase(f.keys.begin() + 3); }, {"tokens is missing"}},
    {"NoMerges", [](GgufBuilder& f) { f.keys.pop_back(); }, {"merges is missing"}},
    {"FewTypes",
     [](GgufBuilder& f) {
       f.add_array("tokenizer.ggml.token_type", GgufType::kI32, 1, raw<int32_t>(1));
     },
     {"token_type", "expected 3"}},
    {"StrangeType",
     [](GgufBuilder& f) {
       f.add_array("tokenizer.ggml.token_type", GgufType::kI32, 3,
                   raw<int32_t>(1) + raw<int32_t>(7) + raw<int32_t>(1));
     },
     {"token_type", "one is 7"}},
    {"NoScores", as_sentencepiece, {"scores is missing"}},
    {"FewScores",
     [](GgufBuilder& f) {
       as_sentencepiece(f);
       f.add_array("tokenizer.ggml.scores", GgufType::kF32, 1, raw(1.0f));
     },
     {"scores", "3 finite numbers"}},
    {"InfiniteScore",
     [](GgufBuilder& f) {
       as_sentencepiece(f);
       f.add_array("tokenizer.ggml.scores", GgufType::kF32, 3,
                   raw(1.0f) + raw(INFINITY) + raw(2.0f));
     },
     {"scores", "finite"}},
    {"TokenBeyondTheLast",
     [](GgufBuilder& f) { f.add("tokenizer.ggml.eos_token_id", 3u); },
     {"eos_token_id", "below 3"}},
    {"Normaliser",
     [](GgufBuilder& f) { f.add("tokenizer.ggml.normalizer.lowercase", true); },
     {"normalizer.lowercase", "not supported"}},
    {"CharacterMap",
     [](GgufBuilder& f) {
       f.add_array("tokenizer.ggml.precompiled_charsmap", GgufType::kU8, 1, "x");
     },
     {"precompiled_charsmap", "not supported"}},
};

INSTANTIATE_TEST_SUITE_P(All, HostileVocabulary, ::testing::ValuesIn(kDamages),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace oxbow::convert

// Files of a checkpoint that say much with few bytes: what is made of them takes no time and no memory beyond what their
// bytes are worth, or they are refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "converter/formats/onnx_model.h"
#include "converter/text/tokenizer/find.h"
#include "converter/text/tokenizer/gguf_tokenizer.h"
#include "converter/text/tokenizer/merge_table.h"
#include "converter/text/tokenizer/pattern.h"
#include "converter/text/tokenizer/settings.h"
#include "host/errors.h"
#include "host/image.h"
#include "host/testing/files.h"
#include "runtime/text/tables/merges.h"

namespace oxbow::testing {
namespace {

using namespace convert;
using ::testing::HasSubstr;

// Of a processor. Without their bounds these take ten times as long, some of them hours.
#ifdef __SANITIZE_ADDRESS__
constexpr double kMostSeconds = 25;
#else
constexpr double kMostSeconds = 5;
#endif

/// What `work` throws; empty: nothing. It must come to an end in time.
template <typename Work>
std::string refusal_of(const Work& work) {
  std::string refusal;
  const std::clock_t begin = std::clock();
  try {
    work();
  } catch (const InputError& error) {
    refusal = error.what();
  }
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, kMostSeconds);
  return refusal;
}

TEST(HostileTime, ManyTokensOfOneKindAreReadOnce) {
  constexpr uint32_t kTokens = 200'000;
  GgufVocabulary vocabulary;
  vocabulary.kind = GgufVocabulary::Kind::kWordPiece;
  for (uint32_t i = 0; i < kTokens; ++i) vocabulary.tokens.push_back("t" + std::to_string(i));
  vocabulary.types.assign(kTokens, PieceType::kControl);
  vocabulary.unknown_token = 0;
  EXPECT_EQ(refusal_of([&] { make_gguf_tokenizer("a file", vocabulary, kTokens); }), "");

  const TemporaryDirectory directory;
  nlohmann::json added;
  for (uint32_t i = 0; i < kTokens / 2; ++i) added["t" + std::to_string(i)] = i;
  write_text(directory / "added_tokens.json", added.dump());
  size_t count = 0;
  EXPECT_EQ(refusal_of([&] { count = read_tokenizer_settings(directory / "").added.size(); }), "");
  EXPECT_EQ(count, kTokens / 2);
}

TEST(HostileTime, MergesWhoseIdsWereChosenToMeetAreRefused) {
  constexpr size_t kMerges = 100'000;
  std::vector<schema::Merge> merges;
  // All in the first part of the table, which takes the square of their number to fill.
  for (uint32_t left = 0; merges.size() < kMerges; ++left) {
    for (uint32_t right = 0; right < 4000 && merges.size() < kMerges; ++right) {
      if (merge_place(left, right, 2 * kMerges) < 1000) merges.emplace_back(left, right, 0, 0);
    }
  }
  EXPECT_THAT(refusal_of([&] { build_merge_table(merges); }), HasSubstr("in the same place"));
}

TEST(HostileTime, ATemplateDoesNotRepeatALongListOfTokens) {
  const auto refusal = [](size_t ids, size_t times) {
    nlohmann::json file = {
        {"model", {{"type", "WordLevel"}, {"unk_token", "a"}, {"vocab", {{"a", 0u}}}}},
        {"post_processor",
         {{"type", "TemplateProcessing"},
          {"special_tokens", {{"x", {{"ids", std::vector<uint32_t>(ids)}}}}},
          {"single", {{{"Sequence", {{"id", "A"}}}}}}}}};
    nlohmann::json& single = file["post_processor"]["single"];
    for (size_t i = 0; i < times; ++i) single.push_back({{"SpecialToken", {{"id", "x"}}}});
    const TemporaryDirectory directory;
    write_text(directory / "tokenizer.json", file.dump());
    return refusal_of([&] { read_tokenizer(directory / "tokenizer.json", {"", 300}); });
  };
  EXPECT_EQ(refusal(32, 32), "");
  EXPECT_THAT(refusal(32, 33), HasSubstr("the template has more than 1024 tokens"));
  // 40 GB of tokens.
  EXPECT_THAT(refusal(100'000, 100'000), HasSubstr("the template has more than 1024 tokens"));
}

TEST(HostileTime, TokensThatArePartsOfEachOtherAreNotCutInAllWays) {
  // Each of them in as many ways as it has bytes.
  nlohmann::json file = {
      {"config",
       {{"pattern", "."}, {"default_vocab_size", 1279}, {"default_num_special_tokens", 0}}},
      {"special_tokens", nlohmann::json::array()}};
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto add = [&](const std::string& bytes) {
    std::string text;
    for (size_t at = 0; at < bytes.size(); at += 3) {
      uint32_t bits = 0;
      for (size_t i = 0; i < 3; ++i) {
        bits = bits << 8 | (at + i < bytes.size() ? static_cast<uint8_t>(bytes[at + i]) : 0);
      }
      for (size_t i = 0; i < 4; ++i) {
        text += at + i > bytes.size() ? '=' : digits[bits >> (18 - 6 * i) & 63];
      }
    }
    const size_t rank = file.contains("vocab") ? file["vocab"].size() : 0;
    file["vocab"].push_back({{"rank", rank}, {"token_bytes", text}});
  };
  for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
  for (size_t length = 2; length <= 1024; ++length) add(std::string(length, 'a'));
  const TemporaryDirectory directory;
  write_text(directory / "tekken.json", file.dump());
  EXPECT_THAT(refusal_of([&] {
                read_tokenizer(directory / "tekken.json", {"", 2000});
              }),
              HasSubstr("its tokens can be cut in more than 64 times as many ways"));
}

TEST(HostileTime, APatternIsCompiledInTimeOrRefused) {
  const auto refusal = [](const std::string& pattern) {
    return refusal_of([&] { compile_patterns("test", {{pattern}}); });
  };
  // A thousand states, each of them of up to ten thousand ways, for each of hundreds of classes.
  std::string many;
  for (char c = '0'; c <= '8'; ++c) many += std::string("[^z]*a{999}") + c + "|";
  for (int i = 0; i < 200; ++i) {
    many += {'\xe4', static_cast<char>(0xb8 + i / 64), static_cast<char>(0x80 + i % 64)};
    many += "Z|";
  }
  EXPECT_THAT(refusal(many + "z"), HasSubstr("takes too long to be compiled"));
  // Sets of hundreds of ranges, each with two characters.
  std::string sets;
  while (sets.size() < 1 << 20) sets += "\\w";
  EXPECT_THAT(refusal(sets), HasSubstr("more than 4096 characters"));
  std::string possessive;
  while (possessive.size() < 4000) possessive += "a*+b\\w";
  EXPECT_EQ(refusal(possessive), "");
  EXPECT_EQ(refusal(punctuation_pattern()), "");
}

std::string number(uint64_t value) {
  std::string out;
  for (; value > 0x7f; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  return out + static_cast<char>(value);
}
std::string field(uint32_t index, const std::string& bytes) {
  return number(index << 3 | 2) + number(bytes.size()) + bytes;
}
std::string node(const std::string& op, const std::vector<std::string>& inputs,
                 const std::string& output) {
  std::string out;
  for (const std::string& input : inputs) out += field(1, input);
  return field(1, out + field(2, output) + field(4, op));
}

TEST(HostileTime, AnOnnxGraphIsFollowedInTimeOrRefused) {
  const auto refusal = [](const std::string& graph) {
    return refusal_of([&] {
      const std::string file = field(7, graph);
      const OnnxGraph read = read_onnx("t.onnx", std::as_bytes(std::span(file)));
      const TensorMap tensors = name_onnx_tensors("t.onnx", read);
      derive_onnx_config("t.onnx", read, tensors);
    });
  };
  const auto tensor = [](const std::string& name, const std::string& shape, uint64_t type,
                         const std::string& raw) {
    return field(5, shape + number(2 << 3) + number(type) + field(8, name) + field(9, raw));
  };
  const auto sizes = [](const std::vector<uint64_t>& shape) {
    std::string out;
    for (const uint64_t size : shape) out += number(1 << 3) + number(size);
    return out;
  };
  std::string words;
  for (const char* name :
       {"embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight",
        "embeddings.token_type_embeddings.weight", "encoder.layer.0.attention.self.query.weight",
        "encoder.layer.0.intermediate.dense.weight", "w"}) {
    words += tensor(name, sizes({1, 2}), 1, std::string(8, '\0'));
  }
  constexpr int kMany = 100'000;
  // Products of one name, and what takes it.
  std::string graph = words;
  for (int i = 0; i < kMany; ++i) graph += node("MatMul", {"a", "w"}, "x");
  for (int i = 0; i < kMany; ++i) graph += node("Mul", {"x"}, "");
  EXPECT_THAT(refusal(graph), HasSubstr("two operations make x"));
  // A sum of many.
  graph = words + node("MatMul", {"a", "w"}, "x") +
          node("Add", std::vector<std::string>(kMany, "x"), "y");
  EXPECT_THAT(refusal(graph), HasSubstr("t.onnx: "));
  // A long list that many are told, or the parts of it are.
  std::string reshapes;
  for (int i = 0; i < kMany / 4; ++i)
    reshapes += node("Reshape", {"a", "s"}, "r" + std::to_string(i));
  EXPECT_THAT(
      refusal(words + tensor("s", sizes({kMany}), 7, std::string(8 * kMany, '\1')) + reshapes),
      HasSubstr("the number of attention heads cannot be told"));
  EXPECT_THAT(refusal(words + node("Concat", std::vector<std::string>(kMany, "t"), "s") + reshapes),
              HasSubstr("the number of attention heads cannot be told"));
}

TEST(HostileTime, APictureOfManyScansOrOfMorePixelsThanBytesIsRefused) {
  if (!looks_like_image(std::as_bytes(std::span("\xff\xd8\xff", 3)))) GTEST_SKIP();
  const auto jpeg = [](uint32_t side, int scans) {
    const auto size = [&] {
      return std::string{static_cast<char>(side >> 8), static_cast<char>(side)};
    };
    std::string file("\xff\xd8\xff\xdb\x00\x43\x00", 7);
    file += std::string(64, '\1');
    // Progressive, one component.
    file += std::string("\xff\xc2\x00\x0b\x08", 5) + size() + size() +
            std::string("\x01\x01\x11\x00", 4);
    file += std::string("\xff\xc4\x00\x14\x00\x01", 6) + std::string(16, '\0');
    for (int i = 0; i < scans; ++i)
      file += std::string("\xff\xda\x00\x08\x01\x01\x00\x00\x00\x00", 10);
    return file + "\xff\xd9";
  };
  const auto refusal = [](const std::string& file) {
    return refusal_of([&] { read_image("a picture", std::as_bytes(std::span(file))); });
  };
  EXPECT_EQ(refusal(jpeg(64, 1)), "");
  EXPECT_THAT(refusal(jpeg(8000, 1)), HasSubstr("no more pixels than its"));
  EXPECT_THAT(refusal(jpeg(8000, 3000)), HasSubstr("more than 100 scans"));
}

}  // namespace
}  // namespace oxbow::testing

// Tokenizers that mean harm: files that the converter must refuse (tests/support/refusal.h), and tables in
// a model file that the runtime must refuse or stand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "converter/text/tokenizer/double_array.h"
#include "converter/text/tokenizer/merge_table.h"
#include "host/errors.h"
#include "runtime/api/oxbow.h"
#include "tests/support/cli.h"
#include "tests/support/edit_model.h"
#include "tests/support/files.h"
#include "tests/support/hub_folder.h"
#include "tests/support/refusal.h"
#include "tests/support/tiny_checkpoint.h"

namespace oxbow::testing {
namespace {

class HostileTokenizerFiles : public ::testing::Test {
 protected:
  void SetUp() override { with_vocabulary(300).write(directory_ / "in"); }

  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(directory_ / "in" / name, std::ios::binary) << bytes;
  }
  /// `name` decides which reader it is for.
  void refused(const std::string& name, const std::string& bytes, const std::string& words,
               uint64_t memory = kSmallMemory) {
    write(name, bytes);
    expect_refused(directory_, (directory_ / "in").string(), words, {}, memory);
    std::filesystem::remove(directory_ / "in" / name);
  }

  const TemporaryDirectory directory_;
};

std::string tokenizer_json(const std::string& vocab, const std::string& merges,
                           const std::string& added = "[]") {
  return R"({"added_tokens":)" + added +
         R"(,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},)"
         R"("decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":)" +
         vocab + R"(,"merges":)" + merges + "}}";
}

TEST_F(HostileTokenizerFiles, MergesThatLeadNowhereOrToThemselvesAreRefused) {
  const std::string vocab = R"({"a":0,"b":1,"ab":2,"aba":3})";
  // A part that is empty joins to what was there before, again and again.
  refused("tokenizer.json", tokenizer_json(vocab, R"([["","ab"]])"), "merge 1 has an empty part");
  refused("tokenizer.json", tokenizer_json(vocab, R"(["a b"," ab"])"), "merge 2 has an empty part");
  refused("tokenizer.json", tokenizer_json(vocab, R"([["a","b"],["a","b"]])"), "are the same");
  refused("tokenizer.json", tokenizer_json(vocab, R"([["b","a"]])"), "is not in the vocabulary");
  refused("tokenizer.json", tokenizer_json(vocab, R"([[["a"],"b"]])"), "expected two tokens");
  write("merges.txt", "a b\nab \n");
  refused("vocab.json", vocab, "merge 2 has an empty part");
}

TEST_F(HostileTokenizerFiles, IdsOutsideOfTheModelAreRefused) {
  for (const char* id : {"300", "-1", "4294967296", "9223372036854775808", "1e18", "\"0\"", "[]"}) {
    const std::string number = id;
    refused("tokenizer.json", tokenizer_json(R"({"a":)" + number + "}", "[]"), "has id");
    refused("tokenizer.json",
            tokenizer_json(R"({"a":0})", "[]", R"([{"content":"<x>","id":)" + number + "}]"),
            "has id");
    write("merges.txt", "");
    refused("vocab.json", R"({"a":)" + number + "}", "has id");
    std::filesystem::remove(directory_ / "in/merges.txt");
  }
  refused("tokenizer.json", tokenizer_json(R"({"a":0,"b":0})", "[]"), "the same id");
}

TEST_F(HostileTokenizerFiles, JsonOfAnotherShapeIsRefused) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  for (const char* text : {"[]", "{}", "null", "1", R"({"model":[]})", R"({"model":null})",
                           R"({"model":{"type":[]}})", R"({"model":{"type":"WordPiece"}})"}) {
    refused("tokenizer.json", text, "");
  }
  refused("tokenizer.json", R"({"model":)" + deep + "}", "nested deeper than");
  refused("tokenizer.json", tokenizer_json(R"({"a":)" + deep + "}", "[]"), "nested deeper than");
  refused("char_vocab.json", "[" + deep + "]", "nested deeper than");
  write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[MASK]\n[PAD]\na\n");
  for (const char* name :
       {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"}) {
    refused(name, R"({"x_token":)" + deep + "}", "nested deeper than");
    refused(name, "[1]", "is not a JSON object");
    refused(name, R"({"x_token": [1]})", "expected");
  }
  refused("vocab.txt", std::string(size_t{65} << 20, 'a'), "expected at most");
}

TEST_F(HostileTokenizerFiles, PiecesThatLieAreRefused) {
  const std::string huge = "\xff\xff\xff\xff\xff\xff\xff\xff\x7f";  // 2^63 - 1
  refused("tokenizer.model", "\x0a" + huge, "too early");
  refused("tokenizer.model", "\x0a\x0b\x0a" + huge, "too early");
  refused("tokenizer.model", std::string(100, '\xff'), "more than 64 bits");
  // Two million pieces in four million bytes.
  std::string many;
  for (int i = 0; i < 1 << 21; ++i) many += std::string("\x0a\x00", 2);
  refused("tokenizer.model", many, "piece 0", kSmallMemory * 4);
  // A table of replacements that is larger than its block.
  const std::string unknown = "\x0a\x09\x0a\x05<unk>\x18\x02";
  refused("tokenizer.model", unknown + std::string("\x1a\x08\x12\x06\xfc\xff\xff\x7f--", 10),
          "precompiled_charsmap");
}

// ---- in a model file --------------------------------------------------------------------------------

std::string tokenize(const std::string& model, const std::string& text) {
  const CommandResult result = oxbow({"tokenize", model, "--json", "--prompt", text});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

TEST(HostileMerges, ATableThatGoesInCirclesComesToAnEnd) {
  const TemporaryDirectory directory;
  make_hub_folder("gpt2", directory / "gpt2");
  const std::string good = convert(directory / "gpt2", directory / "good.oxb", {});
  const std::string circles = (directory / "circles.oxb").string();
  // Every two letters join to the first of them, which joins again.
  edit_model(good, circles, [](schema::ModelT& model) {
    const std::vector<uint32_t>& pieces = model.tokenizer->byte_pieces;
    std::vector<schema::Merge> merges;
    for (uint32_t a = 'a'; a <= 'z'; ++a) {
      for (uint32_t b = 'a'; b <= 'z'; ++b) {
        merges.emplace_back(pieces[a], pieces[b], (a + b) % 7, pieces[b < 'm' ? a : b]);
      }
    }
    model.tokenizer->merges = convert::build_merge_table(merges);
    model.tokenizer->trie.clear();
  });
  const nlohmann::json out =
      nlohmann::json::parse(tokenize(circles, std::string(3000, 'q') + "xa"));
  EXPECT_EQ(out["count"], 1) << "each join leaves one piece less";
  // No empty place ends a search: each byte of text would cost the whole table.
  const auto fill = [](schema::ModelT& model) {
    for (schema::Merge& merge : model.tokenizer->merges) {
      if (merge.left() == 0xffffffff) merge = schema::Merge(1, 2, 3, 4);
    }
  };
  try {
    edit_model(good, directory / "full.oxb", fill);
    FAIL() << "was opened";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("the table of merges is too full"), std::string::npos)
        << error.what();
  }
}

/// With what words a changed model is refused.
std::string refusal_of(const std::string& good, const std::string& to,
                       const std::function<void(schema::TokenizerT&)>& edit) {
  try {
    edit_model(good, to, [&](schema::ModelT& model) { edit(*model.tokenizer); });
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(HostileTexts, APieceThatIsNoPieceOfTextIsRefused) {
  const TemporaryDirectory directory;
  make_hub_folder("gpt2", directory / "gpt2");
  const std::string good = convert(directory / "gpt2", directory / "good.oxb", {});
  const std::string changed = (directory / "changed.oxb").string();
  // A byte of text may cost as many steps as the longest has bytes, in tables that lead in circles.
  const auto longer = [](schema::TokenizerT& table, size_t bytes, schema::TokenRole role) {
    const size_t last = table.text_ends.back() - table.text_ends[table.text_ends.size() - 2];
    table.texts.insert(table.texts.end(), bytes - last, 'a');
    table.text_ends.back() += static_cast<uint32_t>(bytes - last);
    table.roles.back() = role;
  };
  for (const auto& [role, most] : {std::pair{schema::TokenRole::Plain, size_t{8192}},
                                   std::pair{schema::TokenRole::Special, size_t{1024}}}) {
    EXPECT_EQ(
        refusal_of(good, changed, [&](schema::TokenizerT& table) { longer(table, most, role); }),
        "");
    EXPECT_THAT(refusal_of(good, changed,
                           [&](schema::TokenizerT& table) { longer(table, most + 1, role); }),
                ::testing::HasSubstr("tokenizer: a text of " + std::to_string(most + 1) +
                                     " bytes; expected " + std::to_string(most) + " at most"));
  }
  for (const auto text : {&schema::TokenizerT::inner_prefix, &schema::TokenizerT::word_suffix,
                          &schema::TokenizerT::unknown_text}) {
    EXPECT_THAT(
        refusal_of(good, changed,
                   [&](schema::TokenizerT& table) { table.*text = std::string(8193, 'a'); }),
        ::testing::HasSubstr("tokenizer: a text of 8193 bytes"));
  }
}

TEST(HostileTexts, AReplacementThatIsNoCharactersIsRefused) {
  const TemporaryDirectory directory;
  make_hub_folder("t5", directory / "t5");
  const std::string good = convert(directory / "t5", directory / "good.oxb", {});
  // A megabyte for each letter of a text.
  const auto edit = [](size_t bytes) {
    return [bytes](schema::TokenizerT& table) {
      table.char_map = std::make_unique<schema::CharMapT>();
      table.char_map->trie = convert::build_double_array({{"a", 0}});
      table.char_map->strings.assign(bytes, 'b');
      table.char_map->strings.push_back(0);
    };
  };
  EXPECT_EQ(refusal_of(good, directory / "changed.oxb", edit(1024)), "");
  EXPECT_THAT(refusal_of(good, directory / "changed.oxb", edit(1 << 20)),
              ::testing::HasSubstr("tokenizer: a replacement is too long"));
}

TEST(HostileTexts, WhatHasNoTextsIsNotDecodedByThem) {
  const TemporaryDirectory directory;
  with_vocabulary(256).write(directory / "in");
  const std::string good =
      convert(directory / "in", directory / "good.oxb", {"--tokenizer", "byte"});
  for (const auto decoding : {schema::TokenDecoding::Plain, schema::TokenDecoding::Spaced,
                              schema::TokenDecoding::WordEnds}) {
    EXPECT_THAT(refusal_of(good, directory / "changed.oxb",
                           [&](schema::TokenizerT& table) { table.decoding = decoding; }),
                ::testing::HasSubstr("bytes and characters have one way to be decoded"));
  }
}

/// Encodes a text and decodes what comes of it and all other ids, if the file opens at all.
void use_tokenizer(std::span<const std::byte> file, const std::string& text) {
  oxb_error error = OXB_ERROR_INIT;
  oxb_model* model = nullptr;
  if (oxb_model_open_memory(file.data(), file.size(), nullptr, &model, &error) != OXB_OK) {
    EXPECT_NE(error.text[0], '\0') << "refused without a word";
    return;
  }
  size_t bytes = 0;
  if (oxb_encoder_bytes(model, nullptr, &bytes, &error) == OXB_OK) {
    std::vector<std::byte> memory(bytes);
    oxb_encoder* encoder = nullptr;
    EXPECT_EQ(oxb_encoder_create(model, nullptr, memory.data(), bytes, &encoder, &error), OXB_OK);
    std::vector<int32_t> ids(16), all;
    for (size_t taken = 0, calls = 0; calls < 4 * text.size() + 1000; ++calls) {
      size_t count = 0, consumed = 0;
      if (oxb_encoder_run(encoder, text.data() + taken, text.size() - taken, 1, ids.data(),
                          ids.size(), &count, &consumed, &error) != OXB_OK) {
        break;
      }
      taken += consumed;
      all.insert(all.end(), ids.begin(), ids.begin() + static_cast<ptrdiff_t>(count));
      if (count < ids.size()) break;
    }
    oxb_model_info info = OXB_MODEL_INFO_INIT;
    EXPECT_EQ(oxb_model_get_info(model, &info, &error), OXB_OK);
    for (uint32_t id = 0; id < info.vocabulary; id += 7) all.push_back(static_cast<int32_t>(id));
    EXPECT_EQ(oxb_decoder_bytes(model, nullptr, &bytes, &error), OXB_OK) << error.text;
    std::vector<std::byte> room(bytes);
    oxb_decoder* decoder = nullptr;
    EXPECT_EQ(oxb_decoder_create(model, nullptr, room.data(), bytes, &decoder, &error), OXB_OK);
    std::vector<char> out(oxb_decoder_most_text(decoder));
    for (const int32_t id : all) {
      size_t count = 0;
      EXPECT_EQ(oxb_decoder_run(decoder, id, out.data(), out.size(), &count, &error), OXB_OK);
    }
  }
  oxb_model_close(model);
}

TEST(HostileText, AWordOfTooManyTokensIsToldAtTheEndOfTheTextToo) {
  const TemporaryDirectory directory;
  with_vocabulary(256).write(directory / "in");
  std::ofstream(directory / "in/vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##a\n";
  const std::string path = convert(directory / "in", directory / "model.oxb", {});
  oxb_error error = OXB_ERROR_INIT;
  oxb_model* model = nullptr;
  ASSERT_EQ(oxb_model_open_file(path.c_str(), nullptr, &model, &error), OXB_OK) << error.text;
  oxb_encoder_options options = OXB_ENCODER_OPTIONS_INIT;
  options.max_word_bytes = 64;
  size_t bytes = 0;
  ASSERT_EQ(oxb_encoder_bytes(model, &options, &bytes, &error), OXB_OK);
  std::vector<std::byte> memory(bytes);
  oxb_encoder* encoder = nullptr;
  ASSERT_EQ(oxb_encoder_create(model, &options, memory.data(), bytes, &encoder, &error), OXB_OK);
  const std::string text(90, 'a');
  std::vector<int32_t> ids(256);
  size_t count = 0, consumed = 0;
  EXPECT_EQ(oxb_encoder_run(encoder, text.data(), text.size(), 1, ids.data(), ids.size(), &count,
                            &consumed, &error),
            OXB_TEXT_STOPPED);
  EXPECT_NE(std::strstr(error.text, "max_word_bytes"), nullptr) << error.text;
  oxb_model_close(model);
}

class HostileTables : public ::testing::TestWithParam<std::string> {};

TEST_P(HostileTables, ChangedAnywhereWithRightChecksumsAreAnErrorOrWork) {
  const TemporaryDirectory directory;
  make_hub_folder(GetParam(), directory / "in");
  const std::vector<std::byte> good =
      read_bytes(convert(directory / "in", directory / "good.oxb", {"--max-segment", "8"}));
  const uint64_t graph = read_prefix(good).graph_bytes;
  const size_t rounded = (good.size() + 63) / 64 * 64;
  const std::unique_ptr<std::byte, decltype(&std::free)> memory(
      static_cast<std::byte*>(std::aligned_alloc(64, rounded)), &std::free);
  const std::span<std::byte> file(memory.get(), good.size());
  const std::string text =
      "Where does the Old River end? caf\xc3\xa9 12,345 don't <s>[MASK]</s>\n\n " +
      std::string(300, 'a') + "\xff \xe4\xb8\xad\xe6\x96\x87 e\xcc\x81.";
  std::mt19937 random(7);
  constexpr uint32_t kExtremes[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x10000, 0xff};
  constexpr int kRounds = 300;
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    std::memcpy(file.data(), good.data(), good.size());
    for (int changes = 1 << round % 4; changes > 0; --changes) {
      const size_t at = 64 + random() % (graph - 68);
      const uint32_t value = round % 2 == 0 ? kExtremes[random() % std::size(kExtremes)]
                                            : static_cast<uint32_t>(random());
      std::memcpy(file.data() + at / 4 * 4, &value, round % 3 == 0 ? 1 : 4);
    }
    repair_hashes(file);
    SCOPED_TRACE(round);
    use_tokenizer(file, text);
  }
}

INSTANTIATE_TEST_SUITE_P(Hub, HostileTables, ::testing::Values("gpt2", "bert", "llama", "t5"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace oxbow::testing

// oxb_generator on small models: the same text however it is asked for, cut off and resumed, constrained, and in chats.

#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "converter/text/tokenizer/double_array.h"
#include "runtime/api/oxbow.hpp"
#include "tests/support/cli.h"
#include "tests/support/edit_model.h"
#include "tests/support/files.h"
#include "tests/support/tiny_checkpoint.h"

namespace oxbow::testing {
namespace {

/// A byte for each token.
class GeneratorTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    with_vocabulary(256).write(*directory_ / "bytes");
    bytes_ = convert(*directory_ / "bytes", *directory_ / "bytes.oxb",
                     {"--tokenizer", "byte", "--max-segment", "8"});
  }
  static void TearDownTestSuite() { delete directory_; }

  static std::string edited(const std::function<void(schema::ModelT&)>& edit) {
    static int count = 0;
    const std::string path = (*directory_ / ("edited" + std::to_string(count++) + ".oxb")).string();
    edit_model(bytes_, path, edit);
    return path;
  }

  static inline TemporaryDirectory* directory_ = nullptr;
  static inline std::string bytes_;
};

/// A model, a session and a generator of it.
struct Stream {
  explicit Stream(const std::string& path, oxb_generator_options options = oxb::GeneratorOptions(),
                  uint64_t seed = 7)
      : model(std::move(*oxb::Model::open(path.c_str()))),
        session(std::move(*oxb::Session::create(model))),
        generator(create(session, options, seed)) {}

  static oxb::Generator create(oxb::Session& session, oxb_generator_options options,
                               uint64_t seed) {
    oxb::SamplerOptions sampling;
    sampling.seed = seed;
    sampling.repetition_penalty = 1.1f;
    if (options.sampling == nullptr) options.sampling = &sampling;
    oxb::Expected<oxb::Generator> made = oxb::Generator::create(session, options);
    if (!made) throw std::runtime_error(made.status().text());
    return std::move(*made);
  }
  std::string text() {
    oxb::Expected<std::string> all = generator.text();
    if (!all) throw std::runtime_error(all.status().text());
    return *all;
  }
  std::string pieces(size_t count) {
    std::string all;
    for (size_t i = 0; i < count; ++i) {
      oxb::Expected<oxb::Piece> piece = generator.next();
      if (!piece) throw std::runtime_error(piece.status().text());
      all += piece->view();
      if (piece->last()) break;
    }
    return all;
  }

  oxb::Model model;
  oxb::Session session;
  oxb::Generator generator;
};

oxb::GeneratorOptions up_to(uint64_t tokens) {
  oxb::GeneratorOptions options;
  options.max_tokens = tokens;
  return options;
}

TEST_F(GeneratorTest, GivesTheTextOfTheLoopThatAnybodyWouldWrite) {
  Stream stream(bytes_, up_to(60));
  const std::string prompt = "A prompt that is longer than a segment";
  ASSERT_TRUE(stream.generator.add(prompt).ok());
  const std::string text = stream.text();

  oxb::Session session = std::move(*oxb::Session::create(stream.model));
  const oxb_model_info info = stream.model.info();
  oxb::SamplerOptions sampling;
  sampling.seed = 7;
  sampling.repetition_penalty = 1.1f;
  oxb::Sampler sampler = std::move(*oxb::Sampler::create(info.output_width, sampling));
  oxb::Decoder decoder = std::move(*oxb::Decoder::create(stream.model));
  std::vector<float> logits(info.output_width);
  std::vector<int32_t> ids(prompt.begin(), prompt.end());
  for (const int32_t id : ids) sampler.accept(id);
  for (size_t at = 0; at < ids.size(); at += 8) {
    ASSERT_TRUE(
        session.run(std::span(ids).subspan(at, std::min<size_t>(8, ids.size() - at)), logits).ok());
  }
  std::string expected;
  for (int i = 0; i < 60; ++i) {
    const int32_t token = *sampler.pick(logits);
    sampler.accept(token);
    expected += *decoder.run(token);
    ASSERT_TRUE(session.run({&token, 1}, logits).ok());
  }
  expected += *decoder.finish();
  EXPECT_EQ(text, expected);

  const oxb::Generation progress = stream.generator.progress();
  EXPECT_EQ(progress.end, OXB_END_MAX_TOKENS);
  EXPECT_EQ(progress.tokens, 60u);
  EXPECT_EQ(progress.prompt_tokens, prompt.size());
  EXPECT_EQ(progress.position, prompt.size() + 60);
  EXPECT_GT(progress.prompt_nanoseconds, 0u);
  EXPECT_GT(progress.token_nanoseconds, 0u);
}

TEST_F(GeneratorTest, APromptIsTheSameInAnyPiecesAsTokensAndAfterAReset) {
  const std::string prompt = "Some text of a length that is not a multiple of eight.";
  Stream whole(bytes_, up_to(30));
  ASSERT_TRUE(whole.generator.add(prompt).ok());
  const std::string text = whole.text();
  whole.generator.reset();
  for (const char c : prompt) ASSERT_TRUE(whole.generator.add(std::string_view(&c, 1)).ok());
  EXPECT_EQ(whole.text(), text);
  // A session that was reset beside its generator is an empty stream too.
  whole.session.reset();
  const std::vector<int32_t> ids(prompt.begin(), prompt.end());
  ASSERT_TRUE(whole.generator.add(ids).ok());
  EXPECT_EQ(whole.text(), text);
  const int32_t wrong[] = {1, 256};
  EXPECT_EQ(whole.generator.add(wrong).code(), OXB_INVALID_ARGUMENT);
}

TEST_F(GeneratorTest, GoesOnAfterALimitAndWithoutAPromptBeginsWithALineBreak) {
  Stream once(bytes_, up_to(40)), twice(bytes_, up_to(20)), broken(bytes_, up_to(40));
  ASSERT_TRUE(broken.generator.add("\n").ok());
  const std::string text = once.text();
  EXPECT_EQ(broken.text(), text);
  // A limit ends a character that is not whole, so count tokens.
  std::string ids, both;
  once.generator.reset();
  for (int i = 0; i < 40; ++i) ids += std::to_string(once.generator.next()->token) + " ";
  for (int i = 0; i < 40; ++i) both += std::to_string(twice.generator.next()->token) + " ";
  EXPECT_EQ(both, ids);
}

TEST_F(GeneratorTest, ResumesFromASavedStateWhereverItWasCutOff) {
  const char* stops[] = {"a stop text that does not come"};
  oxb::GeneratorOptions options = up_to(64);
  options.stop_texts = stops;
  options.stop_text_count = 1;
  Stream whole(bytes_, options);
  const std::string prompt = "Where is it cut?";
  ASSERT_TRUE(whole.generator.add(prompt).ok());
  const std::string text = whole.text();
  for (const size_t cut : {0, 1, 2, 7, 33, 63}) {
    Stream first(bytes_, options), second(bytes_, options, 99);
    ASSERT_TRUE(first.generator.add(prompt).ok());
    const std::string begin = first.pieces(cut);
    std::vector<std::byte> state(first.generator.state_bytes());
    ASSERT_TRUE(first.generator.save(state).ok());
    ASSERT_TRUE(second.generator.add("something else").ok());
    second.pieces(5);
    const oxb::Status loaded = second.generator.load(state);
    ASSERT_TRUE(loaded.ok()) << loaded.text();
    EXPECT_EQ(begin + second.text(), text) << cut;
    EXPECT_EQ(begin + first.text(), text) << "saving changes nothing";
  }
}

TEST_F(GeneratorTest, RefusesDamagedAndForeignStates) {
  Stream stream(bytes_, up_to(8)), other(bytes_, [] {
    oxb::GeneratorOptions options = up_to(8);
    static const char* stops[] = {"longer"};
    options.stop_texts = stops;
    options.stop_text_count = 1;
    return options;
  }());
  ASSERT_TRUE(stream.generator.add("abc").ok());
  stream.pieces(3);
  std::vector<std::byte> state(stream.generator.state_bytes());
  ASSERT_TRUE(stream.generator.save(state).ok());
  EXPECT_EQ(other.generator.load(state).code(), OXB_STATE_MISMATCH);
  EXPECT_EQ(stream.generator.load(std::span(state).first(10)).code(), OXB_STATE_CORRUPT);
  EXPECT_EQ(stream.generator.load(std::span(state).first(state.size() - 1)).code(),
            OXB_STATE_MISMATCH);
  EXPECT_EQ(stream.generator.save(std::span(state).first(state.size() - 1)).code(),
            OXB_BUFFER_TOO_SMALL);
  for (size_t i = 0; i < state.size(); i += 13) {
    std::vector<std::byte> damaged = state;
    damaged[i] ^= std::byte{0x41};
    EXPECT_FALSE(stream.generator.load(damaged).ok()) << i;
  }
  EXPECT_TRUE(stream.generator.load(state).ok());
}

TEST_F(GeneratorTest, EndsBeforeAStopText) {
  Stream whole(bytes_, up_to(100));
  const std::string text = whole.text();
  const std::string stop = text.substr(text.size() / 2, 3);
  const char* stops[] = {stop.c_str()};
  if (stop.find('\0') != stop.npos) GTEST_SKIP() << "not a C string";
  oxb::GeneratorOptions options = up_to(100);
  options.stop_texts = stops;
  options.stop_text_count = 1;
  Stream stopped(bytes_, options);
  EXPECT_EQ(stopped.text(), text.substr(0, text.find(stop)));
  EXPECT_EQ(stopped.generator.progress().end, OXB_END_STOP_TEXT);
}

TEST_F(GeneratorTest, ATokenThatEndsATextGivesNoText) {
  Stream plain(bytes_, up_to(30));
  std::vector<int32_t> ids;
  for (int i = 0; i < 30; ++i) ids.push_back(plain.generator.next()->token);
  const int32_t end = ids[20];
  const auto first = static_cast<size_t>(std::find(ids.begin(), ids.end(), end) - ids.begin());
  Stream ended(edited([&](schema::ModelT& model) {
    model.generation = std::make_unique<schema::GenerationT>();
    model.generation->more_end_tokens = {end};
  }));
  for (size_t i = 0; i < first; ++i) EXPECT_EQ(ended.generator.next()->token, ids[i]);
  const oxb::Piece last = *ended.generator.next();
  EXPECT_EQ(last.token, -1);
  EXPECT_EQ(last.end, OXB_END_OF_TEXT);
  EXPECT_EQ(ended.generator.progress().tokens, first);
  // The stream goes on behind it when asked.
  EXPECT_EQ(ended.generator.next()->token, ids[first + 1]);
}

TEST_F(GeneratorTest, IsCancelledByACallbackAndFromAnotherThreadAndThenGoesOn) {
  Stream whole(bytes_, up_to(50)), cut(bytes_, up_to(50));
  const std::string text = whole.text();
  std::string begin;
  const oxb::Expected<int32_t> end = cut.generator.run([&](std::string_view piece) {
    begin += piece;
    return begin.size() < 10;
  });
  ASSERT_TRUE(end);
  EXPECT_EQ(*end, OXB_END_CANCELLED);
  EXPECT_EQ(begin + cut.text(), text);

  Stream endless(bytes_);
  std::atomic<int> heard{0};
  std::thread canceller([&] {
    while (heard < 5) std::this_thread::yield();
    endless.generator.cancel();
  });
  const oxb::Expected<int32_t> cancelled = endless.generator.run([&](std::string_view) {
    ++heard;
    return true;
  });
  canceller.join();
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(*cancelled, OXB_END_CANCELLED);
  // A cancelled prompt stops at the next segment.
  endless.generator.reset();
  endless.generator.cancel();
  ASSERT_TRUE(endless.generator.add(std::string(1000, 'a')).ok());
  EXPECT_LE(endless.generator.progress().position, 9u);
  const oxb::Expected<oxb::Piece> last = endless.generator.next();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->end, OXB_END_CANCELLED);
  // No text is no null either: fwrite() and the like may not be given one.
  EXPECT_NE(last->text, nullptr);
  EXPECT_EQ(endless.generator.next()->end, OXB_END_NONE);
}

TEST_F(GeneratorTest, ChoicesAreTheOnlyTexts) {
  const char* texts[] = {"yes", "no", "not at all", "\xc3\xa9t\xc3\xa9"};
  std::vector<bool> seen(4);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Stream stream(bytes_, oxb::GeneratorOptions(), seed);
    ASSERT_TRUE(stream.generator.add("Is it?").ok());
    ASSERT_TRUE(stream.generator.set_choices(texts).ok());
    const std::string text = stream.pieces(20);
    const oxb::Generation progress = stream.generator.progress();
    // "no" is only a beginning for a model without a token that ends a text.
    ASSERT_EQ(progress.end, OXB_END_CONSTRAINT) << text;
    ASSERT_GE(progress.choice, 0);
    EXPECT_EQ(text, texts[progress.choice]);
    seen[static_cast<size_t>(progress.choice)] = true;
  }
  EXPECT_TRUE(seen[0] && seen[2] && seen[3]);
  EXPECT_FALSE(seen[1]);
}

TEST_F(GeneratorTest, AConstrainedTextResumesFromASavedStateToo) {
  Stream whole(bytes_, up_to(40)), first(bytes_, up_to(40)), second(bytes_, up_to(40));
  for (Stream* stream : {&whole, &first, &second}) {
    ASSERT_TRUE(stream->generator.set_constraint(OXB_CONSTRAINT_JSON_OBJECT).ok());
  }
  const std::string text = whole.text();
  EXPECT_EQ(text.find_first_not_of(" \n\r\t"), text.find('{')) << text;
  const std::string begin = first.pieces(9);
  std::vector<std::byte> state(first.generator.state_bytes());
  ASSERT_TRUE(first.generator.save(state).ok());
  ASSERT_TRUE(second.generator.load(state).ok());
  EXPECT_EQ(begin + second.text(), text);
  ASSERT_TRUE(second.generator.set_constraint(OXB_CONSTRAINT_NONE).ok());
  EXPECT_EQ(second.generator.load(state).code(), OXB_STATE_MISMATCH);
  EXPECT_EQ(second.generator.set_constraint(9).code(), OXB_INVALID_ARGUMENT);
}

// ---- Chats --------------------------------------------------------------------------------------

std::string chatty(
    const std::function<std::string(const std::function<void(schema::ModelT&)>&)>& edited) {
  return edited([](schema::ModelT& model) {
    schema::TokenizerT& tokenizer = *model.tokenizer;
    tokenizer.chat_before = "[Q]";
    tokenizer.chat_after = "[A]";
    tokenizer.chat_next = ".[Q]";
    tokenizer.chat_system_before = "[S]";
    tokenizer.chat_system_after = "[/S][Q]";
    tokenizer.chat_trims = 2;
  });
}

TEST_F(GeneratorTest, AChatIsTheTextThatTheTemplateWouldWrite) {
  const std::string path = chatty(edited);
  Stream chat(path, up_to(12)), plain(path, up_to(12));
  oxb::Generator& generator = chat.generator;
  ASSERT_TRUE(generator.add_message(OXB_ROLE_SYSTEM, "Be short. ").ok());
  ASSERT_TRUE(generator.add_message(OXB_ROLE_USER, "  Who? ").ok());
  ASSERT_TRUE(generator.add_message(OXB_ROLE_ASSISTANT, "Me").ok());
  ASSERT_TRUE(generator.add_message(OXB_ROLE_USER, "Why?").ok());
  ASSERT_TRUE(plain.generator.add("[S]Be short. [/S][Q]Who?[A]Me.[Q]Why?[A]").ok());
  std::vector<int32_t> ids, same;
  for (int i = 0; i < 12; ++i) {
    ids.push_back(chat.generator.next()->token);
    same.push_back(plain.generator.next()->token);
  }
  EXPECT_EQ(ids, same);
  // What was said stays in the stream: only what is new is fed.
  const uint64_t before = generator.progress().position;
  ASSERT_TRUE(generator.add_message(OXB_ROLE_USER, "And?").ok());
  ASSERT_TRUE(plain.generator.add(".[Q]And?[A]").ok());
  EXPECT_EQ(chat.text(), plain.text());
  EXPECT_EQ(generator.progress().prompt_tokens, 11u);
  EXPECT_EQ(generator.progress().position, before + 11 + 12);
}

TEST_F(GeneratorTest, TheEndOfAnAnswerIsFedOnceWithTheTemplatesText) {
  const std::string path = edited([](schema::ModelT& model) {
    model.tokenizer->chat_before = "Q";
    model.tokenizer->chat_after = "A";
    model.tokenizer->chat_next = ".Q";
    model.generation = std::make_unique<schema::GenerationT>();
    for (int32_t id = 0; id < 256; ++id) model.generation->more_end_tokens.push_back(id);
  });
  Stream chat(path);
  ASSERT_TRUE(chat.generator.add_message(OXB_ROLE_USER, "a").ok());
  EXPECT_EQ(chat.generator.next()->end, OXB_END_OF_TEXT);
  EXPECT_EQ(chat.generator.progress().position, 3u);
  EXPECT_EQ(chat.generator.next().status().code(), OXB_INVALID_ARGUMENT) << "nothing was asked";
  ASSERT_TRUE(chat.generator.add_message(OXB_ROLE_USER, "b").ok());
  EXPECT_EQ(chat.generator.next()->end, OXB_END_OF_TEXT);
  EXPECT_EQ(chat.generator.progress().position, 7u);
}

TEST_F(GeneratorTest, UndoTakesBackTheLastQuestionAndItsAnswer) {
  oxb::GeneratorOptions options = up_to(10);
  options.undo_turns = 2;
  Stream chat(chatty(edited), options);
  oxb::Generator& generator = chat.generator;
  const auto ask = [&](const char* question) {
    EXPECT_TRUE(generator.add_message(OXB_ROLE_USER, question).ok());
    return chat.text();
  };
  ask("One?");
  const std::string second = ask("Two?");
  const uint64_t position = generator.progress().position;
  ask("Three?");
  ASSERT_TRUE(generator.undo().ok());
  EXPECT_EQ(generator.progress().position, position);
  ask("Another?");
  ASSERT_TRUE(generator.undo().ok());
  ASSERT_TRUE(generator.undo().ok());
  EXPECT_EQ(ask("Two?"), second);
  // The ring keeps two, so the first question cannot be taken back any more.
  ASSERT_TRUE(generator.undo().ok());
  EXPECT_EQ(generator.undo().code(), OXB_INVALID_ARGUMENT);
}

TEST_F(GeneratorTest, AChatRefusesWhatItsTemplateCannotSay) {
  Stream chat(chatty(edited));
  oxb::Generator& generator = chat.generator;
  EXPECT_EQ(generator.add_message(OXB_ROLE_ASSISTANT, "a").code(), OXB_INVALID_ARGUMENT);
  EXPECT_EQ(generator.add_message(3, "a").code(), OXB_INVALID_ARGUMENT);
  EXPECT_EQ(generator.undo().code(), OXB_INVALID_ARGUMENT);
  ASSERT_TRUE(generator.add_message(OXB_ROLE_USER, "a").ok());
  EXPECT_EQ(generator.add_message(OXB_ROLE_USER, "b").code(), OXB_INVALID_ARGUMENT);
  EXPECT_EQ(generator.add_message(OXB_ROLE_SYSTEM, "b").code(), OXB_INVALID_ARGUMENT);
  Stream plain(bytes_);
  EXPECT_EQ(plain.generator.add_message(OXB_ROLE_USER, "a").code(), OXB_INVALID_ARGUMENT);
}

TEST_F(GeneratorTest, WhatIsAddedToBytesCannotBeNamedByALiteralMessage) {
  const std::string path = edited([](schema::ModelT& model) {
    model.tokenizer->chat_before = "[Q]";
    model.tokenizer->chat_after = "[A]";
    model.tokenizer->added_trie = convert::build_double_array({{"<end>", 7}});
  });
  oxb::GeneratorOptions options = up_to(2);
  options.literal_text = 1;
  Stream chat(path, options);
  const oxb::Status named = chat.generator.add_message(OXB_ROLE_USER, "the <end>");
  EXPECT_EQ(named.code(), OXB_INVALID_ARGUMENT);
  EXPECT_STREQ(named.text(), "message, byte 4: '<end>' is the text of a special token");
  EXPECT_TRUE(chat.generator.add_message(OXB_ROLE_USER, "the end").ok());
}

TEST_F(GeneratorTest, ATableOfAddedTokensThatGoesInACircleCostsALiteralMessageNoTime) {
  const std::string path = edited([](schema::ModelT& model) {
    model.tokenizer->chat_before = "[Q]";
    model.tokenizer->chat_after = "[A]";
    std::vector<uint32_t>& units = model.tokenizer->added_trie;
    units = convert::build_double_array({{"a", 6}, {"b", 7}});
    // Behind an 'a' the same place as before it.
    units[(units[0] >> 10 << (units[0] >> 6 & 8)) ^ 'a'] = 'a' << 10 | 'a';
  });
  oxb::GeneratorOptions options = up_to(2);
  options.literal_text = 1;
  Stream chat(path, options);
  const std::clock_t start = std::clock();
  const oxb::Status named =
      chat.generator.add_message(OXB_ROLE_USER, std::string(400000, 'a') + "b");
  EXPECT_EQ(named.code(), OXB_INVALID_ARGUMENT) << named.text();
  // 2 s for 1,024 steps for each byte, 400 for as many as there are bytes.
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 20);
}

}  // namespace
}  // namespace oxbow::testing

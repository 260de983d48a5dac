// What an application asks of the interface besides running: names, metadata, ways to open, cancelling, embeddings. With
// the model files of tests/compat, so no converter is needed.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "host/testing/paths.h"
#include "runtime/api/oxbow.hpp"

namespace oxbow::testing {
namespace {

std::string file(const char* name) {
  return source_dir() + "/tests/compat/0.1/files/" + name + ".oxb";
}

oxb::Model open(const char* name, const oxb_open_options& options = oxb::OpenOptions()) {
  oxb::Expected<oxb::Model> model = oxb::Model::open(file(name).c_str(), options);
  EXPECT_TRUE(model.ok()) << model.status().text();
  return std::move(*model);
}

oxb::Session start(const oxb::Model& model,
                   const oxb_session_options& options = oxb::SessionOptions()) {
  oxb::Expected<oxb::Session> session = oxb::Session::create(model, options);
  EXPECT_TRUE(session.ok()) << session.status().text();
  return std::move(*session);
}

const char* const kGenerator = "gpt2-g1_tied-int8";
const char* const kEndless = "hf_transfo_xl-t2_plain-f32";
const char* const kClassifier = "distilbert-db1_cls-f32";
const char* const kTranslator = "marian-ma1-int8";

TEST(Api, MetadataIsKeysAndValues) {
  const oxb::Model model = open(kGenerator);
  const size_t count = model.info().metadata_count;
  ASSERT_GE(count, 3u);
  for (size_t i = 0; i < count; ++i) {
    const auto entry = model.metadata(i);
    ASSERT_TRUE(entry.ok());
    EXPECT_STREQ(model.find_metadata(entry->first), entry->second);
  }
  EXPECT_STREQ(model.find_metadata("architecture"), model.info().architecture);
  EXPECT_EQ(model.find_metadata("nothing"), nullptr);
  EXPECT_EQ(model.metadata(count).status().code(), OXB_INVALID_ARGUMENT);
}

TEST(Api, PartsAreFoundByTheirNames) {
  const oxb::Model model = open(kTranslator);
  EXPECT_EQ(*model.find_entry("encode"), 0u);
  EXPECT_EQ(*model.find_entry("step"), 1u);
  EXPECT_EQ(model.find_entry("other").status().code(), OXB_INVALID_ARGUMENT);
  const auto input = model.input_info(0, 0);
  ASSERT_TRUE(input.ok());
  EXPECT_EQ(*model.find_input(0, input->name), 0u);
  EXPECT_FALSE(model.find_input(0, "nothing").ok());
  EXPECT_FALSE(model.find_input(2, input->name).ok());
  const auto output = model.output_info(1, 0);
  ASSERT_TRUE(output.ok());
  EXPECT_STREQ(output->name, model.entry_info(1)->output);
  EXPECT_EQ(output->width, model.info().output_width);
  EXPECT_FALSE(model.output_info(1, model.entry_info(1)->output_count).ok());
  oxb::Session session = start(model);
  const auto first = session.tensor_info(0);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*session.find_tensor(first->name), 0u);
  EXPECT_FALSE(session.find_tensor("nothing").ok());
}

TEST(Api, AFileIsMappedOrReadAndRunsTheSame) {
  const std::vector<int32_t> tokens = {1, 2, 3};
  const oxb::Model mapped = open(kGenerator);
  const size_t width = mapped.info().output_width;
  std::vector<float> expected(width), logits(width);
  ASSERT_TRUE(start(mapped).run(tokens, expected).ok());
  const size_t bytes = mapped.info().file_bytes;
  std::vector<std::byte> memory(bytes + 64);
  std::byte* aligned = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
  oxb::OpenOptions options;
  options.prefetch = options.check_weights = 1;
  for (int way = 0; way < 3; ++way) {
    if (way > 0) options.access = OXB_ACCESS_READ;
    if (way > 1) options.memory = aligned, options.memory_bytes = bytes;
    const oxb::Model model = open(kGenerator, options);
    ASSERT_TRUE(start(model).run(tokens, logits).ok());
    EXPECT_EQ(logits, expected) << way;
  }
  options.memory_bytes = bytes - 1;
  EXPECT_EQ(oxb::Model::open(file(kGenerator).c_str(), options).status().code(),
            OXB_BUFFER_TOO_SMALL);
  options.access = 7;
  EXPECT_EQ(oxb::Model::open(file(kGenerator).c_str(), options).status().code(),
            OXB_INVALID_ARGUMENT);
}

TEST(Api, TheCapacityOfAnOutputIsRespected) {
  const oxb::Model model = open(kGenerator);
  oxb::Session session = start(model);
  const size_t width = model.info().output_width;
  std::vector<float> logits(2 * width - 1);
  const int32_t tokens[] = {1, 2};
  oxb_error error = OXB_ERROR_INIT;
  EXPECT_EQ(oxb_session_run(session.get(), tokens, 2, 2, logits.data(), logits.size(), &error),
            OXB_BUFFER_TOO_SMALL);
  EXPECT_EQ(error.code, OXB_BUFFER_TOO_SMALL);
  EXPECT_EQ(oxb_session_run(session.get(), tokens, 2, SIZE_MAX, logits.data(), SIZE_MAX, &error),
            OXB_BUFFER_TOO_SMALL);
  EXPECT_EQ(session.position(), 0u);
  oxb_output wanted = {sizeof(oxb_output), model.entry_info(0)->output, logits.data(),
                       logits.size(), 2};
  const oxb_input input = oxb::input(model.input_info(0, 0)->name, tokens);
  EXPECT_EQ(session.run_entry(0, {&input, 1}, {&wanted, 1}).code(), OXB_BUFFER_TOO_SMALL);
  wanted.rows = 1;
  EXPECT_TRUE(session.run_entry(0, {&input, 1}, {&wanted, 1}).ok());
  wanted.name = "nothing";
  EXPECT_EQ(session.run_entry(0, {&input, 1}, {&wanted, 1}).code(), OXB_INVALID_ARGUMENT);
  oxb_output twice[] = {wanted, wanted};
  twice[0].name = twice[1].name = model.entry_info(0)->output;
  EXPECT_EQ(session.run_entry(0, {&input, 1}, twice).code(), OXB_INVALID_ARGUMENT);
}

TEST(Api, ACancelBetweenRunsEndsTheNextAndChangesNothing) {
  const oxb::Model model = open(kGenerator);
  oxb::Session session = start(model);
  const std::vector<int32_t> tokens = {1, 2, 3};
  ASSERT_TRUE(session.run(tokens).ok());
  session.cancel();
  EXPECT_EQ(session.run(tokens).code(), OXB_CANCELLED);
  EXPECT_EQ(session.position(), 3u);
  EXPECT_TRUE(session.run(tokens).ok());
  session.cancel();
  session.reset();
  EXPECT_TRUE(session.run(tokens).ok());
}

// From the profile, which is told of every step: at a step that is known.
TEST(Api, ACancelDuringARunEndsItAfterTheStep) {
  const oxb::Model model = open(kGenerator);
  oxb::Session session = start(model);
  std::vector<std::byte> before(session.state_bytes());
  const std::vector<int32_t> tokens = {1, 2, 3};
  ASSERT_TRUE(session.run(tokens).ok());
  ASSERT_TRUE(session.checkpoint(before).ok());
  struct Seen {
    oxb_session* session;
    uint32_t last = 0;
  } seen = {session.get()};
  session.set_profile(
      [](void* context, uint32_t step, const char*, const char*, uint64_t) {
        auto* to = static_cast<Seen*>(context);
        to->last = step;
        if (step == 2) (void)oxb_session_cancel(to->session);
      },
      &seen);
  EXPECT_EQ(session.run(tokens).code(), OXB_CANCELLED);
  EXPECT_EQ(seen.last, 2u);
  EXPECT_EQ(session.run(tokens).code(), OXB_NEEDS_RESET);
  session.set_profile(nullptr, nullptr);
  ASSERT_TRUE(session.rewind(before).ok());
  EXPECT_TRUE(session.run(tokens).ok());
}

TEST(Api, ACancelOfAnotherThreadIsSeen) {
  const oxb::Model model = open(kEndless);
  oxb::Session session = start(model);
  std::atomic<bool> running = false;
  std::thread other([&] {
    while (!running) std::this_thread::yield();
    session.cancel();
  });
  oxb::Status status;
  while (status.ok()) {
    status = session.run(std::vector<int32_t>{1});
    running = true;
  }
  other.join();
  EXPECT_EQ(status.code(), OXB_CANCELLED);
}

/// Pages of a new mapping that are in memory once a session was created there.
size_t resident_pages(const oxb::Model& model, const oxb_session_options& options, size_t* pages) {
  oxb_plan plan = OXB_PLAN_INIT;
  EXPECT_EQ(oxb_session_plan(model.get(), &options, &plan, nullptr), OXB_OK);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  *pages = (plan.arena_bytes + page - 1) / page;
  void* arena =
      mmap(nullptr, *pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(arena, MAP_FAILED);
  oxb_session* session = nullptr;
  EXPECT_EQ(oxb_session_create(model.get(), &plan, arena, plan.arena_bytes, &session, nullptr),
            OXB_OK);
  std::vector<unsigned char> resident(*pages);
  EXPECT_EQ(mincore(arena, *pages * page, resident.data()), 0);
  oxb_session_destroy(session);
  munmap(arena, *pages * page);
  return static_cast<size_t>(
      std::count_if(resident.begin(), resident.end(), [](unsigned char r) { return r & 1; }));
}

TEST(Api, WarmingUpTouchesTheWholeArena) {
  const oxb::Model model = open(kTranslator);
  oxb::SessionOptions options;
  size_t pages = 0;
  EXPECT_LT(resident_pages(model, options, &pages), pages);
  options.warm_up = 1;
  EXPECT_EQ(resident_pages(model, options, &pages), pages);
}

TEST(Api, AFailedEncodeIsNotForgottenByWhoBorrows) {
  const oxb::Model model = open(kTranslator);
  oxb::Session lender = start(model);
  oxb::SessionOptions borrowing;
  borrowing.lender = lender.get();
  oxb::Session borrower = start(model, borrowing);
  const std::vector<int32_t> source = {5, 6, 7, 2}, token = {1};
  ASSERT_TRUE(lender.encode(source).ok());
  std::vector<std::byte> state(borrower.state_bytes());
  ASSERT_TRUE(borrower.checkpoint(state).ok());
  lender.set_profile([](void* context, uint32_t, const char*, const char*,
                        uint64_t) { (void)oxb_session_cancel(static_cast<oxb_session*>(context)); },
                     lender.get());
  EXPECT_EQ(lender.encode(source).code(), OXB_CANCELLED);
  lender.set_profile(nullptr, nullptr);
  EXPECT_EQ(borrower.run(token).code(), OXB_NEEDS_RESET);
  borrower.reset();
  EXPECT_EQ(borrower.run(token).code(), OXB_NEEDS_RESET);
  ASSERT_TRUE(borrower.rewind(state).ok());
  EXPECT_EQ(borrower.run(token).code(), OXB_NEEDS_RESET);
  // The stream is whole again, what it shares is not.
  ASSERT_TRUE(lender.copy(borrower).ok());
  EXPECT_EQ(lender.run(token).code(), OXB_NEEDS_RESET);
  ASSERT_TRUE(lender.encode(source).ok());
  EXPECT_TRUE(borrower.run(token).ok());
}

TEST(Api, EmbeddingsArePooledRows) {
  const oxb::Model model = open(kClassifier);
  oxb::Session session = start(model);
  const std::vector<int32_t> tokens = {1, 2, 3, 4};
  std::vector<float> row(model.info().output_width);
  ASSERT_TRUE(session.run(tokens, row).ok());
  oxb::EmbedOptions options;
  EXPECT_EQ(*session.embed(tokens, options), row);  // Of one row the mean is that row.
  options.normalise = 1;
  const auto unit = session.embed(tokens, options);
  ASSERT_TRUE(unit.ok());
  double squares = 0.0;
  for (const float value : *unit) squares += double{value} * double{value};
  EXPECT_NEAR(squares, 1.0, 1e-6);
  options.pooling = 9;
  EXPECT_EQ(session.embed(tokens, options).status().code(), OXB_INVALID_ARGUMENT);
  const oxb::Model generator = open(kGenerator);
  EXPECT_EQ(start(generator).embed(tokens).status().code(), OXB_INVALID_ARGUMENT);
}

TEST(Api, WhatWasMovedFromIsEmptyAndRefused) {
  const oxb::Model model = open(kGenerator);
  auto encoder = oxb::Encoder::create(model);
  auto decoder = oxb::Decoder::create(model);
  auto sampler = oxb::Sampler::create(model.info().output_width);
  ASSERT_TRUE(encoder.ok() && decoder.ok() && sampler.ok());
  oxb::Session session = start(model);
  const oxb::Encoder other_encoder = std::move(*encoder);
  const oxb::Decoder other_decoder = std::move(*decoder);
  const oxb::Sampler other_sampler = std::move(*sampler);
  const oxb::Session other_session = std::move(session);
  EXPECT_EQ(encoder->get(), nullptr);
  EXPECT_EQ(encoder->encode("a").status().code(), OXB_INVALID_ARGUMENT);
  EXPECT_EQ(decoder->run(0).status().code(), OXB_INVALID_ARGUMENT);
  EXPECT_EQ(sampler->pick(std::vector<float>(3)).status().code(), OXB_INVALID_ARGUMENT);
  EXPECT_EQ(session.run(std::vector<int32_t>{1}).code(), OXB_INVALID_ARGUMENT);
}

TEST(Api, AnObjectThatIsReplacedEndsBeforeItsMemoryGoes) {
  const oxb::Model model = open(kGenerator);
  oxb::Session session = start(model), other_session = start(model);
  auto generator = oxb::Generator::create(session);
  auto other = oxb::Generator::create(other_session);
  ASSERT_TRUE(generator.ok() && other.ok());
  ASSERT_TRUE(generator->add(std::vector<int32_t>{1, 2}).ok());
  ASSERT_TRUE(generator->next().ok());
  *generator = std::move(*other);
  EXPECT_EQ(other->get(), nullptr);
  EXPECT_EQ(other->next().status().code(), OXB_INVALID_ARGUMENT);
  ASSERT_TRUE(generator->add(std::vector<int32_t>{3}).ok());
  ASSERT_TRUE(generator->next().ok());
  EXPECT_EQ(generator->progress().prompt_tokens, 1u);
  session = start(model);
  EXPECT_TRUE(session.run(std::vector<int32_t>{1}).ok());
}

/// What the manual lists as "any thread, at any time".
void ask_a_model_everything(const oxb::Model& model, uint32_t thread) {
  oxb::SessionOptions options;
  options.threads = 1 + thread % 2;
  for (int i = 0; i < 20; ++i) {
    const oxb_model_info info = model.info();
    EXPECT_EQ(info.hash, model.info().hash);
    EXPECT_TRUE(model.check_weights().ok());
    EXPECT_TRUE(model.plan().ok() && model.plan(options).ok());
    EXPECT_TRUE(model.entry_info(0).ok() && model.input_info(0, 0).ok() &&
                model.output_info(0, 0).ok());
    EXPECT_TRUE(model.find_entry(model.entry_info(0)->name).ok());
    EXPECT_TRUE(model.find_input(0, model.input_info(0, 0)->name).ok());
    for (size_t k = 0; k < info.metadata_count; ++k) {
      EXPECT_STREQ(model.find_metadata(model.metadata(k)->first), model.metadata(k)->second);
    }
    EXPECT_EQ(model.label(info.label_count), nullptr);
    EXPECT_EQ(model.chat_before(), nullptr);
    EXPECT_EQ(model.chat_after(), nullptr);
    std::vector<char> text(64);
    EXPECT_TRUE(model.token_bytes(1, text).ok());
    EXPECT_FALSE(model.ends_text(-1));
    (void)model.sampler_options();
    (void)model.beam_options();
    auto encoder = oxb::Encoder::create(model);
    auto decoder = oxb::Decoder::create(model);
    ASSERT_TRUE(encoder.ok() && decoder.ok());
    EXPECT_EQ(encoder->encode("ab")->size(), 2u);
    oxb::Session session = start(model, options);
    EXPECT_TRUE(session.run(std::vector<int32_t>{1}).ok());
    EXPECT_TRUE(oxb::Model::open(file(kClassifier).c_str()).ok());
    EXPECT_STREQ(oxb::backend_name(OXB_BACKEND_AUTO), "auto");
    EXPECT_STREQ(oxb_status_name(OXB_OK), "ok");
  }
}

TEST(Api, AModelAnswersManyThreadsConcurrently) {
  const oxb::Model model = open(kGenerator);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([&model, i] { ask_a_model_everything(model, i); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Api, TheVersionAndTheBackendsHaveNames) {
  EXPECT_EQ(oxb::version(), oxb_version());
  EXPECT_STREQ(oxb::backend_name(OXB_BACKEND_CPU), "cpu");
  EXPECT_EQ(oxb::backend_name(99), nullptr);
  EXPECT_TRUE(oxb::is_built_in(OXB_BACKEND_REFERENCE));
  EXPECT_FALSE(oxb::is_built_in(99));
}

TEST(Api, ATableOfVectorsIsMadeFilledAndSearched) {
  constexpr uint32_t kWidth = 8;
  const auto bytes = oxb::index::bytes(3, kWidth, OXB_METRIC_DOT);
  ASSERT_TRUE(bytes.ok()) << bytes.status().text();
  std::vector<std::byte> memory(*bytes + 64);
  void* place = memory.data();
  size_t room = memory.size();
  ASSERT_NE(std::align(64, *bytes, place, room), nullptr);
  const std::span<std::byte> table(static_cast<std::byte*>(place), *bytes);
  ASSERT_TRUE(oxb::index::create(table, 3, kWidth, OXB_METRIC_DOT).ok());
  std::vector<float> vectors(3 * kWidth);
  for (size_t i = 0; i < 3; ++i) vectors[i * kWidth + i] = 1.0f;
  ASSERT_TRUE(oxb::index::put(table, 0, vectors).ok());
  EXPECT_EQ(oxb::index::info(table)->count, 3u);
  std::vector<uint64_t> ids(2);
  std::vector<float> scores(2);
  std::vector<float> query(kWidth);
  query[2] = 1.0f;
  query[1] = 0.5f;
  ASSERT_TRUE(oxb::index::search(table, query, 0, 3, 2, ids, scores).ok());
  EXPECT_EQ(ids, (std::vector<uint64_t>{2, 1}));
  EXPECT_NEAR(scores[0], 1.0f, 0.02f);
  EXPECT_EQ(oxb::index::search(table, query, 0, 3, 3, ids, scores).code(), OXB_BUFFER_TOO_SMALL);
  query.pop_back();
  EXPECT_EQ(oxb::index::search(table, query, 0, 3, 2, ids, scores).code(), OXB_INVALID_ARGUMENT);
  EXPECT_EQ(oxb::index::put(table, 0, query).code(), OXB_INVALID_ARGUMENT);
  EXPECT_FALSE(oxb::index::info(table.first(8)).ok());
}

TEST(Api, AnEncoderGivesAllTokensOfAText) {
  const oxb::Model model = open(kGenerator);
  auto encoder = oxb::Encoder::create(model);
  auto decoder = oxb::Decoder::create(model);
  ASSERT_TRUE(encoder.ok() && decoder.ok());
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "The quick brown fox. ";
  const auto ids = encoder->encode(text);
  ASSERT_TRUE(ids.ok()) << ids.status().text();
  std::string back;
  for (const int32_t id : *ids) back += *decoder->run(id);
  back += *decoder->finish();
  EXPECT_EQ(back, text);
  EXPECT_TRUE(encoder->encode("")->empty());
  EXPECT_FALSE(encoder->encode("\x01").ok());
  EXPECT_EQ(encoder->encode("ab")->size(), 2u);
}

TEST(Api, AnErrorKnowsItsCode) {
  const oxb::Model model = open(kGenerator);
  oxb::Session session = start(model);
  const oxb::Status status = session.run(std::vector<int32_t>{-1});
  EXPECT_EQ(status.code(), OXB_INVALID_ARGUMENT);
  EXPECT_EQ(status.step(), -1);
  EXPECT_EQ(status.op(), nullptr);
  EXPECT_STREQ(oxb_status_name(999), "unknown status");
}

struct Line {
  int32_t level;
  std::string text;
};

class Logged : public ::testing::Test {
 protected:
  Logged() {
    options_.log = [](void* context, int32_t level, const char* text) {
      static_cast<std::vector<Line>*>(context)->push_back({level, text});
    };
    options_.log_context = &lines_;
  }

  /// The one line since the last call, of this level and beginning.
  void expect_line(int32_t level, const std::string& begin) {
    ASSERT_EQ(lines_.size(), 1u) << begin;
    EXPECT_EQ(lines_[0].level, level);
    EXPECT_EQ(lines_[0].text.rfind(begin, 0), 0u) << lines_[0].text;
    lines_.clear();
  }

  oxb::OpenOptions options_;
  std::vector<Line> lines_;
};

TEST_F(Logged, AModelThatWasOpenedAndFromWhere) {
  (void)open(kGenerator, options_);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].text.find(" bytes, mapped"), std::string::npos) << lines_[0].text;
  expect_line(OXB_LOG_INFO, "model opened: gpt2, ");
  options_.access = OXB_ACCESS_READ;
  (void)open(kGenerator, options_);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].text.find(" bytes, read"), std::string::npos) << lines_[0].text;
  lines_.clear();
  EXPECT_FALSE(oxb::Model::open("/nowhere", options_).ok());
  EXPECT_TRUE(lines_.empty());
}

TEST_F(Logged, ASessionWithWhoComputesAndARefusedOneWithTheReason) {
  const oxb::Model model = open(kGenerator, options_);
  lines_.clear();
  oxb::SessionOptions options;
  options.backend = OXB_BACKEND_REFERENCE;
  (void)start(model, options);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].text.find(" reference, kernels: plain, arena: "), std::string::npos)
      << lines_[0].text;
  expect_line(OXB_LOG_INFO, "session created: reference, threads: 1, steps: ");
  options.backend = 99;
  oxb::Status status = oxb::Session::create(model, options).status();
  EXPECT_STREQ(status.text(), "backend 99 is unknown");
  expect_line(OXB_LOG_WARNING, "no session: backend 99 is unknown");
  options.backend = OXB_BACKEND_CPU;
  options.threads = 1000000;
  status = oxb::Session::create(model, options).status();
  expect_line(OXB_LOG_WARNING, std::string("no session on cpu: ") + status.text());
  // The words reach the log also when the caller does not want them.
  oxb_plan plan = OXB_PLAN_INIT;
  EXPECT_EQ(oxb_session_plan(model.get(), &options, &plan, nullptr), OXB_INVALID_ARGUMENT);
  expect_line(OXB_LOG_WARNING, std::string("no session on cpu: ") + status.text());
}

TEST_F(Logged, ATextThatEndedAndWhy) {
  const oxb::Model model = open(kGenerator, options_);
  oxb::Session session = start(model);
  lines_.clear();
  oxb::GeneratorOptions options;
  options.max_tokens = 3;
  auto generator = oxb::Generator::create(session, options);
  ASSERT_TRUE(generator.ok()) << generator.status().text();
  const int32_t prompt[] = {1, 2};
  oxb_end end = OXB_END_NONE;
  ASSERT_EQ(oxb_generator_add_tokens(generator->get(), prompt, 2, nullptr), OXB_OK);
  ASSERT_EQ(oxb_generator_run(generator->get(), nullptr, nullptr, &end, nullptr), OXB_OK);
  ASSERT_EQ(end, OXB_END_MAX_TOKENS);
  expect_line(OXB_LOG_INFO, "text ended: as many tokens as wanted, 2 + 3 tokens, position 5, ");
  ASSERT_EQ(oxb_generator_cancel(generator->get()), OXB_OK);
  ASSERT_EQ(oxb_generator_run(generator->get(), nullptr, nullptr, &end, nullptr), OXB_OK);
  expect_line(OXB_LOG_INFO, "text ended: cancelled, ");
}

}  // namespace
}  // namespace oxbow::testing

// Drafts: the first tokens of a run are kept, the others taken back, without running anything again.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "runtime/api/oxbow.hpp"
#include "tests/support/golden.h"

namespace oxbow::testing {
namespace {

const std::vector<std::string> kFloat = {"--weights", "f32", "--activations", "f32",
                                         "--debug-outputs"};

class Stream {
 public:
  explicit Stream(const std::string& path, const std::vector<int32_t>& start = {}) {
    auto model = oxb::Model::open(path.c_str());
    EXPECT_TRUE(model) << model.status().text();
    model_.emplace(std::move(*model));
    auto session = oxb::Session::create(*model_);
    EXPECT_TRUE(session) << session.status().text();
    session_.emplace(std::move(*session));
    if (!start.empty()) run(start);
  }

  std::vector<float> run(const std::vector<int32_t>& ids) {
    std::vector<float> logits(ids.size() * model_->info().output_width);
    const oxb::Status status = session_->run(ids, logits);
    EXPECT_TRUE(status.ok()) << status.text();
    return logits;
  }
  oxb::Session& session() { return *session_; }
  std::vector<std::byte> draft(size_t tokens) {
    const auto bytes = session_->draft_bytes(tokens);
    EXPECT_TRUE(bytes) << bytes.status().text();
    std::vector<std::byte> memory(*bytes);
    const oxb::Status status = session_->draft(memory, tokens);
    EXPECT_TRUE(status.ok()) << status.text();
    return memory;
  }

 private:
  std::optional<oxb::Model> model_;
  std::optional<oxb::Session> session_;
};

std::vector<std::byte> saved(Stream& stream) {
  std::vector<std::byte> bytes(stream.session().state_bytes());
  const oxb::Status status = stream.session().save(bytes);
  EXPECT_TRUE(status.ok()) << status.text();
  return bytes;
}

const std::vector<int32_t> kStart = {3, 14, 15, 9, 26, 5}, kDraft = {35, 8, 9, 7, 9},
                           kNext = {32, 38};

std::vector<int32_t> first(size_t count) { return {kDraft.begin(), kDraft.begin() + count}; }

class Drafts : public ::testing::TestWithParam<std::string> {};

TEST_P(Drafts, AStreamGoesOnBehindAnyOfItsTokensAsIfTheOthersHadNeverBeen) {
  for (const bool int8 : {false, true}) {
    const std::string path =
        golden_model(GetParam(), int8 ? std::vector<std::string>{"--debug-outputs"} : kFloat);
    for (size_t keep = 0; keep <= kDraft.size(); ++keep) {
      SCOPED_TRACE(keep);
      Stream plain(path, kStart), drafted(path, kStart);
      const std::vector<std::byte> memory = drafted.draft(kDraft.size());
      drafted.run(kDraft);
      const oxb::Status status = drafted.session().keep(keep);
      ASSERT_TRUE(status.ok()) << status.text();
      if (keep != 0) plain.run(first(keep));
      EXPECT_EQ(drafted.session().position(), plain.session().position());
      EXPECT_EQ(saved(drafted), saved(plain)) << "the state has the same bits";
      EXPECT_EQ(drafted.run(kNext), plain.run(kNext));
    }
  }
}

TEST_P(Drafts, MayBeMadeTokenByToken) {
  const std::string path = golden_model(GetParam(), kFloat);
  Stream plain(path, kStart), drafted(path, kStart);
  const std::vector<std::byte> memory = drafted.draft(kDraft.size());
  for (const int32_t id : kDraft) drafted.run({id});
  ASSERT_TRUE(drafted.session().keep(3).ok());
  for (const int32_t id : first(3)) plain.run({id});
  EXPECT_EQ(saved(drafted), saved(plain));
}

INSTANTIATE_TEST_SUITE_P(Models, Drafts,
                         ::testing::Values("retnet/rn1", "rwkv/rw2_rescale", "rwkv7/r7a",
                                           "mamba/mb1", "mamba2/m2b_limit_bias",
                                           "qwen3_5_text/qn2_tied", "recurrent_gemma/rg1",
                                           "lfm2/lf2_bias", "xlstm/xl2_bias"),
                         [](const auto& pack) { return golden_test_name(pack.param); });

TEST(Draft, RefusesWhatItCannotKeep) {
  const std::string path = golden_model("retnet/rn1", kFloat);
  Stream stream(path, kStart);
  oxb::Session& session = stream.session();
  EXPECT_STREQ(session.keep(0).text(), "there is no draft: begin one, then run");
  EXPECT_FALSE(session.draft_bytes(0));
  EXPECT_FALSE(session.draft_bytes(SIZE_MAX));
  std::vector<std::byte> small(8);
  EXPECT_EQ(session.draft(small, 2).code(), OXB_BUFFER_TOO_SMALL);
  const std::vector<std::byte> memory = stream.draft(2);
  stream.run({1});
  std::vector<float> logits(2 * 97);
  EXPECT_FALSE(session.run(std::vector<int32_t>{1, 2}, logits).ok()) << "three of two";
  EXPECT_FALSE(session.keep(2).ok()) << "two of one";
  EXPECT_TRUE(session.keep(1).ok());
  EXPECT_FALSE(session.keep(1).ok()) << "it is over";
}

TEST(Draft, EndsWithAResetAndARewind) {
  Stream stream(golden_model("retnet/rn1", kFloat), kStart);
  std::vector<std::byte> checkpoint(stream.session().state_bytes());
  ASSERT_TRUE(stream.session().checkpoint(checkpoint).ok());
  std::vector<std::byte> memory = stream.draft(2);
  ASSERT_TRUE(stream.session().rewind(checkpoint).ok());
  EXPECT_FALSE(stream.session().keep(0).ok());
  memory = stream.draft(2);
  stream.session().reset();
  EXPECT_FALSE(stream.session().keep(0).ok());
}

// What leaves a memory is compressed in groups: it depends on the cuts when.
TEST(Draft, IsRefusedWhereCutsMatter) {
  Stream stream(golden_model("labml_compressive/c1_d32_fullP", kFloat));
  const auto bytes = stream.session().draft_bytes(4);
  ASSERT_FALSE(bytes);
  EXPECT_NE(std::string(bytes.status().text()).find("use checkpoint and rewind"), std::string::npos)
      << bytes.status().text();
}

}  // namespace
}  // namespace oxbow::testing

// Models with several inputs and entry points, streams that have an end, borrowers and rings that do
// not start empty, through the C++ interface and by means of golden packs.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/api/oxbow.hpp"
#include "tests/support/api_refusal.h"
#include "tests/support/cli.h"
#include "tests/support/golden.h"

namespace oxbow::testing {
namespace {

/// A pack, converted and opened.
class Pack {
 public:
  explicit Pack(const std::string& name, const Words& options = {"--weights", "int8"})
      : file_(golden_model(name, options)), model_(oxb::Model::open(file_.c_str())) {
    if (!model_) throw std::runtime_error(model_.status().text());
  }
  const oxb::Model& model() const { return *model_; }
  oxb_model_info info() const { return model_->info(); }
  oxb::Session session(const oxb::Session* lender = nullptr) const {
    oxb::SessionOptions options;
    if (lender != nullptr) options.lender = lender->get();
    oxb::Expected<oxb::Session> made = oxb::Session::create(*model_, options);
    if (!made) throw std::runtime_error(made.status().text());
    return std::move(*made);
  }

 private:
  std::string file_;
  oxb::Expected<oxb::Model> model_;
};

std::vector<float> fed(const Pack& pack, oxb::Session& session,
                       const std::vector<int32_t>& tokens) {
  std::vector<float> logits(tokens.size() * pack.info().output_width);
  const oxb::Status status = session.run(tokens, logits);
  EXPECT_TRUE(status.ok()) << status.text();
  return logits;
}

std::vector<int32_t> counting(size_t count, int32_t limit) {
  std::vector<int32_t> tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = static_cast<int32_t>(i * 7 + 3) % limit;
  return tokens;
}

TEST(EntryPoints, WrongInputsAreRefusedByName) {
  const Pack pack("bert/b1_cls");
  oxb::Session session = pack.session();
  const std::vector<int32_t> ids = {1, 2, 3, 4}, ones = {1, 1, 1, 1}, large = {1, 1, 1, 1 << 20};
  std::vector<float> logits(pack.info().output_width);
  const oxb_input main{sizeof(oxb_input), "input_ids", ids.data(), 4},
      mask{sizeof(oxb_input), "attention_mask", ones.data(), 4};
  const auto run = [&](const std::vector<oxb_input>& inputs, size_t rows = 1, size_t entry = 0) {
    return session.run_entry(entry, inputs, logits, rows);
  };
  const oxb_status wrong = OXB_INVALID_ARGUMENT;
  EXPECT_TRUE(run({main, mask}).ok());
  EXPECT_TRUE(run({mask, main}).ok());
  expect_refused(run({mask}), wrong, "needs the input 'input_ids'");
  expect_refused(run({}), wrong, "inputs is null");
  expect_refused(run({main, {sizeof(oxb_input), "attention", ones.data(), 4}}), wrong,
                 "'attention'");
  expect_refused(run({main, mask, mask}), wrong, "given twice");
  expect_refused(run({main, {sizeof(oxb_input), "attention_mask", ones.data(), 3}}), wrong,
                 "attention_mask' has 3");
  expect_refused(run({main, {sizeof(oxb_input), "attention_mask", nullptr, 4}}), wrong,
                 "attention_mask' has 0");
  expect_refused(run({{sizeof(oxb_input), "input_ids", ids.data(), 0}}), wrong, "a run takes 1 to");
  expect_refused(run({{sizeof(oxb_input), "input_ids", large.data(), 4}}), wrong, "at position 3");
  expect_refused(run({main, {sizeof(oxb_input), "attention_mask", large.data(), 4}}), wrong,
                 "at position 3");
  expect_refused(run({main}, 2), OXB_BUFFER_TOO_SMALL, "2 rows have");
  expect_refused(run({main}, 1, 1), wrong, "entry point 1");
  expect_refused(session.run_entry(0, {&main, 1}, std::span<float>(), 1), wrong, "values is null");
  // None of this has hurt it.
  EXPECT_TRUE(run({main, mask}).ok());
}

TEST(EntryPoints, MissingInputsHaveTheirDefaults) {
  const Pack pack("bert/b1_cls");
  oxb::Session session = pack.session();
  const std::vector<int32_t> ids = counting(9, 50), ones(9, 1), zeros(9, 0);
  const std::vector<oxb_input> all = {{sizeof(oxb_input), "input_ids", ids.data(), 9},
                                      {sizeof(oxb_input), "attention_mask", ones.data(), 9},
                                      {sizeof(oxb_input), "token_type_ids", zeros.data(), 9}};
  std::vector<float> a(pack.info().output_width), b(a);
  ASSERT_TRUE(session.run_entry(0, all, a, 1).ok());
  ASSERT_TRUE(session.run_entry(0, {all.data(), 1}, b, 1).ok());
  EXPECT_EQ(a, b);
  const std::vector<oxb_input> types = {all[0],
                                        {sizeof(oxb_input), "token_type_ids", ones.data(), 9}};
  ASSERT_TRUE(session.run_entry(0, types, b, 1).ok());
  EXPECT_NE(a, b);
}

TEST(EntryPoints, ABatchIsItsTextsOneByOne) {
  for (const char* name : {"bert/b1_cls", "bert/b2_mlm"}) {
    const Pack pack(name);
    oxb::Session session = pack.session();
    const std::vector<size_t> lengths = {3, 1, 7};
    const std::vector<int32_t> tokens = counting(11, 50);
    const size_t width = pack.info().output_width;
    const bool one_row = pack.model().entry_info(0)->output_rows == 1;
    const size_t rows = one_row ? lengths.size() : tokens.size();
    std::vector<float> all(rows * width), single(rows * width);
    const oxb::Status status = session.run_batch(tokens, lengths, all);
    ASSERT_TRUE(status.ok()) << status.text();
    size_t token = 0, row = 0;
    for (const size_t length : lengths) {
      const size_t count = one_row ? 1 : length;
      ASSERT_TRUE(session
                      .run(std::span(tokens).subspan(token, length),
                           std::span(single).subspan(row * width, count * width))
                      .ok());
      token += length;
      row += count;
    }
    EXPECT_EQ(all, single) << name;

    expect_refused(session.run_batch(tokens, lengths, std::span(all).first(all.size() - width)),
                   OXB_BUFFER_TOO_SMALL, "room for");
    const std::vector<size_t> none = {3, 0};
    expect_refused(session.run_batch(tokens, none, all), OXB_INVALID_ARGUMENT, "1 to");
  }
  const Pack streams("gpt2/g1_tied");
  oxb::Session session = streams.session();
  const std::vector<int32_t> tokens = {1, 2};
  const std::vector<size_t> lengths = {2};
  std::vector<float> logits(2 * streams.info().output_width);
  expect_refused(session.run_batch(tokens, lengths, logits), OXB_INVALID_ARGUMENT, "streams");
}

TEST(EntryPoints, ATranslatorEncodesBeforeItDecodes) {
  const Pack pack("marian/ma1");
  oxb::Session session = pack.session();
  const std::vector<int32_t> one = {5, 6, 7, 0}, other = {9, 8, 7, 6, 5, 0}, text = {1, 2, 3};
  ASSERT_TRUE(session.encode(one).ok());
  const std::vector<float> first = fed(pack, session, text);
  EXPECT_EQ(session.position(), text.size());
  ASSERT_TRUE(session.encode(other).ok());
  EXPECT_EQ(session.position(), 0u);
  EXPECT_NE(fed(pack, session, text), first);
  ASSERT_TRUE(session.encode(one).ok());
  EXPECT_EQ(fed(pack, session, text), first);

  const Pack generator("gpt2/g1_tied");
  oxb::Session stream = generator.session();
  expect_refused(stream.encode(one), OXB_INVALID_ARGUMENT, "does not translate");
}

TEST(EntryPoints, BorrowersShareWhatWasEncodedAndNothingElse) {
  for (const char* name : {"marian/ma1", "t5/t5a_relu_tied", "lite_transformer/lt1_dynamic"}) {
    const Pack pack(name);
    oxb::Session lender = pack.session();
    oxb::Session borrower = pack.session(&lender);
    EXPECT_LT(borrower.arena_bytes(), lender.arena_bytes()) << name;
    const std::vector<int32_t> source = {5, 6, 7, 2}, a = {1, 2, 3}, b = {4, 5};
    ASSERT_TRUE(lender.encode(source).ok());
    expect_refused(borrower.encode(source), OXB_INVALID_ARGUMENT, "lender");

    // In turns, as a search does; each as if it were alone.
    std::vector<float> from_lender, from_borrower;
    for (size_t i = 0; i < 3; ++i) {
      const std::vector<float> row = fed(pack, lender, {a[i]});
      from_lender.insert(from_lender.end(), row.begin(), row.end());
      if (i >= b.size()) continue;
      const std::vector<float> other = fed(pack, borrower, {b[i]});
      from_borrower.insert(from_borrower.end(), other.begin(), other.end());
    }
    oxb::Session alone = pack.session();
    ASSERT_TRUE(alone.encode(source).ok());
    EXPECT_EQ(fed(pack, alone, a), from_lender) << name;
    ASSERT_TRUE(alone.encode(source).ok());
    EXPECT_EQ(fed(pack, alone, b), from_borrower) << name;

    // A copy continues as the other would.
    const oxb::Status copied = borrower.copy(lender);
    ASSERT_TRUE(copied.ok()) << copied.text();
    EXPECT_EQ(borrower.position(), lender.position());
    const std::vector<float> next = fed(pack, borrower, {4});
    EXPECT_EQ(fed(pack, lender, {4}), next) << name;

    oxb::Session stranger = pack.session();
    EXPECT_FALSE(borrower.copy(stranger).ok());
  }
}

TEST(EntryPoints, LenderAndBorrowerBelongToOneModel) {
  const Pack a("marian/ma1"), b("t5/t5a_relu_tied");
  oxb::Session lender = a.session();
  oxb::SessionOptions options;
  options.lender = lender.get();
  expect_refused(oxb::Session::create(b.model(), options).status(), OXB_INVALID_ARGUMENT,
                 "another model");
}

TEST(EntryPoints, AFullStreamSaysSoAndStaysAsItWas) {
  const Pack pack("gpt2/g1_tied");
  const uint64_t capacity = pack.info().capacity;
  ASSERT_GT(capacity, 8u);
  oxb::Session session = pack.session(), undisturbed = pack.session();
  const std::vector<int32_t> tokens = counting(capacity, 100);
  for (oxb::Session* each : {&session, &undisturbed}) {
    for (size_t i = 0; i + 4 < capacity; ++i) fed(pack, *each, {tokens[i]});
  }
  std::vector<std::byte> before(session.state_bytes()), after(before);
  ASSERT_TRUE(session.checkpoint(before).ok());
  std::vector<float> logits(5 * pack.info().output_width);
  expect_refused(session.run(std::span(tokens).first(5), logits), OXB_STREAM_FULL, "5 more");
  ASSERT_TRUE(session.checkpoint(after).ok());
  EXPECT_EQ(before, after);

  const std::vector<int32_t> rest(tokens.end() - 4, tokens.end());
  EXPECT_EQ(fed(pack, session, rest), fed(pack, undisturbed, rest));
  EXPECT_EQ(session.position(), capacity);
  expect_refused(session.run({tokens.data(), 1}, {}), OXB_STREAM_FULL, "--ring");
  session.reset();
  EXPECT_TRUE(session.run({tokens.data(), 1}, {}).ok());
}

/// The rows of a tensor of a session, by name.
std::vector<float> read(const oxb::Session& session, const std::string& name, uint32_t* rows,
                        uint32_t* width) {
  for (size_t i = 0; i < session.tensor_count(); ++i) {
    const auto info = session.tensor_info(i);
    if (info->name != name) continue;
    *rows = info->rows;
    *width = info->width;
    std::vector<float> values(size_t{info->rows} * info->width);
    EXPECT_TRUE(session.tensor_read(i, values).ok());
    return values;
  }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

TEST(EntryPoints, ARingMayStartFullOfWhatTheFileSays) {
  const Pack pack("hf_transfo_xl/t2_plain",
                  {"--weights", "f32", "--activations", "f32", "--debug-outputs"});
  oxb::Session session = pack.session();
  uint32_t rows = 0, width = 0;
  const std::vector<float> fresh = read(session, "mem.layer0", &rows, &width);
  EXPECT_EQ(rows, 9u);
  EXPECT_TRUE(std::all_of(fresh.begin(), fresh.end(), [](float v) { return v == 0.0f; }));
  fed(pack, session, {1, 2, 3});
  const std::vector<float> later = read(session, "mem.layer0", &rows, &width);
  EXPECT_EQ(rows, 9u);
  EXPECT_TRUE(
      std::all_of(later.begin(), later.begin() + 6 * width, [](float v) { return v == 0; }));
  EXPECT_TRUE(std::any_of(later.end() - 3 * width, later.end(), [](float v) { return v != 0; }));
  session.reset();
  EXPECT_EQ(read(session, "mem.layer0", &rows, &width), fresh);
}

TEST(EntryPoints, PinnedRowsOfARingStay) {
  const Pack pack("llama/l1_gqa", {"--weights", "f32", "--activations", "f32", "--context", "16",
                                   "--ring", "--sinks", "2", "--max-segment", "8"});
  EXPECT_EQ(pack.info().capacity, 0u);
  oxb::Session session = pack.session();
  const std::vector<int32_t> tokens = counting(60, 100);
  uint32_t rows = 0, width = 0;
  std::vector<float> pinned, newest;
  for (size_t i = 0; i < tokens.size(); ++i) {
    fed(pack, session, {tokens[i]});
    const std::vector<float> values = read(session, "value.layer0", &rows, &width);
    ASSERT_GE(rows, std::min<size_t>(i + 1, 2));
    if (i == 1) pinned.assign(values.begin(), values.begin() + 2 * width);
    if (i > 1) {
      EXPECT_TRUE(std::equal(pinned.begin(), pinned.end(), values.begin())) << "token " << i;
    }
    // Of the others the oldest leave: the newest is always the last.
    const std::vector<float> last(values.end() - width, values.end());
    if (i > 1) {
      EXPECT_NE(last, newest);
    }
    newest = last;
  }
  EXPECT_LE(rows, 17u);
}

}  // namespace
}  // namespace oxbow::testing

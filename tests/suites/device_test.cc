// The seam between sessions and devices (runtime/device.h), with a device made for the test: same bits whatever it
// claims, states that move exactly when they must, and every call failing once.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/api/log.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"
#include "runtime/session/state.h"
#include "schema/model_generated.h"
#include "tests/support/fake_device.h"
#include "tests/support/tiny_checkpoint.h"

namespace oxbow::testing {
namespace {

using Calls = std::vector<std::string>;

const std::vector<int32_t> kTokens = {1, 0, 2, 3, 4};

SessionOptions fake_options() {
  SessionOptions options;
  options.device = &kFakeDevice;
  return options;
}

/// A session and its arena.
class Opened {
 public:
  Opened(const Model& model, const SessionOptions& options) {
    SessionMemory memory;
    status_ = count_session_memory(model, options, &memory, &error_);
    if (status_ != Status::kOk) return;
    arena_.resize(memory.total);
    told_ = memory.device;
    status_ = create_session(model, options, arena_, &session_, &error_);
  }
  ~Opened() {
    if (session_ != nullptr) destroy_session(session_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  Status status() const { return status_; }
  const char* text() const { return error_.text; }
  size_t told() const { return told_; }
  Session& operator*() { return *session_; }
  Session* get() { return session_; }

  /// The last token's logits.
  std::vector<float> run(size_t count = 1) {
    const Model& model = *session_->model;
    std::vector<float> logits(model.output_width);
    const char* name = model.graph->tensors()->Get(model.main_entry().tokens())->name()->c_str();
    const InputValues input = {name, kTokens.data(), count};
    const auto entry = static_cast<uint32_t>(model.entry_count() - 1);
    status_ = run_session(*session_, entry, {&input, 1}, logits.data(), 1, &error_);
    return logits;
  }
  std::vector<std::byte> saved(StateForm form = StateForm::kSaved) {
    std::vector<std::byte> blob(state_blob_bytes(*session_));
    status_ = write_state(*session_, form, blob, &error_);
    return blob;
  }

 private:
  std::vector<std::byte> arena_;
  Session* session_ = nullptr;
  Status status_ = Status::kOk;
  Error error_;
  size_t told_ = 0;
};

class DeviceSeam : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_devices() = {};
    bytes_ = std::make_unique<TinyModel>("int8");
    Error error;
    ASSERT_EQ(open_model(bytes_->bytes(), builtin_ops(), &model_, &error), Status::kOk)
        << error.text;
  }
  void TearDown() override {
    close_model(&model_);
    EXPECT_EQ(fake_devices().open, 0) << "a device is left open";
  }

  /// What was asked since the last time.
  static Calls calls() { return std::exchange(fake_devices().calls, {}); }
  uint32_t step_count() const {
    uint32_t count = 0;
    for (size_t e = 0; e < model_.entry_count(); ++e) count += model_.entry(e).steps()->size();
    return count;
  }
  /// A state's index.
  uint32_t a_state() const {
    uint32_t index = 0;
    while (model_.graph->tensors()->Get(index)->kind() != schema::TensorKind::State) ++index;
    return index;
  }

  std::unique_ptr<TinyModel> bytes_;
  Model model_;
};

TEST_F(DeviceSeam, TheLogTellsWhichOpsTheDeviceLeavesToTheCpu) {
  std::vector<std::string> lines;
  const auto write = [](void* context, int32_t, const char* line) {
    static_cast<std::vector<std::string>*>(context)->emplace_back(line);
  };
  Opened all(model_, fake_options());
  fake_devices().claims = [](uint32_t step) { return step != 0 && step != 2; };
  Opened some(model_, fake_options());
  model_.log = {write, &lines};
  log_created(*all, "fake", 0);
  EXPECT_EQ(lines.size(), 1u);
  log_created(*some, "fake", 0);
  ASSERT_EQ(lines.size(), 3u);
  const std::string steps = std::to_string(step_count());
  EXPECT_EQ(lines[2].rfind("fake leaves 2 of " + steps + " steps to the CPU: ", 0), 0u) << lines[2];
  EXPECT_NE(lines[2].find((*some).steps[0].op), std::string::npos) << lines[2];
  EXPECT_NE(lines[2].find((*some).steps[2].op), std::string::npos) << lines[2];
  model_.log = {};
}

/// Logits of a session and of two that borrow from it, in turns; saved, loaded, rewound, copied and reset on the way.
std::vector<float> story(const Model& model, const SessionOptions& options) {
  Opened lender(model, options);
  EXPECT_EQ(lender.status(), Status::kOk) << lender.text();
  SessionOptions borrowing;
  borrowing.lender = lender.get();
  Opened first(model, borrowing), second(model, borrowing);
  EXPECT_EQ(first.status(), Status::kOk) << first.text();
  std::vector<float> all;
  const auto run = [&](Opened& session, size_t count) {
    const std::vector<float> logits = session.run(count);
    EXPECT_EQ(session.status(), Status::kOk) << session.text();
    all.insert(all.end(), logits.begin(), logits.end());
  };
  std::vector<std::byte> saved, checkpoint;
  for (size_t i = 0; i < 24; ++i) {
    run(lender, 1 + i % 5);
    run(first, 1 + i % 3);
    run(second, 1 + i % 4);
    Error error;
    if (i == 3) saved = lender.saved();
    if (i == 5) checkpoint = first.saved(StateForm::kCheckpoint);
    if (i == 7) {
      EXPECT_EQ(copy_stream(*second, *lender, &error), Status::kOk) << error.text;
    }
    if (i == 9) {
      EXPECT_EQ(copy_stream(*lender, *first, &error), Status::kOk) << error.text;
    }
    if (i == 12) reset_session(*lender);
    if (i == 16) {
      EXPECT_EQ(read_state(*lender, StateForm::kSaved, saved, &error), Status::kOk) << error.text;
    }
    if (i == 18) {
      EXPECT_EQ(read_state(*first, StateForm::kCheckpoint, checkpoint, &error), Status::kOk);
    }
  }
  return all;
}

TEST_F(DeviceSeam, WhateverItClaimsTheBitsAreTheCpus) {
  const std::vector<float> own = story(model_, {});
  const uint32_t last = step_count() - 1;
  const std::pair<const char*, std::function<bool(uint32_t)>> rules[] = {
      {"all", [](uint32_t) { return true; }},
      {"none", [](uint32_t) { return false; }},
      {"every second", [](uint32_t i) { return i % 2 == 0; }},
      {"every other second", [](uint32_t i) { return i % 2 == 1; }},
      {"two of three", [](uint32_t i) { return i % 3 != 1; }},
      {"not the first", [](uint32_t i) { return i != 0; }},
      {"not the last", [last](uint32_t i) { return i != last; }},
      {"the last alone", [last](uint32_t i) { return i == last; }},
  };
  for (const auto& [name, claims] : rules) {
    fake_devices().claims = claims;
    EXPECT_EQ(story(model_, fake_options()), own) << name;
  }
}

TEST_F(DeviceSeam, ItIsAskedInOrderAndToldToClose) {
  {
    const uint32_t last = step_count() - 1;
    fake_devices().claims = [last](uint32_t i) { return i != 2 && i != last; };
    Opened session(model_, fake_options());
    ASSERT_EQ(session.status(), Status::kOk) << session.text();
    EXPECT_GT(session.told(), 0u);
    EXPECT_EQ(backend_bytes(*session), session.told());
    EXPECT_EQ(calls(), (Calls{"open", "count", "place", "record"})) << "opened once";
    EXPECT_EQ(fake_devices().binds, 2 * step_count());
    const std::string n = std::to_string(step_count()), m = std::to_string(last);
    session.run();
    EXPECT_EQ(calls(), (Calls{"to_device", "run 0-2", "run 3-" + m, "run " + n + "-" + n}));
    for (uint32_t i = 0; i <= last; ++i) {
      EXPECT_STREQ((*session).steps[i].provider, i != 2 && i != last ? "fake" : "cpu");
    }
  }
  EXPECT_EQ(calls(), Calls{"close"});
}

TEST_F(DeviceSeam, AnsweringAndCreatingOpenItOnceAndTheModelClosesWhatNobodyTook) {
  SessionMemory memory;
  Error error;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(count_session_memory(model_, fake_options(), &memory, &error), Status::kOk);
  }
  EXPECT_EQ(calls(), (Calls{"open", "count"}));
  {
    Opened session(model_, fake_options());
    ASSERT_EQ(session.status(), Status::kOk) << session.text();
    EXPECT_EQ(calls(), (Calls{"place", "record"}));
    Opened second(model_, fake_options());
    EXPECT_EQ(calls(), (Calls{"open", "count", "place", "record"})) << "each has its own";
  }
  EXPECT_EQ(fake_devices().open, 0);
  ASSERT_EQ(count_session_memory(model_, fake_options(), &memory, &error), Status::kOk);
  EXPECT_EQ(fake_devices().open, 1);
  ASSERT_EQ(count_session_memory(model_, {}, &memory, &error), Status::kOk);
  EXPECT_EQ(fake_devices().open, 0) << "other options were asked about";
  ASSERT_EQ(count_session_memory(model_, fake_options(), &memory, &error), Status::kOk);
  EXPECT_EQ(fake_devices().open, 1) << "TearDown closes the model, and counts";
}

TEST_F(DeviceSeam, StatesMoveExactlyWhenTheyMust) {
  Opened session(model_, fake_options());
  ASSERT_EQ(session.status(), Status::kOk) << session.text();
  calls();
  const std::string run = "run 0-" + std::to_string(step_count());
  const auto runs = [&](const Calls& expected, const char* after) {
    session.run();
    EXPECT_EQ(session.status(), Status::kOk) << session.text();
    EXPECT_EQ(calls(), expected) << "a run after " << after;
  };
  runs({"to_device", run}, "creation");
  runs({run}, "a run");
  const std::vector<std::byte> saved = session.saved();
  EXPECT_EQ(calls(), Calls{"to_host"}) << "saving";
  const std::vector<std::byte> checkpoint = session.saved(StateForm::kCheckpoint);
  EXPECT_EQ(calls(), Calls{}) << "saving what is here";
  runs({run}, "reading alone");
  reset_session(*session);
  reset_session(*session);
  EXPECT_EQ(calls(), Calls{}) << "resetting";
  runs({"to_device", run}, "a reset");
  Error error;
  ASSERT_EQ(read_state(*session, StateForm::kSaved, saved, &error), Status::kOk) << error.text;
  EXPECT_EQ(calls(), Calls{}) << "loading";
  EXPECT_EQ(session.saved(), saved);
  EXPECT_EQ(calls(), Calls{}) << "saving what was loaded";
  runs({"to_device", run}, "loading");
  ASSERT_EQ(read_state(*session, StateForm::kCheckpoint, checkpoint, &error), Status::kOk);
  runs({"to_device", run}, "rewinding");
  const Tensor state = session_tensor(*session, a_state());
  const uint32_t rows = filled_rows(*session, state);
  std::vector<float> values(size_t{rows} * state.width);
  ASSERT_EQ(read_rows(*session, a_state(), rows, values.data(), &error), Status::kOk);
  EXPECT_EQ(calls(), Calls{"to_host"}) << "reading a tensor";
  ASSERT_EQ(read_rows(*session, a_state(), rows, values.data(), &error), Status::kOk);
  EXPECT_EQ(calls(), Calls{}) << "reading it again";
  runs({run}, "reading a tensor");
}

TEST_F(DeviceSeam, ABorrowerUsesTheLendersDeviceAndGivesItBack) {
  Opened lender(model_, fake_options());
  SessionOptions borrowing;
  borrowing.lender = lender.get();
  Opened borrower(model_, borrowing);
  ASSERT_EQ(borrower.status(), Status::kOk) << borrower.text();
  EXPECT_EQ(borrower.told(), 0u);
  lender.run();
  calls();
  const std::string run = "run 0-" + std::to_string(step_count());
  borrower.run();
  EXPECT_EQ(calls(), (Calls{"to_host", "to_device", run, "to_host"}));
  borrower.saved();
  reset_session(*borrower);
  EXPECT_EQ(calls(), Calls{}) << "its stream is in its arena";
  lender.run();
  EXPECT_EQ(calls(), (Calls{"to_device", run}));
  Error error;
  ASSERT_EQ(copy_stream(*borrower, *lender, &error), Status::kOk) << error.text;
  EXPECT_EQ(calls(), Calls{"to_host"});
  lender.run();
  EXPECT_EQ(calls(), Calls{run}) << "a copy only read it";
  ASSERT_EQ(copy_stream(*lender, *borrower, &error), Status::kOk) << error.text;
  EXPECT_EQ(calls(), Calls{"to_host"});
  lender.run();
  EXPECT_EQ(calls(), (Calls{"to_device", run}));
}

TEST_F(DeviceSeam, AfterEveryFailedCallTheErrorIsCleanAndNothingIsLeft) {
  fake_devices().claims = [](uint32_t i) { return i % 4 != 1; };
  bool passed = false;
  for (uint32_t n = 1; !passed; ++n) {
    SCOPED_TRACE(n);
    fake_devices().fail_at = n;
    {
      Opened session(model_, fake_options());
      if (session.status() == Status::kOk) {
        session.run();
        if (session.status() != Status::kOk) {
          EXPECT_EQ(session.status(), Status::kOutOfMemory);
          session.run();
          EXPECT_EQ(session.status(), Status::kNeedsReset);
          reset_session(*session);
          Opened own(model_, {});
          EXPECT_EQ(session.run(3), own.run(3));
        } else {
          session.saved();
        }
      }
      passed = fake_devices().fail_at != 0;
      EXPECT_TRUE(passed || session.status() == Status::kOk ||
                  session.status() == Status::kOutOfMemory)
          << session.text();
    }
    fake_devices().fail_at = 0;
    ASSERT_EQ(fake_devices().open, 0);
    ASSERT_LT(n, 200u);
  }
}

TEST_F(DeviceSeam, ALostDeviceStaysLostAndANewSessionGetsAnother) {
  Opened session(model_, fake_options());
  session.run();
  (*session).device.driver->lose((*session).device.self);
  session.run();
  EXPECT_EQ(session.status(), Status::kDeviceLost);
  reset_session(*session);
  session.run();
  EXPECT_EQ(session.status(), Status::kDeviceLost);
  Opened other(model_, fake_options());
  other.run();
  EXPECT_EQ(other.status(), Status::kOk) << other.text();
}

TEST_F(DeviceSeam, WhenABorrowedDeviceCannotBeGivenBackItCountsAsLost) {
  Opened lender(model_, fake_options());
  SessionOptions borrowing;
  borrowing.lender = lender.get();
  Opened borrower(model_, borrowing);
  lender.run();
  fake_devices().fail_at = 4;  // Of to_host, to_device, run, to_host.
  borrower.run();
  EXPECT_EQ(borrower.status(), Status::kOutOfMemory);
  lender.run();
  EXPECT_EQ(lender.status(), Status::kDeviceLost) << "its stream is not there";
}

TEST_F(DeviceSeam, ProfilesTellAllStepsOnce) {
  fake_devices().claims = [](uint32_t i) { return i % 2 == 0; };
  Opened session(model_, fake_options());
  std::vector<uint32_t> told;
  (*session).profile_context = &told;
  (*session).profile = [](void* context, uint32_t step, const char*, const char*, uint64_t) {
    static_cast<std::vector<uint32_t>*>(context)->push_back(step);
  };
  session.run();
  ASSERT_EQ(told.size(), step_count());
  for (uint32_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i], i);
}

}  // namespace
}  // namespace oxbow::testing

// The session's loop alone, with ops made for the test: what it promises about failure.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "converter/writer.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"
#include "runtime/session/state.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

// Counts its runs in a one-row state and writes the count to the logits; fails when told to.
struct CounterParams {
  Tensor state;
};
bool fail_next_run = false;
int binds = 0;

Status run_counter(RunContext& context, const void* params) {
  Tensor state = static_cast<const CounterParams*>(params)->state;
  state.f32()[0] += 1.0f;
  if (fail_next_run) return fail(context.error, Status::kInternal, "told to fail");
  if (context.caller_output != nullptr) context.caller_output[0] = state.f32()[0];
  return Status::kOk;
}

Status bind_counter(BindContext& context, RunFunction* run) {
  ++binds;
  (void)context.output_or_caller(0);
  context.params<CounterParams>().state = context.output(1);
  context.request_scratch(100);
  *run = run_counter;
  return Status::kOk;
}

Status bind_careless(BindContext& context, RunFunction* run) {
  context.params<CounterParams>().state = context.output(0);
  *run = run_counter;
  return Status::kOk;
}

constexpr OpDef kCounting[] = {{"counter", bind_counter}};
constexpr OpDef kCareless[] = {{"careless", bind_careless}};

class Executor : public ::testing::Test {
 protected:
  void SetUp() override { build(4); }

  /// A model of at most four tokens and this many rows of output.
  void build(uint32_t output_rows) {
    fail_next_run = false;
    schema::ModelT model;
    const auto add_symbol = [&](const char* name, uint32_t max) {
      auto symbol = std::make_unique<schema::SymbolT>();
      symbol->name = name;
      symbol->max = max;
      model.symbols.push_back(std::move(symbol));
    };
    add_symbol("tokens", 4);
    add_symbol("logits_rows", output_rows);
    const auto add_tensor = [&](const char* name, schema::TensorKind kind, schema::DataType type,
                                int32_t symbol, uint32_t rows) {
      auto tensor = std::make_unique<schema::TensorT>();
      tensor->name = name;
      tensor->kind = kind;
      tensor->type = type;
      tensor->rows_symbol = symbol;
      tensor->rows = rows;
      tensor->width = 1;
      tensor->bytes = rows * 4;
      tensor->limit = kind == schema::TensorKind::Input ? 10 : 0;
      model.tensors.push_back(std::move(tensor));
    };
    add_tensor("tokens", schema::TensorKind::Input, schema::DataType::I32, 0, 4);
    add_tensor("logits", schema::TensorKind::Output, schema::DataType::F32, 1, output_rows);
    add_tensor("count", schema::TensorKind::State, schema::DataType::F32, -1, 1);
    model.plan = std::make_unique<schema::MemoryPlanT>();
    model.plan->activations = 64;
    model.plan->states = 64;
    model.metadata = std::make_unique<schema::MetadataT>();
    model.metadata->architecture = "test";
    model.task = schema::Task::Encode;
    auto entry = std::make_unique<schema::EntryPointT>();
    entry->name = "step";
    entry->tokens = 0;
    entry->logits = 1;
    auto step = std::make_unique<schema::StepT>();
    step->outputs = {1, 2};
    entry->steps.push_back(std::move(step));
    model.entry_points.push_back(std::move(entry));

    const std::vector<std::byte> file = convert::assemble_file(model, {});
    file_bytes_ = file.size();
    file_.reset(static_cast<std::byte*>(std::aligned_alloc(64, (file.size() + 63) / 64 * 64)));
    std::memcpy(file_.get(), file.data(), file.size());
  }

  Status open(std::span<const OpDef> ops) {
    return open_model({file_.get(), file_bytes_}, ops, &model_, &error_);
  }

  void start(const SessionOptions& options = {}) {
    ASSERT_EQ(open(kCounting), Status::kOk) << error_.text;
    SessionMemory memory;
    ASSERT_EQ(count_session_memory(model_, options, &memory, &error_), Status::kOk);
    arena_.resize(memory.total);
    ASSERT_EQ(create_session(model_, options, arena_, &session_, &error_), Status::kOk)
        << error_.text;
  }

  Status step(float* logits) {
    const int32_t token = 1;
    return run({&token, 1}, logits, 1);
  }

  Status run(std::span<const int32_t> tokens, float* logits, size_t rows) {
    const InputValues input = {"tokens", tokens.data(), tokens.size()};
    return run_session(*session_, 0, {&input, 1}, logits, rows, &error_);
  }

  void TearDown() override {
    if (session_ != nullptr) destroy_session(session_);
    close_model(&model_);
  }

  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte[], Free> file_;
  size_t file_bytes_ = 0;
  Model model_;
  Session* session_ = nullptr;
  std::vector<std::byte> arena_;
  Error error_;
};

TEST_F(Executor, FromTheFileToASessionEveryStepIsBoundTwice) {
  binds = 0;
  start();
  EXPECT_EQ(binds, 2) << "once to check and count, once to place";
  SessionMemory memory;
  ASSERT_EQ(count_session_memory(model_, {}, &memory, &error_), Status::kOk);
  EXPECT_EQ(binds, 2) << "the model knows";
  Session* second = nullptr;
  std::vector<std::byte> arena(memory.total);
  ASSERT_EQ(create_session(model_, {}, arena, &second, &error_), Status::kOk) << error_.text;
  EXPECT_EQ(binds, 3);
  destroy_session(second);
}

TEST_F(Executor, AnArenaThatIsNullIsNotCalledTooSmall) {
  ASSERT_EQ(open(kCounting), Status::kOk) << error_.text;
  for (const size_t bytes : {size_t{0}, size_t{1} << 30}) {
    const std::span<std::byte> none(static_cast<std::byte*>(nullptr), bytes);
    EXPECT_EQ(create_session(model_, {}, none, &session_, &error_), Status::kInvalidArgument);
    EXPECT_STREQ(error_.text, "the arena is null");
    EXPECT_EQ(session_, nullptr);
  }
}

TEST_F(Executor, OptionsToldAtOpeningNeedNoBindMoreThanTheDefault) {
  SessionOptions options;
  options.threads = 2;
  model_.planned = &options;
  binds = 0;
  start(options);
  EXPECT_EQ(binds, 2) << "once to check and count, once to place";
}

TEST_F(Executor, OtherOptionsAreCountedOnceAndABorrowerNotAtAll) {
  start();
  binds = 0;
  SessionOptions options;
  options.threads = 2;
  SessionMemory memory, again;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(count_session_memory(model_, options, &memory, &error_), Status::kOk);
  }
  EXPECT_EQ(binds, 1);
  EXPECT_GT(memory.total, arena_.size());
  Session* two = nullptr;
  std::vector<std::byte> arena(memory.total);
  ASSERT_EQ(create_session(model_, options, arena, &two, &error_), Status::kOk) << error_.text;
  EXPECT_EQ(binds, 2);
  options = {};
  options.lender = two;
  ASSERT_EQ(count_session_memory(model_, options, &again, &error_), Status::kOk);
  EXPECT_EQ(binds, 2);
  Session* borrower = nullptr;
  std::vector<std::byte> own(again.total);
  ASSERT_EQ(create_session(model_, options, own, &borrower, &error_), Status::kOk) << error_.text;
  EXPECT_EQ(binds, 3);
  destroy_session(borrower);
  destroy_session(two);
}

TEST_F(Executor, AFailedRunIsRefusedUntilReset) {
  start();
  float value = 0;
  ASSERT_EQ(step(&value), Status::kOk);
  EXPECT_EQ(value, 1.0f);
  fail_next_run = true;
  EXPECT_EQ(step(&value), Status::kInternal);
  EXPECT_STREQ(error_.text, "told to fail");
  fail_next_run = false;
  EXPECT_EQ(step(&value), Status::kNeedsReset);
  EXPECT_EQ(step(&value), Status::kNeedsReset);
  reset_session(*session_);
  ASSERT_EQ(step(&value), Status::kOk);
  EXPECT_EQ(value, 1.0f);
}

TEST_F(Executor, ACheckpointHealsAFailedRunAndAHalfStateIsNeverSaved) {
  start();
  float value = 0;
  ASSERT_EQ(step(&value), Status::kOk);
  std::vector<std::byte> checkpoint(state_blob_bytes(*session_));
  ASSERT_EQ(write_state(*session_, StateForm::kCheckpoint, checkpoint, &error_), Status::kOk);
  fail_next_run = true;
  EXPECT_EQ(step(&value), Status::kInternal);
  fail_next_run = false;
  std::vector<std::byte> other(state_blob_bytes(*session_));
  EXPECT_EQ(write_state(*session_, StateForm::kSaved, other, &error_), Status::kNeedsReset);
  ASSERT_EQ(read_state(*session_, StateForm::kCheckpoint, checkpoint, &error_), Status::kOk);
  ASSERT_EQ(step(&value), Status::kOk);
  EXPECT_EQ(value, 2.0f) << "the failed run must leave no trace";
}

TEST_F(Executor, RefusedArgumentsChangeNothing) {
  start();
  float value = 0;
  const int32_t wrong[] = {10};
  EXPECT_EQ(run(wrong, &value, 1), Status::kInvalidArgument);
  EXPECT_STREQ(error_.text, "tokens: 10 at position 0 is not in 0..9");
  const int32_t negative[] = {-1};
  EXPECT_EQ(run(negative, &value, 1), Status::kInvalidArgument);
  const int32_t five[] = {1, 1, 1, 1, 1};
  EXPECT_EQ(run(five, &value, 1), Status::kInvalidArgument);
  EXPECT_EQ(run({five, 1}, &value, 2), Status::kInvalidArgument);
  EXPECT_EQ(run({five, 1}, nullptr, 1), Status::kInvalidArgument);
  EXPECT_EQ(run({five, 0}, nullptr, 0), Status::kInvalidArgument);
  EXPECT_EQ(run_session(*session_, 0, {}, nullptr, 0, &error_), Status::kInvalidArgument);
  EXPECT_STREQ(error_.text, "'step' needs the input 'tokens'");
  const InputValues twice[] = {{"tokens", five, 1}, {"tokens", five, 1}};
  EXPECT_EQ(run_session(*session_, 0, twice, nullptr, 0, &error_), Status::kInvalidArgument);
  const InputValues unknown[] = {{"tokens", five, 1}, {"mask", five, 1}};
  EXPECT_EQ(run_session(*session_, 0, unknown, nullptr, 0, &error_), Status::kInvalidArgument);
  EXPECT_STREQ(error_.text, "input 'mask' of 'step' does not exist");
  ASSERT_EQ(step(&value), Status::kOk);
  EXPECT_EQ(value, 1.0f);
  EXPECT_EQ(session_->header->position, 1u);
}

TEST_F(Executor, AnOutputWithoutRoomForEveryTokenIsRefusedWhenOpening) {
  build(3);
  EXPECT_EQ(open(kCounting), Status::kFileCorrupt);
  EXPECT_STREQ(error_.text, "entry point 'step': fewer rows of logits than of tokens");
}

TEST_F(Executor, AnOpThatCannotWriteTheCallersMemoryIsRefusedWhenOpening) {
  EXPECT_EQ(open(kCareless), Status::kFileCorrupt);
  EXPECT_NE(std::strstr(error_.text, "cannot write the model's output"), nullptr) << error_.text;
}

TEST_F(Executor, AnUnknownOperatorIsRefusedWhenOpening) {
  EXPECT_EQ(open({}), Status::kFileUnsupported);
  EXPECT_NE(std::strstr(error_.text, "update"), nullptr) << error_.text;
}

}  // namespace
}  // namespace oxbow

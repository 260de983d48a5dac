#include "converter/measure/model_runner.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "host/errors.h"
#include "host/exact_rows.h"
#include "runtime/base/tensor.h"
#include "runtime/model/file_prefix.h"
#include "schema/model_generated.h"

namespace oxbow::convert {
namespace {

/// From here on a weight starts on a page of its own (pack.cc), and is worth letting go of.
constexpr uint64_t kLargeWeight = uint64_t{1} << 20;
/// Of a text that is encoded before.
constexpr size_t kEncodedTokens = 64;
/// Of a text that one answer is made of: a classifier is judged by many.
constexpr size_t kAnsweredTokens = 32;

AlignedBytes allocate(size_t bytes) {
  auto* memory = static_cast<std::byte*>(
      std::aligned_alloc(kTensorAlignment, round_up(std::max<size_t>(bytes, 1), kTensorAlignment)));
  if (memory == nullptr) throw std::bad_alloc();
  return AlignedBytes(memory);
}

void check(oxb_status status, const oxb_error& error) {
  if (status != OXB_OK) {
    throw InputError(std::string("the runtime refuses the converted model: ") + error.text);
  }
}

/// Numbers that are the same everywhere.
class Random {
 public:
  uint32_t next() {
    // Knuth's MMIX generator; its upper bits are good enough.
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<uint32_t>(state_ >> 33);
  }
  int32_t below(uint32_t limit) { return static_cast<int32_t>(next() % std::max(limit, 1u)); }
  /// Of variance 1, evenly spread.
  float value() { return (static_cast<float>(next()) / 0x80000000u - 0.5f) * 3.4641f; }

 private:
  uint64_t state_ = 1;
};

/// What a run of an entry point is given: tokens, and numbers for whatever else it must have.
class Inputs {
 public:
  Inputs(const Runner& runner, size_t entry, std::span<const int32_t> tokens) {
    for (size_t i = 0; i < runner.entry(entry).input_count; ++i) {
      const oxb_input_info info = runner.input(entry, i);
      if (i > 0 && info.required == 0) continue;
      if (info.type == OXB_TYPE_F32) {
        std::vector<float>& values = floats_.emplace_back(tokens.size() * info.width);
        for (float& value : values) value = random_.value();
        list_.push_back({sizeof(oxb_input), info.name, values.data(), tokens.size()});
      } else if (i == 0) {
        list_.push_back({sizeof(oxb_input), info.name, tokens.data(), tokens.size()});
      } else {
        std::vector<int32_t>& values = integers_.emplace_back(tokens.size());
        for (int32_t& value : values) value = random_.below(info.limit);
        list_.push_back({sizeof(oxb_input), info.name, values.data(), tokens.size()});
      }
    }
  }
  std::span<const oxb_input> list() const { return list_; }

 private:
  Random random_;
  std::vector<std::vector<float>> floats_;
  std::vector<std::vector<int32_t>> integers_;
  std::vector<oxb_input> list_;
};

std::vector<int32_t> encode(const Runner& runner, const std::string& text, size_t most) {
  std::vector<int32_t> tokens(most);
  size_t bytes = 0, count = 0, consumed = 0;
  oxb_error error = OXB_ERROR_INIT;
  check(oxb_encoder_bytes(runner.model(), nullptr, &bytes, &error), error);
  std::vector<std::byte> memory(bytes);
  oxb_encoder* encoder = nullptr;
  check(oxb_encoder_create(runner.model(), nullptr, memory.data(), bytes, &encoder, &error), error);
  if (oxb_encoder_run(encoder, text.data(), text.size(), 1, tokens.data(), tokens.size(), &count,
                      &consumed, &error) != OXB_OK) {
    throw InputError(std::string("the calibration text cannot be encoded: ") + error.text);
  }
  tokens.resize(count);
  if (count < 2) throw InputError("the calibration text has less than two characters");
  return tokens;
}

/// `count` tokens, from the first on again when there are fewer.
std::vector<int32_t> repeated(std::span<const int32_t> tokens, size_t count) {
  std::vector<int32_t> filled(count);
  for (size_t i = 0; i < count; ++i) filled[i] = tokens[i % tokens.size()];
  return filled;
}

}  // namespace

Runner::Runner(const std::string& path) : file_(path) {
  const std::span<const std::byte> file = file_.bytes();
  oxb_error error = OXB_ERROR_INIT;
  check(oxb_model_open_memory(file.data(), file.size(), nullptr, &model_, &error), error);
  oxb_plan plan = OXB_PLAN_INIT;
  check(oxb_session_plan(model_, nullptr, &plan, &error), error);
  arena_ = allocate(plan.arena_bytes);
  check(oxb_session_create(model_, &plan, arena_.get(), plan.arena_bytes, &session_, &error),
        error);
  check(oxb_model_get_info(model_, &info_, &error), error);
  FilePrefix prefix;
  std::memcpy(&prefix, file.data(), sizeof(prefix));
  const std::span<const std::byte> data = file.subspan(prefix.data_offset);
  schema::ModelT graph;
  schema::GetModel(file.data())->UnPackTo(&graph);
  for (const auto& entry : graph.entry_points) {
    exact_.push_back(oxbow::takes_exact_rows(graph, *entry));
    for (const auto& step : entry->steps) {
      Ranges& ranges = weights_.emplace_back();
      for (const uint32_t input : step->inputs) {
        const schema::TensorT& tensor = *graph.tensors[input];
        if (tensor.kind != schema::TensorKind::Weight || tensor.bytes < kLargeWeight) continue;
        ranges.push_back(data.subspan(tensor.offset, tensor.bytes));
      }
    }
  }
  check(oxb_session_set_profile(session_, let_go, this, &error), error);
}

Runner::~Runner() {
  oxb_session_destroy(session_);
  oxb_model_close(model_);
}

void Runner::let_go(void* runner, uint32_t step, const char*, const char*, uint64_t) {
  for (const std::span<const std::byte> range : static_cast<Runner*>(runner)->weights_.at(step)) {
    // Large weights have their pages to themselves. They come back from the file when they are read again.
    (void)::madvise(const_cast<std::byte*>(range.data()), range.size(), MADV_DONTNEED);
  }
}

oxb_entry_info Runner::entry(size_t index) const {
  oxb_entry_info entry = OXB_ENTRY_INFO_INIT;
  oxb_error error = OXB_ERROR_INIT;
  check(oxb_model_entry_info(model_, index, &entry, &error), error);
  return entry;
}

oxb_input_info Runner::input(size_t entry, size_t index) const {
  oxb_input_info input = OXB_INPUT_INFO_INIT;
  oxb_error error = OXB_ERROR_INIT;
  check(oxb_model_input_info(model_, entry, index, &input, &error), error);
  return input;
}

void Runner::run(size_t index, std::span<const oxb_input> inputs, std::vector<float>& output) {
  const oxb_entry_info info = entry(index);
  const size_t rows = info.output_rows != 0 ? info.output_rows : inputs[0].rows;
  output.resize(rows * info.output_width);
  oxb_error error = OXB_ERROR_INIT;
  oxb_output wanted = {sizeof(oxb_output), info.output, output.data(), output.size(), rows};
  check(oxb_session_run_entry(session_, index, inputs.data(), inputs.size(), &wanted, 1, &error),
        error);
}

std::vector<int32_t> TokenSource::take(const Runner& runner, size_t most) const {
  if (!text.empty()) return encode(runner, text, most);
  const uint32_t limit = runner.info().vocabulary;
  if (is_random()) {
    Random random;
    std::vector<int32_t> made(most);
    for (int32_t& token : made) token = random.below(limit);
    return made;
  }
  std::vector<int32_t> taken(
      tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(std::min(most, tokens.size())));
  for (const int32_t token : taken) {
    if (token < 0 || static_cast<uint32_t>(token) >= limit) {
      throw InputError("the calibration token " + std::to_string(token) + " is not in 0.." +
                       std::to_string(limit - 1));
    }
  }
  return taken;
}

void feed(const Runner& runner, std::span<const int32_t> tokens, const std::function<void()>& reset,
          const RunEntry& run) {
  const size_t main = runner.info().entry_count - 1;
  const oxb_entry_info entry = runner.entry(main);
  const uint64_t capacity = entry.starts == 0 ? runner.info().capacity : 0;
  const auto start = [&] {
    reset();
    for (size_t e = 0; e < main; ++e) {
      const oxb_input_info input = runner.input(e, 0);
      const size_t most = runner.entry(e).max_rows;
      std::vector<int32_t> text = repeated(
          tokens,
          runner.takes_exact_rows(e) ? most : std::min({most, tokens.size(), kEncodedTokens}));
      if (input.type == OXB_TYPE_I32) {
        for (int32_t& token : text) token %= static_cast<int32_t>(std::max(input.limit, 1u));
      }
      run(e, Inputs(runner, e, text).list(), text);
      // Another form of the same stream: what it read would count.
      if (runner.entry(e).starts == 0) reset();
    }
  };
  start();
  uint64_t position = 0;
  for (size_t done = 0; done < tokens.size();) {
    if (capacity != 0 && position == capacity) {
      start();
      position = 0;
    }
    size_t count = std::min<size_t>(tokens.size() - done, entry.max_rows);
    if (capacity != 0) count = std::min<uint64_t>(count, capacity - position);
    if (entry.output_rows != 0) count = std::min(count, kAnsweredTokens);
    if (runner.takes_exact_rows(main)) {
      const std::vector<int32_t> whole = repeated(tokens.subspan(done, count), entry.max_rows);
      run(main, Inputs(runner, main, whole).list(), whole);
    } else {
      run(main, Inputs(runner, main, tokens.subspan(done, count)).list(), tokens.subspan(done));
    }
    done += count;
    position += count;
  }
}

}  // namespace oxbow::convert

#pragma once

// A model file from anywhere, used as a program would: streams, states, copies, siblings and beams. Results must not
// depend on what the memory held before, on an earlier stream, on threads, or on the way a state took.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/api/handles.h"
#include "runtime/api/oxbow.h"
#include "runtime/model/file_prefix.h"
#include "schema/model_generated.h"
#include "tests/fuzz/broken.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/unwritten.h"

#if defined(__SANITIZE_ADDRESS__)
#define OXB_FUZZ_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OXB_FUZZ_ASAN 1
#endif
#endif
#if defined(OXB_FUZZ_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace oxbow::testing {

/// A changed file may honestly ask for more than a test wants to give.
inline constexpr size_t kMostArena = size_t{4} << 20;
inline constexpr size_t kMostNumbers = size_t{1} << 18;

inline double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// One run: its entry point and what it is given.
struct Segment {
  struct Input {
    std::string name;
    std::vector<int32_t> integers;
    std::vector<float> floats;
    size_t rows = 0;
  };
  size_t entry = 0;
  std::vector<Input> inputs;
  /// Of the main output.
  size_t wanted = 0;
};

/// What a run gave.
struct Outcome {
  oxb_status status = OXB_OK;
  std::vector<std::vector<float>> outputs;

  bool operator==(const Outcome& other) const {
    if (status != other.status || outputs.size() != other.outputs.size()) return false;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto &a = outputs[i], &b = other.outputs[i];
      if (a.size() != b.size()) return false;
      for (size_t k = 0; k < a.size(); ++k) {
        if (std::memcmp(&a[k], &b[k], sizeof(float)) != 0 &&
            !(std::isnan(a[k]) && std::isnan(b[k]))) {
          return false;
        }
      }
    }
    return true;
  }
};

/// A session in memory that is not zeros, as long as it lives.
class FuzzSession {
 public:
  FuzzSession() = default;
  FuzzSession(const FuzzSession&) = delete;
  FuzzSession& operator=(const FuzzSession&) = delete;
  ~FuzzSession() {
    oxb_session_destroy(session_);
#if defined(OXB_FUZZ_ASAN)
    if (arena_ != nullptr) __asan_unpoison_memory_region(arena_.get(), bytes_);
#endif
  }

  /// Not created: it needs too much, or was refused.
  bool create(const oxb_model* model, uint32_t threads, const oxb_session* lender, int filling) {
    filling_ = filling;
    oxb_session_options options = OXB_SESSION_OPTIONS_INIT;
    options.threads = threads;
    options.lender = lender;
    oxb_plan plan = OXB_PLAN_INIT;
    oxb_error error = OXB_ERROR_INIT;
    if (oxb_session_plan(model, &options, &plan, &error) != OXB_OK) {
      if (error.text[0] == '\0') broken("a refusal has words");
      return false;
    }
    if (plan.arena_bytes > kMostArena) return false;
    bytes_ = plan.arena_bytes;
    arena_ = std::make_unique<uint8_t[]>(bytes_);
    std::memset(arena_.get(), filling, bytes_);
    call_unwritten(arena_.get(), bytes_);
    if (oxb_session_create(model, &plan, arena_.get(), bytes_, &session_, &error) != OXB_OK) {
      return false;
    }
    if (lender == nullptr) poison_gaps();
    return true;
  }

  oxb_session* get() const { return session_; }

  Outcome run(const oxb_model* model, const Segment& segment) const {
    oxb_error error = OXB_ERROR_INIT;
    std::vector<oxb_input> inputs;
    for (const Segment::Input& input : segment.inputs) {
      const void* values = input.integers.empty() ? static_cast<const void*>(input.floats.data())
                                                  : input.integers.data();
      inputs.push_back({sizeof(oxb_input), input.name.c_str(), values, input.rows});
    }
    oxb_entry_info entry = OXB_ENTRY_INFO_INIT;
    oxb_model_entry_info(model, segment.entry, &entry, &error);
    // Exact room for every output, full of something else in every session.
    std::vector<oxb_output> outputs;
    std::vector<std::unique_ptr<float[]>> room;
    for (size_t i = 0; i < entry.output_count; ++i) {
      oxb_output_info info = OXB_OUTPUT_INFO_INIT;
      oxb_model_output_info(model, segment.entry, i, &info, &error);
      const size_t rows = i == 0 ? segment.wanted : info.max_rows;
      const size_t numbers = rows * info.width;
      room.push_back(std::make_unique<float[]>(numbers));
      if (numbers > 0) std::memset(room.back().get(), filling_, numbers * sizeof(float));
      call_unwritten(room.back().get(), numbers * sizeof(float));
      outputs.push_back({sizeof(oxb_output), info.name, room.back().get(), numbers, rows});
    }
    Outcome outcome;
    outcome.status = oxb_session_run_entry(session_, segment.entry, inputs.data(), inputs.size(),
                                           outputs.data(), outputs.size(), &error);
    if (outcome.status != OXB_OK) {
      if (error.text[0] == '\0') broken("a refusal has words");
      return outcome;
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const size_t numbers =
          outputs[i].rows == 0
              ? 0
              : outputs[i].rows * (outputs[i].capacity / max_rows(model, segment, i));
      outcome.outputs.emplace_back(room[i].get(), room[i].get() + numbers);
    }
    return outcome;
  }

  /// Reads all that can be looked at.
  void look(std::vector<std::vector<float>>* all) const {
    size_t count = 0;
    oxb_session_tensor_count(session_, &count, nullptr);
    for (size_t i = 0; i < count; ++i) {
      oxb_tensor_info info = OXB_TENSOR_INFO_INIT;
      oxb_session_tensor_info(session_, i, &info, nullptr);
      std::vector<float> values(size_t{info.rows} * info.width);
      if (values.size() > kMostNumbers) continue;
      if (oxb_session_tensor_read(session_, i, values.data(), values.size(), nullptr) != OXB_OK) {
        broken("a tensor can be read");
      }
      all->push_back(std::move(values));
    }
  }

  std::vector<uint8_t> save() const {
    size_t bytes = 0;
    oxb_session_state_bytes(session_, &bytes, nullptr);
    std::vector<uint8_t> blob(bytes);
    if (oxb_session_save(session_, blob.data(), bytes, nullptr) != OXB_OK) blob.clear();
    return blob;
  }

 private:
  static size_t max_rows(const oxb_model* model, const Segment& segment, size_t output) {
    if (output == 0) return segment.wanted;
    oxb_output_info info = OXB_OUTPUT_INFO_INIT;
    oxb_model_output_info(model, segment.entry, output, &info, nullptr);
    return info.max_rows;
  }

  /// What of the activations belongs to no tensor must not be touched.
  void poison_gaps() {
#if defined(OXB_FUZZ_ASAN)
    const Session& inside = *inner(session_);
    const schema::Model& graph = *inside.model->graph;
    const size_t bytes = graph.plan()->activations();
    if (bytes == 0) return;
    std::vector<bool> used(bytes / 64 + 1);
    for (const schema::Tensor* tensor : *graph.tensors()) {
      const auto kind = tensor->kind();
      if (kind != schema::TensorKind::Activation && kind != schema::TensorKind::Input) continue;
      for (size_t i = tensor->offset() / 64; i * 64 < tensor->offset() + tensor->bytes(); ++i) {
        used[i] = true;
      }
    }
    for (size_t i = 0; i * 64 + 64 <= bytes; ++i) {
      if (!used[i]) __asan_poison_memory_region(inside.activations + i * 64, 64);
    }
#endif
  }

  std::unique_ptr<uint8_t[]> arena_;
  size_t bytes_ = 0;
  int filling_ = 0;
  oxb_session* session_ = nullptr;
};

/// All of it for one model.
class ModelRuns {
 public:
  ModelRuns(const oxb_model* model, Choices& choices) : model_(model), choices_(choices) {
    oxb_model_get_info(model, &info_, nullptr);
  }

  /// False: it was not run, for it wants too much.
  bool check() {
    FuzzSession with_past, fresh;
    if (!with_past.create(model_, 1, nullptr, 0xaa)) return false;
    const uint32_t threads = choices_.one_in(4) ? 3 : 1;
    if (!fresh.create(model_, threads, nullptr, 0x55)) return false;
    for (size_t runs = choices_.below(4); runs > 0; --runs) {
      Segment segment;
      if (!make(&segment)) return false;
      with_past.run(model_, segment);
    }
    if (oxb_session_reset(with_past.get(), nullptr) != OXB_OK) broken("a session can be reset");
    const size_t count = 2 + choices_.below(3);
    std::vector<Segment> segments(count);
    for (Segment& segment : segments) {
      if (!make(&segment)) return false;
    }
    for (const Segment& segment : segments) same_runs(with_past, fresh, segment, "after a reset");
    same_insides(with_past, fresh, "after a reset");
    Segment next;
    if (!make(&next)) return false;
    ways_of_states(with_past, fresh, next);
    siblings(with_past, next);
    if (choices_.one_in(2)) beams(with_past);
    if (choices_.one_in(2)) draft(with_past);
    return true;
  }

  bool make(Segment* segment) {
    segment->entry = choices_.one_in(3) ? choices_.below(info_.entry_count) : info_.entry_count - 1;
    oxb_entry_info entry = OXB_ENTRY_INFO_INIT;
    if (oxb_model_entry_info(model_, segment->entry, &entry, nullptr) != OXB_OK) {
      broken("an entry point has its information");
    }
    const size_t most = std::min<size_t>(entry.max_rows, 8);
    const size_t rows =
        choices_.one_in(8) ? std::min<size_t>(entry.max_rows, 64) : 1 + choices_.below(most);
    segment->wanted = entry.output_rows != 0 ? entry.output_rows : choices_.below(rows + 1);
    for (size_t i = 0; i < entry.input_count; ++i) {
      oxb_input_info info = OXB_INPUT_INFO_INIT;
      oxb_model_input_info(model_, segment->entry, i, &info, nullptr);
      if (i != 0 && !info.required && choices_.one_in(3)) continue;
      Segment::Input input;
      input.name = info.name;
      input.rows =
          i != 0 && info.own_rows ? choices_.below(std::min<size_t>(info.max_rows, 64) + 1) : rows;
      const size_t numbers = input.rows * info.width;
      if (numbers > kMostNumbers) return false;
      for (size_t k = 0; k < numbers; ++k) {
        if (info.type == OXB_TYPE_I32) {
          input.integers.push_back(static_cast<int32_t>(choices_.below(info.limit)));
        } else {
          input.floats.push_back(choices_.number());
        }
      }
      segment->inputs.push_back(std::move(input));
    }
    for (size_t i = 0; i < entry.output_count; ++i) {
      oxb_output_info info = OXB_OUTPUT_INFO_INIT;
      oxb_model_output_info(model_, segment->entry, i, &info, nullptr);
      const size_t output_rows = i == 0 ? segment->wanted : info.max_rows;
      if (output_rows > kMostNumbers || info.width > kMostNumbers ||
          output_rows * info.width > kMostNumbers) {
        return false;
      }
    }
    return true;
  }

  void same_runs(const FuzzSession& a, const FuzzSession& b, const Segment& segment,
                 const char* when) {
    const Outcome outcome = a.run(model_, segment);
    last_ran_ = outcome.status == OXB_OK;
    if (!(b.run(model_, segment) == outcome)) broken("runs give the same", when);
  }

  /// After a run: what it did not come to is left from before.
  void same_insides(const FuzzSession& a, const FuzzSession& b, const char* when) {
    if (!last_ran_) return;
    std::vector<std::vector<float>> of_a, of_b;
    a.look(&of_a);
    b.look(&of_b);
    Outcome one, other;
    one.outputs = std::move(of_a);
    other.outputs = std::move(of_b);
    if (!(one == other)) broken("states and activations are the same", when);
  }

 private:
  /// Saved and loaded, taken back, and loaded after something else: all go on alike.
  void ways_of_states(FuzzSession& a, FuzzSession& b, const Segment& next) {
    const std::vector<uint8_t> blob = a.save();
    if (blob.empty()) return;  // The last run failed half-way.
    std::vector<uint8_t> checkpoint(blob.size());
    if (oxb_session_checkpoint(a.get(), checkpoint.data(), checkpoint.size(), nullptr) != OXB_OK) {
      broken("what can be saved can be kept");
    }
    Segment other;
    if (make(&other)) b.run(model_, other);
    oxb_error error = OXB_ERROR_INIT;
    if (oxb_session_load(b.get(), blob.data(), blob.size(), &error) != OXB_OK) {
      broken("what was saved can be loaded:", error.text);
    }
    const Outcome went_on = a.run(model_, next);
    last_ran_ = went_on.status == OXB_OK;
    if (!(b.run(model_, next) == went_on)) broken("a loaded state goes on alike");
    if (oxb_session_rewind(a.get(), checkpoint.data(), checkpoint.size(), &error) != OXB_OK) {
      broken("what was kept can be taken back:", error.text);
    }
    if (!(a.run(model_, next) == went_on)) broken("a state that was taken back goes on alike");
    same_insides(a, b, "after a state was loaded");
  }

  void siblings(FuzzSession& lender, const Segment& next) {
    FuzzSession one, two;
    if (!one.create(model_, 1, lender.get(), 0x33) || !two.create(model_, 1, lender.get(), 0xcc)) {
      return;
    }
    Segment other;
    if (make(&other)) two.run(model_, other);
    if (oxb_session_copy(one.get(), lender.get(), nullptr) != OXB_OK) return;
    if (oxb_session_copy(two.get(), one.get(), nullptr) != OXB_OK) broken("siblings can be copied");
    // Borrowers may not begin what is shared anew, and who may changes it for all.
    oxb_entry_info entry = OXB_ENTRY_INFO_INIT;
    oxb_model_entry_info(model_, next.entry, &entry, nullptr);
    if (info_.entry_count > 1 || entry.starts) {
      one.run(model_, next);
      two.run(model_, next);
      return;
    }
    const Outcome first = one.run(model_, next);
    if (!(two.run(model_, next) == first)) broken("siblings give the same");
    if (!(lender.run(model_, next) == first)) broken("a lender gives what its borrowers gave");
  }

  void beams(FuzzSession& session) {
    oxb_beam_options options = OXB_BEAM_OPTIONS_INIT;
    options.beams = 2;
    options.max_tokens = 5;
    size_t bytes = 0;
    if (oxb_beam_search_bytes(session.get(), &options, &bytes, nullptr) != OXB_OK) return;
    if (bytes > kMostArena) return;
    const auto memory = std::make_unique<uint8_t[]>(bytes);
    std::memset(memory.get(), 0x77, bytes);
    oxb_beam_search* search = nullptr;
    if (oxb_beam_search_create(session.get(), &options, memory.get(), bytes, &search, nullptr) !=
        OXB_OK) {
      return;
    }
    oxb_session_reset(session.get(), nullptr);
    const int32_t prompt[] = {0, 1};
    oxb_beam_search_run(search, prompt, std::min<size_t>(info_.vocabulary, 2), nullptr);
    for (size_t i = 0; i < oxb_beam_search_count(search); ++i) {
      const int32_t* tokens = nullptr;
      size_t count = 0;
      float score = 0;
      oxb_beam_search_result(search, i, &tokens, &count, &score, nullptr);
      for (size_t k = 0; k < count; ++k) {
        if (tokens[k] < 0 || static_cast<uint32_t>(tokens[k]) >= info_.vocabulary) {
          broken("a beam is made of tokens");
        }
      }
    }
    oxb_beam_search_destroy(search);
  }

  void draft(FuzzSession& session) {
    size_t bytes = 0;
    if (oxb_session_reset(session.get(), nullptr) != OXB_OK) return;
    if (oxb_session_draft_bytes(session.get(), 8, &bytes, nullptr) != OXB_OK) return;
    if (bytes > kMostArena) return;
    const auto memory = std::make_unique<uint8_t[]>(bytes);
    std::memset(memory.get(), 0x99, bytes);
    if (oxb_session_draft(session.get(), memory.get(), bytes, 8, nullptr) != OXB_OK) return;
    for (int runs = 0; runs < 2; ++runs) {
      Segment segment;
      if (!make(&segment)) break;
      session.run(model_, segment);
    }
    oxb_session_keep(session.get(), choices_.below(9), nullptr);
    Segment segment;
    if (make(&segment)) session.run(model_, segment);
    oxb_session_reset(session.get(), nullptr);
  }

  const oxb_model* model_;
  Choices& choices_;
  oxb_model_info info_ = OXB_MODEL_INFO_INIT;
  bool last_ran_ = false;
};

/// Opened or refused within the time that SECURITY.md gives it, then used.
inline bool open_and_check(std::span<const uint8_t> file, Choices& choices) {
  const double start = cpu_seconds();
  oxb_model* model = nullptr;
  oxb_error error = OXB_ERROR_INIT;
  const oxb_status status =
      oxb_model_open_memory(file.data(), file.size(), nullptr, &model, &error);
  FilePrefix prefix;
  std::memcpy(&prefix, file.data(), sizeof(prefix));
  // 50 ms for a megabyte of graph, ten times that for the sanitizers, and what a busy machine adds.
  const double limit = 0.1 + 0.5e-6 * static_cast<double>(prefix.graph_bytes);
  if (cpu_seconds() - start > limit * slowness()) broken("opening takes its time");
  if (status != OXB_OK) {
    if (error.text[0] == '\0') broken("a refusal has words");
    return false;
  }
  const bool ran = ModelRuns(model, choices).check();
  oxb_model_close(model);
  constexpr double kMostSeconds = 20;
  if (cpu_seconds() - start > kMostSeconds * slowness())
    broken("a small model runs in a short time");
  return ran;
}

}  // namespace oxbow::testing

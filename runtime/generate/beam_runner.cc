#include "runtime/generate/beam_runner.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/base/checked.h"
#include "runtime/base/tensor.h"
#include "runtime/session/lockstep.h"
#include "runtime/session/state.h"
#include "schema/model_generated.h"

using oxbow::BeamRules;
using oxbow::BeamSearch;
using oxbow::BeamStop;
using oxbow::Error;
using oxbow::fail;
using oxbow::Model;
using oxbow::Session;
using oxbow::SessionMemory;
using oxbow::SessionOptions;
using oxbow::Status;

namespace {

/// What the model says of texts, and the caller of this search.
Status read_rules(const Model& model, const oxb_beam_options& options, BeamRules* rules,
                  Error* error) {
  const oxbow::schema::EntryPoint& entry = model.main_entry();
  const auto task = model.graph->task();
  const bool generates =
      task == oxbow::schema::Task::Generate || task == oxbow::schema::Task::Translate;
  if (!generates || entry.starts() || model.output_width != model.vocabulary) {
    return fail(error, Status::kInvalidArgument,
                "beam search: the model does not give logits of the next token");
  }
  // A caller in C may put any number here, which C++ must not read as the enumeration.
  int stop = 0;
  static_assert(sizeof(stop) == sizeof(options.stop));
  std::memcpy(&stop, &options.stop, sizeof(stop));
  if (stop < OXB_BEAM_STOP_UNLIKELY_BETTER || stop > OXB_BEAM_STOP_NONE_BETTER) {
    return fail(error, Status::kInvalidArgument, "beam search: stop %d is unknown", stop);
  }
  const uint32_t capacity = entry.capacity();
  rules->vocabulary = model.vocabulary;
  rules->beams = options.beams;
  rules->n_best = options.n_best;
  rules->min_tokens = options.min_tokens;
  rules->max_tokens = options.max_tokens;
  if (options.max_tokens == 0) {
    if (capacity == 0) {
      return fail(error, Status::kInvalidArgument,
                  "beam search: max_tokens is 0 and the model's stream is endless; say how many "
                  "tokens a text may have");
    }
    rules->max_tokens = std::min(capacity, BeamSearch::kMaxTokens);
  }
  // The last token of a text is not fed.
  if (capacity != 0 && rules->max_tokens - 1 > capacity) {
    return fail(error, Status::kInvalidArgument,
                "beam search: max_tokens is %u; the model's stream takes %u", rules->max_tokens,
                capacity);
  }
  rules->length_penalty = options.length_penalty;
  rules->stop = static_cast<BeamStop>(stop);
  if (const auto* generation = model.graph->generation(); generation != nullptr) {
    rules->end_token = generation->end_token();
    rules->forced_last_token = generation->forced_last_token();
    if (const auto* forbidden = generation->forbidden_tokens(); forbidden != nullptr) {
      rules->forbidden = {forbidden->data(), forbidden->size()};
    }
    if (const auto* forbidden = generation->first_forbidden_tokens(); forbidden != nullptr) {
      rules->first_forbidden = {forbidden->data(), forbidden->size()};
    }
    rules->timestamps.first = generation->first_timestamp();
    rules->timestamps.none = generation->no_timestamps_token();
    rules->timestamps.last_initial = generation->last_initial_timestamp().value_or(UINT32_MAX);
    rules->timestamps.end_token = generation->end_token();
  }
  return BeamSearch::check(*rules, error);
}

SessionOptions borrower_options(const Session& session) {
  SessionOptions options;
  options.lender = &session;
  return options;
}

}  // namespace

/// Offsets of the parts in the aligned memory.
struct oxb_beam_search::Layout {
  uint64_t search = 0;
  uint64_t sessions = 0;
  uint64_t logits = 0;
  uint64_t borrowers = 0;
  uint64_t borrower_bytes = 0;
  /// With room to align.
  uint64_t bytes = 0;

  Status plan(const Session& session, const oxb_beam_options& options, BeamRules* rules,
              Error* error) {
    OXB_TRY(read_rules(*session.model, options, rules, error));
    SessionMemory borrower;
    OXB_TRY(
        oxbow::count_session_memory(*session.model, borrower_options(session), &borrower, error));
    search = oxbow::round_up(sizeof(oxb_beam_search), oxbow::kTensorAlignment);
    sessions = oxbow::round_up(search + BeamSearch::bytes(*rules), oxbow::kTensorAlignment);
    logits = sessions + 2 * uint64_t{rules->beams} * sizeof(Session*);
    borrowers = logits + uint64_t{rules->beams} * rules->vocabulary * sizeof(float);
    borrower_bytes = borrower.total;
    if (!oxbow::checked_mul(borrower_bytes, rules->beams - 1, &bytes) ||
        !oxbow::checked_add(bytes, borrowers + oxbow::kTensorAlignment, &bytes) ||
        bytes > SIZE_MAX / 2) {
      return fail(error, Status::kInvalidArgument,
                  "beam search: so many beams do not fit in memory");
    }
    return Status::kOk;
  }
};

Status oxb_beam_search::measure(const Session& session, const oxb_beam_options& options,
                                size_t* bytes, Error* error) {
  BeamRules rules;
  Layout layout;
  OXB_TRY(layout.plan(session, options, &rules, error));
  *bytes = static_cast<size_t>(layout.bytes);
  return Status::kOk;
}

Status oxb_beam_search::place(Session& session, const oxb_beam_options& options, void* memory,
                              size_t bytes, oxb_beam_search** search, Error* error) {
  BeamRules rules;
  Layout layout;
  OXB_TRY(layout.plan(session, options, &rules, error));
  if (memory == nullptr || bytes < layout.bytes) {
    return fail(error, Status::kBufferTooSmall, "beam search: given %zu bytes; expected %zu",
                memory == nullptr ? 0 : bytes, static_cast<size_t>(layout.bytes));
  }

  auto* base = static_cast<std::byte*>(memory);
  base += -reinterpret_cast<uintptr_t>(base) % oxbow::kTensorAlignment;
  auto* made = new (base) oxb_beam_search(session);
  made->max_tokens_ = rules.max_tokens;
  made->search_ = BeamSearch::place(rules, base + layout.search);
  const std::span<Session*> both = {new (base + layout.sessions) Session* [2 * rules.beams](),
                                    2 * size_t { rules.beams }};
  made->sessions_ = both.first(rules.beams);
  made->next_ = both.last(rules.beams);
  const size_t logits = size_t{rules.beams} * rules.vocabulary;
  made->logits_ = {new (base + layout.logits) float[logits], logits};
  made->sessions_[0] = &session;
  for (uint32_t i = 1; i < rules.beams; ++i) {
    std::byte* arena = base + layout.borrowers + (i - 1) * layout.borrower_bytes;
    OXB_TRY(oxbow::create_session(*session.model, borrower_options(session),
                                  {arena, static_cast<size_t>(layout.borrower_bytes)},
                                  &made->sessions_[i], error));
  }
  *search = made;
  return Status::kOk;
}

Status oxb_beam_search::check_prompt(std::span<const int32_t> prompt, Error* error) const {
  if (prompt.size() >= max_tokens_) {
    return fail(error, Status::kInvalidArgument,
                "beam search: the prompt has %zu tokens; a text of %u tokens has room for %u",
                prompt.size(), max_tokens_, max_tokens_ - 1);
  }
  const uint64_t capacity = session_.model->main_entry().capacity();
  const uint64_t position = session_.header->position;
  if (capacity != 0 && (position > capacity || max_tokens_ - 1 > capacity - position)) {
    return fail(error, Status::kStreamFull,
                "beam search: the model takes %llu tokens and has had %llu; texts of %u more do "
                "not fit: encode or reset first",
                static_cast<unsigned long long>(capacity),
                static_cast<unsigned long long>(position), max_tokens_);
  }
  return Status::kOk;
}

/// Leaves the last token's logits in the first row of logits_.
Status oxb_beam_search::feed_prompt(std::span<const int32_t> prompt, Error* error) {
  const Model& model = *session_.model;
  const char* name = model.graph->tensors()->Get(model.main_entry().tokens())->name()->c_str();
  while (!prompt.empty()) {
    const size_t count = std::min<size_t>(prompt.size(), model.max_segment);
    const oxbow::InputValues input = {name, prompt.data(), count};
    OXB_TRY(oxbow::run_session(session_, static_cast<uint32_t>(model.entry_count() - 1),
                               {&input, 1}, logits_.data(), 1, error));
    prompt = prompt.subspan(count);
  }
  return Status::kOk;
}

/// Each beam gets a session with the text that it goes on with.
Status oxb_beam_search::give_sessions(bool first_round, Error* error) {
  const size_t beams = sessions_.size();
  std::fill(next_.begin(), next_.end(), nullptr);
  bool taken[BeamSearch::kMaxBeams] = {};
  // All beams are the same text before the first round, and one session has it.
  const auto source = [&](size_t beam) {
    return first_round ? 0 : search_->source(static_cast<uint32_t>(beam));
  };
  for (size_t beam = 0; beam < beams; ++beam) {
    const uint32_t from = source(beam);
    if (taken[from]) continue;
    taken[from] = true;
    next_[beam] = sessions_[from];
  }
  size_t unused = 0;
  for (size_t beam = 0; beam < beams; ++beam) {
    if (next_[beam] != nullptr) continue;
    while (taken[unused]) ++unused;
    taken[unused] = true;
    OXB_TRY(oxbow::copy_stream(*sessions_[unused], *sessions_[source(beam)], error));
    next_[beam] = sessions_[unused];
  }
  std::swap(sessions_, next_);
  return Status::kOk;
}

Status oxb_beam_search::run(std::span<const int32_t> prompt, Error* error) {
  int32_t start = -1;
  if (prompt.empty()) {
    const auto* generation = session_.model->graph->generation();
    start = generation == nullptr ? -1 : generation->start_token();
    if (start < 0) {
      return fail(error, Status::kInvalidArgument,
                  "beam search: the model has no start token; give a prompt");
    }
    prompt = {&start, 1};
  }
  OXB_TRY(check_prompt(prompt, error));
  std::swap(sessions_[0], *std::find(sessions_.begin(), sessions_.end(), &session_));
  search_->begin(prompt);
  OXB_TRY(feed_prompt(prompt, error));
  const auto row = [this](size_t beam) {
    const size_t width = session_.model->vocabulary;
    return logits_.subspan(beam * width, width);
  };
  OXB_TRY(search_->add_row(0, row(0), error));
  search_->advance();
  for (bool first_round = true; !search_->done(); first_round = false) {
    OXB_TRY(give_sessions(first_round, error));
    int32_t tokens[BeamSearch::kMaxBeams];
    const auto beams = static_cast<uint32_t>(sessions_.size());
    for (uint32_t beam = 0; beam < beams; ++beam) tokens[beam] = search_->token(beam);
    OXB_TRY(oxbow::run_lockstep(sessions_, {tokens, beams}, logits_.data(), error));
    for (uint32_t beam = 0; beam < beams; ++beam) {
      OXB_TRY(search_->add_row(beam, row(beam), error));
    }
    search_->advance();
  }
  return Status::kOk;
}

#include "runtime/session/draft.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/base/checked.h"
#include "runtime/session/run.h"
#include "runtime/session/state.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

bool is_state(const schema::Model& graph, uint32_t tensor) {
  return graph.tensors()->Get(tensor)->kind() == schema::TensorKind::State;
}

bool changes_states(const schema::Model& graph, const schema::Step& step) {
  return step.outputs() != nullptr &&
         std::any_of(step.outputs()->begin(), step.outputs()->end(),
                     [&](uint32_t tensor) { return is_state(graph, tensor); });
}

/// Tensors of a step that a run computes: neither states nor weights.
bool is_computed(const schema::Model& graph, uint32_t tensor) {
  const schema::TensorKind kind = graph.tensors()->Get(tensor)->kind();
  return kind != schema::TensorKind::State && kind != schema::TensorKind::Weight;
}

/// Elements, then scales.
size_t logged_bytes(const Tensor& tensor) {
  return tensor.stride() + tensor.scale_groups * sizeof(float);
}

/// The entry point that goes on with a stream; there may be others that start one.
Status find_entry(const Session& session, uint32_t* found, Error* error) {
  const Model& model = *session.model;
  size_t count = 0;
  for (uint32_t e = 0; e < model.entry_count(); ++e) {
    if (model.entry(e).starts()) continue;
    *found = e;
    count += model.entry(e).any_pieces() ? 1 : 2;
  }
  if (count == 1) return Status::kOk;
  return fail(error, Status::kInvalidArgument,
              "drafts need a model whose streams may be cut anywhere: use checkpoint and rewind");
}

/// Every row of what state-changing steps take and give is a token's.
Status check_steps(const Session& session, uint32_t entry_index, Error* error) {
  const schema::Model& graph = *session.model->graph;
  const schema::EntryPoint& entry = session.model->entry(entry_index);
  const int32_t tokens = graph.tensors()->Get(entry.tokens())->rows_symbol();
  for (const schema::Step* step : *entry.steps()) {
    if (!changes_states(graph, *step)) continue;
    for (const auto* list : {step->inputs(), step->outputs()}) {
      if (list == nullptr) continue;
      for (const uint32_t index : *list) {
        const schema::Tensor& tensor = *graph.tensors()->Get(index);
        if (!is_computed(graph, index) || tensor.rows_symbol() == tokens) continue;
        return fail(error, Status::kInvalidArgument,
                    "tensor '%.80s' has not a row for each token: use checkpoint and rewind",
                    tensor.name()->c_str());
      }
    }
  }
  return Status::kOk;
}

/// Offsets in the memory, once it is aligned.
struct DraftLayout {
  uint64_t runs = 0, log = 0, checkpoint = 0, bytes = 0;
};

Status lay_out(const Session& session, uint32_t entry, size_t tokens, DraftLayout* layout,
               Error* error) {
  const schema::Model& graph = *session.model->graph;
  uint64_t row = 0, log = 0, runs = 0;
  bool fits = true;
  for (const schema::Step* step : *session.model->entry(entry).steps()) {
    if (!changes_states(graph, *step) || step->inputs() == nullptr) continue;
    for (const uint32_t input : *step->inputs()) {
      if (is_computed(graph, input)) {
        fits = fits && checked_add(row, logged_bytes(session_tensor(session, input)), &row);
      }
    }
  }
  layout->runs = round_up(sizeof(Draft), alignof(Draft));
  fits = fits && checked_mul(tokens, sizeof(uint32_t), &runs) &&
         checked_add(layout->runs, runs, &layout->log) && checked_mul(row, tokens, &log) &&
         checked_add(layout->log, log, &layout->checkpoint) &&
         checked_add(layout->checkpoint, state_blob_bytes(session) + alignof(Draft) - 1,
                     &layout->bytes);
  if (tokens > 0 && tokens <= UINT32_MAX && fits && layout->bytes <= SIZE_MAX / 2) {
    return Status::kOk;
  }
  return fail(error, Status::kInvalidArgument, "a draft of %zu tokens, expected 1 or more %s",
              tokens, "and what memory can hold");
}

Status measure(const Session& session, size_t tokens, uint32_t* entry, DraftLayout* layout,
               Error* error) {
  if (session.device || session.lender != nullptr) {
    return fail(error, Status::kInvalidArgument,
                "drafts need a session on the CPU with memory of its own");
  }
  OXB_TRY(find_entry(session, entry, error));
  OXB_TRY(check_steps(session, *entry, error));
  return lay_out(session, *entry, tokens, layout, error);
}

enum class Copy { kToLog, kFromLog };

/// Rows of a step's inputs to or from the log; tells where the next step's part begins.
size_t copy_inputs(const Session& session, const schema::Step& step, Copy way, size_t part,
                   size_t first, size_t rows) {
  const Draft& draft = *session.draft;
  for (const uint32_t input : *step.inputs()) {
    if (!is_computed(*session.model->graph, input)) continue;
    Tensor tensor = session_tensor(session, input);
    const size_t bytes = logged_bytes(tensor), elements = tensor.stride();
    std::byte* logged = draft.log + part + first * bytes;
    const auto copy = [&](std::byte* there, void* here, size_t count) {
      way == Copy::kToLog ? std::memcpy(there, here, count) : std::memcpy(here, there, count);
    };
    for (size_t r = 0; r < rows; ++r, logged += bytes) {
      copy(logged, tensor.data + r * elements, elements);
      if (tensor.scale_groups != 0) {
        copy(logged + elements, tensor.row_scales(r), bytes - elements);
      }
    }
    part += size_t{draft.capacity} * bytes;
  }
  return part;
}

/// The state-changing steps of a run that had the logged rows from `first` on.
Status repeat_run(Session& session, size_t first, uint32_t tokens, Error* error) {
  const Draft& draft = *session.draft;
  const schema::Model& graph = *session.model->graph;
  const schema::EntryPoint& entry = session.model->entry(draft.entry);
  const int32_t symbol = graph.tensors()->Get(entry.tokens())->rows_symbol();
  std::fill(session.symbols.begin(), session.symbols.end(), 0);
  std::fill(session.symbols_set.begin(), session.symbols_set.end(), false);
  session.symbols[static_cast<size_t>(symbol)] = tokens;
  RunContext context = make_context(session, nullptr, error);
  const uint32_t begin = draft.entry == 0 ? 0 : session.entry_ends[draft.entry - 1];
  size_t part = 0;
  for (uint32_t i = 0; i < entry.steps()->size(); ++i) {
    const schema::Step& step = *entry.steps()->Get(i);
    if (!changes_states(graph, step) || step.inputs() == nullptr) continue;
    part = copy_inputs(session, step, Copy::kFromLog, part, first, tokens);
    const BoundStep& bound = session.steps[begin + i];
    OXB_TRY(bound.run(context, bound.params));
  }
  session.header->position += tokens;
  return Status::kOk;
}

}  // namespace

Status draft_bytes(const Session& session, size_t tokens, size_t* bytes, Error* error) {
  uint32_t entry = 0;
  DraftLayout layout;
  OXB_TRY(measure(session, tokens, &entry, &layout, error));
  *bytes = static_cast<size_t>(layout.bytes);
  return Status::kOk;
}

Status begin_draft(Session& session, std::span<std::byte> memory, size_t tokens, Error* error) {
  uint32_t entry = 0;
  DraftLayout layout;
  OXB_TRY(measure(session, tokens, &entry, &layout, error));
  if (memory.data() == nullptr || memory.size() < layout.bytes) {
    return fail(error, Status::kBufferTooSmall, "draft: given %zu bytes; expected %zu",
                memory.data() == nullptr ? 0 : memory.size(), static_cast<size_t>(layout.bytes));
  }
  std::byte* base = memory.data();
  base += -reinterpret_cast<uintptr_t>(base) % alignof(Draft);
  const std::span<std::byte> checkpoint(base + layout.checkpoint, state_blob_bytes(session));
  OXB_TRY(write_state(session, StateForm::kCheckpoint, checkpoint, error));
  auto* draft = new (base) Draft();
  draft->entry = entry;
  draft->capacity = static_cast<uint32_t>(tokens);
  draft->run_tokens = {new (base + layout.runs) uint32_t[tokens], tokens};
  draft->log = base + layout.log;
  draft->checkpoint = checkpoint;
  session.draft = draft;
  return Status::kOk;
}

Status keep_draft(Session& session, size_t tokens, Error* error) {
  Draft* draft = session.draft;
  if (draft == nullptr) {
    return fail(error, Status::kInvalidArgument, "there is no draft: begin one, then run");
  }
  if (tokens > draft->tokens) {
    return fail(error, Status::kInvalidArgument, "%zu tokens to keep of a draft of %u", tokens,
                static_cast<unsigned>(draft->tokens));
  }
  if (tokens < draft->tokens || session.needs_reset) {
    // Ends the draft, too.
    OXB_TRY(read_state(session, StateForm::kCheckpoint, draft->checkpoint, error));
    session.draft = draft;
    session.needs_reset = true;
    for (size_t first = 0, run = 0; first < tokens; first += draft->run_tokens[run++]) {
      const auto left = static_cast<uint32_t>(tokens - first);
      OXB_TRY(repeat_run(session, first, std::min(draft->run_tokens[run], left), error));
    }
    session.needs_reset = false;
  }
  session.draft = nullptr;
  return Status::kOk;
}

Status check_draft(const Session& session, uint32_t entry, uint32_t tokens, Error* error) {
  const Draft& draft = *session.draft;
  if (entry != draft.entry) {
    return fail(error, Status::kInvalidArgument, "'%.40s' cannot be part of a draft: end it first",
                session.model->entry(entry).name()->c_str());
  }
  if (tokens > draft.capacity - draft.tokens) {
    return fail(error, Status::kInvalidArgument,
                "a draft of %u tokens has had %u, %u more do not fit: keep some first",
                static_cast<unsigned>(draft.capacity), static_cast<unsigned>(draft.tokens),
                static_cast<unsigned>(tokens));
  }
  return Status::kOk;
}

void log_step(Session& session, uint32_t index) {
  Draft& draft = *session.draft;
  const schema::Model& graph = *session.model->graph;
  const schema::EntryPoint& entry = session.model->entry(draft.entry);
  const schema::Step& step = *entry.steps()->Get(index);
  if (!changes_states(graph, step) || step.inputs() == nullptr) return;
  const int32_t symbol = graph.tensors()->Get(entry.tokens())->rows_symbol();
  const uint32_t tokens = session.symbols[static_cast<size_t>(symbol)];
  draft.next = copy_inputs(session, step, Copy::kToLog, draft.next, draft.tokens, tokens);
}

void end_draft_run(Session& session, uint32_t tokens) {
  Draft& draft = *session.draft;
  draft.run_tokens[draft.runs++] = tokens;
  draft.tokens += tokens;
}

}  // namespace oxbow

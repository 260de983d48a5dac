#include "runtime/session.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/binder.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

// Hands out the arena front to back; over a null base it only counts.
class ArenaCursor {
 public:
  explicit ArenaCursor(std::byte* base) : base_(base) {}

  std::byte* take(size_t bytes) {
    std::byte* start = base_ == nullptr ? nullptr : base_ + used_;
    used_ += round_up(bytes, kTensorAlignment);
    return start;
  }
  size_t used() const { return used_; }

 private:
  std::byte* base_;
  size_t used_ = 0;
};

// Lays the session out from `base`. With a null base nothing is written but `memory`.
Status lay_out(const Model& model, const SessionOptions& options, std::byte* base, Session** out,
               SessionMemory* memory, Error* error) {
  const schema::Model& graph = *model.graph;
  const schema::EntryPoint& entry = model.entry();
  const size_t step_count = entry.steps()->size();
  const size_t ring_count = graph.rings() == nullptr ? 0 : graph.rings()->size();
  const size_t threads = std::max<uint32_t>(options.threads, 1);

  if (threads > ThreadPool::kMaxThreads) {
    return fail(error, Status::kInvalidArgument, "%zu threads; at most %zu", threads,
                ThreadPool::kMaxThreads);
  }

  ArenaCursor arena(base);
  Session counted;
  std::byte* session_at = arena.take(sizeof(Session));
  Session* session = base == nullptr ? &counted : new (session_at) Session();
  auto* steps = reinterpret_cast<BoundStep*>(arena.take(step_count * sizeof(BoundStep)));
  session->model = &model;

  // Params come before the regions that the ops' tensors live in, but tensors must have their addresses
  // when params are filled: so count the params first, by binding without addresses.
  size_t params_bytes = 0, scratch_bytes = 0;
  for (size_t i = 0; i < step_count; ++i) {
    Binder binder(*session, i, threads, options.reference_only, nullptr, error);
    OXB_TRY(binder.bind(nullptr));
    params_bytes += binder.params_bytes();
    scratch_bytes = std::max(scratch_bytes, binder.scratch_bytes());
  }
  std::byte* params = arena.take(params_bytes);
  std::byte* pool_at = threads > 1 ? arena.take(ThreadPool::bytes(threads)) : nullptr;
  memory->session = arena.used();

  const size_t header_bytes =
      round_up(sizeof(StateHeader) + ring_count * sizeof(RingPosition), kTensorAlignment);
  const size_t state_bytes = header_bytes + static_cast<size_t>(graph.plan()->states());
  std::byte* state = arena.take(state_bytes);
  memory->states = arena.used() - memory->session;
  session->activations = arena.take(static_cast<size_t>(graph.plan()->activations()));
  memory->activations = arena.used() - memory->session - memory->states;
  session->scratch = arena.take(scratch_bytes);
  memory->scratch = round_up(scratch_bytes, kTensorAlignment);
  memory->total = arena.used() + kTensorAlignment - 1;
  if (base == nullptr) return Status::kOk;

  session->state = {state, state_bytes};
  session->header = reinterpret_cast<StateHeader*>(state);
  session->rings = {reinterpret_cast<RingPosition*>(state + sizeof(StateHeader)), ring_count};
  session->state_tensors = state + header_bytes;
  for (size_t i = 0; i < step_count; ++i) {
    Binder binder(*session, i, threads, options.reference_only, params, error);
    OXB_TRY(binder.bind(&steps[i]));
    params += binder.params_bytes();
  }
  session->steps = {steps, step_count};
  std::memset(session->activations, 0, static_cast<size_t>(graph.plan()->activations()));
  std::memset(session->scratch, 0, scratch_bytes);
  reset_session(*session);
  if (threads > 1) OXB_TRY(ThreadPool::create(pool_at, threads, error, &session->pool));
  *out = session;
  return Status::kOk;
}

uint64_t now_nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

Status check_arguments(const Session& session, std::span<const int32_t> tokens, const float* logits,
                       size_t logits_rows, Error* error) {
  const Model& model = *session.model;
  if (session.needs_reset) {
    return fail(error, Status::kNeedsReset,
                "an earlier run failed half-way: reset the session, load a state or rewind");
  }
  if (tokens.empty() || tokens.size() > model.max_segment || tokens.data() == nullptr) {
    return fail(error, Status::kInvalidArgument, "a run takes 1 to %u tokens, not %zu",
                model.max_segment, tokens.size());
  }
  if (logits_rows > tokens.size() || (logits_rows > 0 && logits == nullptr)) {
    return fail(error, Status::kInvalidArgument, "%zu rows of logits wanted for %zu tokens, %s",
                logits_rows, tokens.size(),
                logits == nullptr ? "with nowhere to put them" : "at most one each");
  }
  const uint32_t limit = model.graph->tensors()->Get(model.entry().tokens())->limit();
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || static_cast<uint32_t>(tokens[i]) >= limit) {
      return fail(error, Status::kInvalidArgument, "token %d at position %zu is not in 0..%u",
                  tokens[i], i, limit - 1);
    }
  }
  return Status::kOk;
}

}  // namespace

Status count_session_memory(const Model& model, const SessionOptions& options,
                            SessionMemory* memory, Error* error) {
  return lay_out(model, options, nullptr, nullptr, memory, error);
}

Status create_session(const Model& model, const SessionOptions& options, std::span<std::byte> arena,
                      Session** session, Error* error) {
  SessionMemory memory;
  OXB_TRY(count_session_memory(model, options, &memory, error));
  if (arena.data() == nullptr || arena.size() < memory.total) {
    return fail(error, Status::kArenaTooSmall,
                "the arena has %zu bytes; this model with these options needs %zu", arena.size(),
                memory.total);
  }
  const auto address = reinterpret_cast<uintptr_t>(arena.data());
  std::byte* base = arena.data() + (round_up(address, kTensorAlignment) - address);
  return lay_out(model, options, base, session, &memory, error);
}

void destroy_session(Session* session) {
  if (session->pool != nullptr) ThreadPool::destroy(session->pool);
}

Status run_session(Session& session, std::span<const int32_t> tokens, float* logits,
                   size_t logits_rows, Error* error) {
  OXB_TRY(check_arguments(session, tokens, logits, logits_rows, error));
  const schema::EntryPoint& entry = session.model->entry();
  const auto& tensors = *session.model->graph->tensors();
  const schema::Tensor& input = *tensors.Get(entry.tokens());
  std::memset(session.symbols, 0, sizeof(session.symbols));
  session.symbols[input.rows_symbol()] = static_cast<uint32_t>(tokens.size());
  session.symbols[tensors.Get(entry.logits())->rows_symbol()] = static_cast<uint32_t>(logits_rows);
  std::memcpy(session.activations + input.offset(), tokens.data(), tokens.size_bytes());

  RunContext context;
  context.symbols = session.symbols;
  context.rings = session.rings.data();
  context.scratch = session.scratch;
  context.pool = session.pool;
  context.error = error;
  context.caller_output = logits;
  session.needs_reset = true;
  for (size_t i = 0; i < session.steps.size(); ++i) {
    const BoundStep& step = session.steps[i];
    const uint64_t start = session.profile == nullptr ? 0 : now_nanoseconds();
    OXB_TRY(step.run(context, step.params));
    if (session.profile != nullptr) {
      session.profile(session.profile_context, static_cast<uint32_t>(i), step.op, step.output,
                      now_nanoseconds() - start);
    }
  }
  session.needs_reset = false;
  session.header->position += tokens.size();
  return Status::kOk;
}

void reset_session(Session& session) {
  // All of it, so that a saved state never carries rows of an earlier stream.
  std::memset(session.state.data(), 0, session.state.size());
  session.needs_reset = false;
}

Tensor session_tensor(const Session& session, uint32_t index) {
  const schema::Tensor& from = *session.model->graph->tensors()->Get(index);
  Tensor tensor;
  tensor.name = from.name()->c_str();
  tensor.type = static_cast<DataType>(from.type());
  tensor.layout = static_cast<Layout>(from.layout());
  tensor.rows = from.rows();
  tensor.width = from.width();
  tensor.scale_groups = from.scale_groups();
  tensor.rows_symbol = from.rows_symbol();
  tensor.ring = from.ring();
  if (from.ring() >= 0) {
    tensor.pinned =
        session.model->graph->rings()->Get(static_cast<uint32_t>(from.ring()))->pinned();
  }
  tensor.limit = from.limit();
  std::byte* base = nullptr;
  switch (from.kind()) {
    case schema::TensorKind::Weight:
      // Ops get one view type for all; that weights are read-only is checked when the file is opened.
      base = const_cast<std::byte*>(session.model->data);
      break;
    case schema::TensorKind::State:
      base = session.state_tensors;
      break;
    case schema::TensorKind::Activation:
    case schema::TensorKind::Input:
      base = session.activations;
      break;
    case schema::TensorKind::Output:
      break;
  }
  if (base == nullptr) return tensor;
  tensor.data = base + from.offset();
  if (tensor.scale_groups != 0) {
    tensor.scales = reinterpret_cast<float*>(
        tensor.data + element_bytes(tensor.type, tensor.layout, tensor.rows, tensor.width));
  }
  return tensor;
}

}  // namespace oxbow

// Counts, places and ends sessions. The same code lays the arena out twice: over no memory at all, to count, and over
// the caller's, to place.

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/session/binder.h"
#include "runtime/session/plan.h"
#include "runtime/session/session.h"
#include "runtime/session/state.h"
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

// Binds every step of every entry point; with null `params` and `steps` only to count.
Status bind_steps(Session& session, std::byte* params, BoundStep* steps, size_t* params_bytes,
                  size_t* scratch_bytes, Error* error) {
  *params_bytes = *scratch_bytes = 0;
  size_t index = 0;
  for (size_t e = 0; e < session.model->entry_count(); ++e) {
    const schema::EntryPoint& entry = session.model->entry(e);
    SymbolUses uses(*session.model->graph, entry);
    for (size_t i = 0; i < entry.steps()->size(); ++i) {
      const bool shares = steps != nullptr && session.lender != nullptr;
      const BoundStep* lender = shares ? &session.lender->steps[index] : nullptr;
      Binder binder(session, entry, i, uses, lender,
                    params == nullptr ? nullptr : params + *params_bytes, error);
      OXB_TRY(binder.bind(steps == nullptr ? nullptr : &steps[index]));
      ++index;
      *params_bytes += binder.params_bytes();
      if (!binder.needs_no_scratch()) {
        *scratch_bytes = std::max(*scratch_bytes, binder.scratch_bytes());
      }
    }
  }
  return Status::kOk;
}

/// Marks the rings of which some step writes some states and not others. Uses their positions to count.
void find_partly_written(Session& session) {
  const auto& tensors = *session.model->graph->tensors();
  const auto ring_of = [&](uint32_t tensor) { return tensors.Get(tensor)->ring(); };
  std::fill(session.rings.begin(), session.rings.end(), RingPosition{});
  std::fill(session.partly_written.begin(), session.partly_written.end(), false);
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    if (ring_of(i) >= 0) ++session.rings[static_cast<size_t>(ring_of(i))].count;
  }
  for (size_t e = 0; e < session.model->entry_count(); ++e) {
    for (const schema::Step* step : *session.model->entry(e).steps()) {
      const auto* outputs = step->outputs();
      if (outputs == nullptr || outputs->size() == 0 || ring_of(outputs->Get(0)) < 0) continue;
      // The op has seen to it that all of them are in one ring, and all different.
      const auto ring = static_cast<size_t>(ring_of(outputs->Get(0)));
      if (outputs->size() != session.rings[ring].count) session.partly_written[ring] = true;
    }
  }
}

void destroy_owned(Session& session) {
  for (OwnedObject* owned = session.owned; owned != nullptr; owned = owned->next) {
    owned->destroy(owned->object);
  }
  session.owned = nullptr;
}

/// The options as they are used: a borrower's are its lender's.
Status resolve(const Model& model, const SessionOptions& options, SessionOptions* used,
               Error* error) {
  const Session* lender = options.lender;
  if (lender != nullptr && lender->lender != nullptr) lender = lender->lender;
  if (lender != nullptr && lender->model != &model) {
    return fail(error, Status::kInvalidArgument, "the lender is a session of another model");
  }
  *used = lender == nullptr ? options : lender->options;
  used->lender = lender;
  used->pipeline_cache = {};
  used->threads = std::max<uint32_t>(used->threads, 1);
  if (used->threads > ThreadPool::kMaxThreads) {
    return fail(error, Status::kInvalidArgument, "%u threads; at most %zu", used->threads,
                ThreadPool::kMaxThreads);
  }
  return Status::kOk;
}

/// A session's parts in its arena and, on a device, in that one's memory.
struct Layout {
  std::byte* session = nullptr;
  std::byte* steps = nullptr;
  /// Their values, which of them are set, and which rings are partly written.
  std::byte* symbols = nullptr;
  std::byte* params = nullptr;
  std::byte* pool = nullptr;
  std::byte* state = nullptr;
  std::byte* activations = nullptr;
  std::byte* scratch = nullptr;
  DeviceSizes sizes;
};

size_t ring_count(const schema::Model& graph) {
  return graph.rings() == nullptr ? 0 : graph.rings()->size();
}
size_t symbol_count(const schema::Model& graph) {
  return graph.symbols() == nullptr ? 0 : graph.symbols()->size();
}

uint32_t step_count(const Model& model) {
  uint32_t count = 0;
  for (size_t e = 0; e < model.entry_count(); ++e) count += model.entry(e).steps()->size();
  return count;
}

/// States and activations are in the memory of a device.
bool is_elsewhere(const Device& device) { return device && !device.driver->in_arena; }

Layout lay_out(const Model& model, const SessionPlan& plan, bool borrows, std::byte* base,
               SessionMemory* memory) {
  const schema::Model& graph = *model.graph;
  const SessionOptions& options = plan.options;
  const size_t rings = ring_count(graph), symbols = symbol_count(graph);
  const uint64_t shared = borrows ? graph.plan()->shared_states() : 0;
  Layout layout;
  layout.sizes.state_header =
      round_up(sizeof(StateHeader) + rings * sizeof(RingPosition), kTensorAlignment);
  layout.sizes.states =
      layout.sizes.state_header + static_cast<size_t>(graph.plan()->states() - shared);
  layout.sizes.activations = static_cast<size_t>(graph.plan()->activations());

  ArenaCursor arena(base);
  layout.session = arena.take(sizeof(Session));
  layout.steps = arena.take(step_count(model) * sizeof(BoundStep));
  layout.symbols = arena.take(symbols * (sizeof(uint32_t) + sizeof(bool)) + rings * sizeof(bool));
  layout.params = arena.take(plan.params_bytes);
  if (!borrows && options.threads > 1) {
    layout.pool = arena.take(ThreadPool::bytes(options.threads));
  }
  memory->session = arena.used();
  if (!is_elsewhere(plan.device)) layout.state = arena.take(layout.sizes.states);
  memory->states = arena.used() - memory->session;
  if (!borrows) {
    if (!is_elsewhere(plan.device)) {
      layout.activations = arena.take(layout.sizes.activations);
    }
    memory->activations = arena.used() - memory->session - memory->states;
    layout.scratch = arena.take(plan.scratch_bytes);
    memory->scratch = round_up(plan.scratch_bytes, kTensorAlignment);
  }
  memory->total = arena.used() + kTensorAlignment - 1;
  memory->checkpoint = state_blob_bytes(layout.sizes.states);
  return layout;
}

/// Of a session that borrows from the planned one. It has its stream in its arena, also when the lender's is on a device.
size_t borrower_bytes(const Model& model, const SessionPlan& plan) {
  SessionPlan borrower = plan;
  borrower.device = {};
  SessionMemory memory;
  lay_out(model, borrower, true, nullptr, &memory);
  return memory.total;
}

/// Without addresses, to count.
Status count(const Model& model, SessionPlan* plan, Error* error) {
  Session counted;
  counted.model = &model;
  counted.options = plan->options;
  counted.device = plan->device;
  OXB_TRY(bind_steps(counted, nullptr, nullptr, &plan->params_bytes, &plan->scratch_bytes, error));
  const Layout layout = lay_out(model, *plan, false, nullptr, &plan->memory);
  plan->memory.libraries = counted.planned_library_bytes;
  plan->memory.borrower = borrower_bytes(model, *plan);
  if (!plan->device) return Status::kOk;
  return plan->device.driver->count(plan->device.self, layout.sizes, &plan->memory.device, error);
}

/// Memory and addresses; steps, threads and the device's commands come next.
void fill(const Layout& layout, const Model& model, const SessionPlan& plan, Session* session) {
  const schema::Model& graph = *model.graph;
  const Session* lender = plan.options.lender;
  session->model = &model;
  session->lender = lender;
  session->options = plan.options;
  session->options.lender = nullptr;
  session->params_bytes = plan.params_bytes;
  session->device = plan.device;
  for (size_t e = 0, end = 0; e < model.entry_count(); ++e) {
    end += model.entry(e).steps()->size();
    session->entry_ends[e] = static_cast<uint32_t>(end);
  }
  const size_t rings = ring_count(graph), symbols = symbol_count(graph);
  session->symbols = {reinterpret_cast<uint32_t*>(layout.symbols), symbols};
  auto* flags = reinterpret_cast<bool*>(layout.symbols + session->symbols.size_bytes());
  session->symbols_set = {flags, symbols};
  session->partly_written = {flags + symbols, rings};
  std::fill(session->symbols.begin(), session->symbols.end(), 0);
  std::byte* state = layout.state;
  session->state = {state, layout.sizes.states};
  session->header = reinterpret_cast<StateHeader*>(state);
  session->rings = {reinterpret_cast<RingPosition*>(state + sizeof(StateHeader)), rings};
  find_partly_written(*session);
  if (lender == nullptr) {
    session->shared_states = state + layout.sizes.state_header;
    session->own_states =
        session->shared_states + static_cast<size_t>(graph.plan()->shared_states());
    session->activations = layout.activations;
    session->scratch = layout.scratch;
    std::memset(session->activations, 0, layout.sizes.activations);
    std::memset(session->scratch, 0, plan.scratch_bytes);
  } else {
    session->shared_states = lender->shared_states;
    session->own_states = state + layout.sizes.state_header;
    session->activations = lender->activations;
    session->scratch = lender->scratch;
    session->pool = lender->pool;
  }
}

/// In an aligned arena that is large enough. On success the plan's device is the session's.
Status place(const Model& model, SessionPlan& plan, std::byte* base, Session** out, Error* error) {
  const Device device = plan.device;
  Layout layout = lay_out(model, plan, plan.options.lender != nullptr, base, &plan.memory);
  if (device) {
    DeviceAddresses addresses;
    OXB_TRY(device.driver->place(device.self, layout.sizes, &addresses, error));
    if (is_elsewhere(device)) {
      layout.state = addresses.states;
      layout.activations = addresses.activations;
    }
  }
  auto* session = new (layout.session) Session();
  fill(layout, model, plan, session);
  auto* steps = reinterpret_cast<BoundStep*>(layout.steps);
  size_t params_bytes = 0, scratch_bytes = 0;
  Status status = bind_steps(*session, layout.params, steps, &params_bytes, &scratch_bytes, error);
  if (status == Status::kOk && layout.pool != nullptr) {
    status = ThreadPool::create(layout.pool, plan.options.threads, error, &session->pool,
                                plan.options.cpu_mask);
  }
  if (status == Status::kOk && device) {
    status = device.driver->record(device.self, error);
    if (status != Status::kOk && layout.pool != nullptr) ThreadPool::destroy(session->pool);
  }
  if (status != Status::kOk) {
    destroy_owned(*session);
    return status;
  }
  session->steps = {steps, step_count(model)};
  reset_session(*session);
  *out = session;
  return Status::kOk;
}

/// What an earlier session compiled and found out about the device.
Status read_cache(const SessionPlan& plan, const SessionOptions& options, Error* error) {
  if (!plan.device || plan.device.driver->read_cache == nullptr) return Status::kOk;
  return plan.device.driver->read_cache(plan.device.self, options.pipeline_cache, error);
}

/// Calls touch for a byte in every page: what no run has used yet is not in memory, or not in this process's tables.
template <typename Byte, typename Touch>
void touch_pages(Byte* bytes, size_t count, Touch touch) {
  constexpr size_t kPage = 4096;  // The smallest there is.
  for (size_t i = 0; i < count; i += kPage) touch(bytes + i);
  if (count != 0) touch(bytes + count - 1);
}

/// With a plan of its own or the one that the model has kept.
Status place_in(const Model& model, const SessionOptions& options, std::span<std::byte> arena,
                SessionPlan& plan, Session** session, Error* error) {
  // Again: a plan that the model has kept may have been made without it.
  OXB_TRY(read_cache(plan, options, error));
  if (arena.data() == nullptr) return fail(error, Status::kInvalidArgument, "the arena is null");
  if (arena.size() < plan.memory.total) {
    return fail(error, Status::kArenaTooSmall,
                "the arena has %zu bytes; this model with these options needs %zu", arena.size(),
                plan.memory.total);
  }
  if (options.warm_up) {
    touch_pages(model.data, model.data_bytes,
                [](const std::byte* byte) { (void)*static_cast<const volatile std::byte*>(byte); });
    touch_pages(arena.data(), plan.memory.total,
                [](std::byte* byte) { *static_cast<volatile std::byte*>(byte) = std::byte{}; });
  }
  const auto address = reinterpret_cast<uintptr_t>(arena.data());
  std::byte* base = arena.data() + (round_up(address, kTensorAlignment) - address);
  return place(model, plan, base, session, error);
}

}  // namespace

Status make_plan(const Model& model, const SessionOptions& options, SessionPlan* plan,
                 Error* error) {
  OXB_TRY(resolve(model, options, &plan->options, error));
  if (const Session* lender = plan->options.lender; lender != nullptr) {
    // Ops decide from shapes and options, which are the lender's.
    plan->params_bytes = lender->params_bytes;
    lay_out(model, *plan, true, nullptr, &plan->memory);
    return Status::kOk;
  }
  if (options.device != nullptr) {
    void* self = nullptr;
    OXB_TRY(options.device->open(model, options.device_options, &self, error));
    plan->device = {options.device, self};
  }
  Status status = read_cache(*plan, options, error);
  if (status == Status::kOk) status = count(model, plan, error);
  if (status != Status::kOk) plan->device.close();
  return status;
}

Status count_session_memory(const Model& model, const SessionOptions& options,
                            SessionMemory* memory, Error* error) {
  if (model.plans->find(options, memory)) return Status::kOk;
  SessionPlan plan;
  OXB_TRY(make_plan(model, options, &plan, error));
  *memory = plan.memory;
  if (options.lender == nullptr) model.plans->keep(plan);
  return Status::kOk;
}

Status create_session(const Model& model, const SessionOptions& options, std::span<std::byte> arena,
                      Session** session, Error* error) {
  SessionPlan plan;
  if (!model.plans->take(options, &plan)) OXB_TRY(make_plan(model, options, &plan, error));
  const Status status = place_in(model, options, arena, plan, session, error);
  if (status != Status::kOk) plan.device.close();
  return status;
}

size_t backend_bytes(const Session& session) {
  size_t bytes = 0;
  for (const OwnedObject* owned = session.owned; owned != nullptr; owned = owned->next) {
    bytes += owned->bytes;
  }
  if (session.device) bytes += session.device.driver->bytes(session.device.self);
  return bytes;
}

void destroy_session(Session* session) {
  destroy_owned(*session);
  session->device.close();
  if (session->pool != nullptr && session->lender == nullptr) ThreadPool::destroy(session->pool);
}

}  // namespace oxbow

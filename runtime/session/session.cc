#include "runtime/session.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

#include "runtime/base/quantize.h"
#include "runtime/binder.h"
#include "runtime/vulkan_backend.h"
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
    for (size_t i = 0; i < entry.steps()->size(); ++i) {
      const bool shares = steps != nullptr && session.elder != nullptr;
      const BoundStep* elder = shares ? &session.elder->steps[index] : nullptr;
      Binder binder(session, entry, i, elder, params == nullptr ? nullptr : params + *params_bytes,
                    error);
      OXB_TRY(binder.bind(steps == nullptr ? nullptr : &steps[index]));
      ++index;
      *params_bytes += binder.params_bytes();
      if (!binder.is_on_device()) {
        *scratch_bytes = std::max(*scratch_bytes, binder.scratch_bytes());
      }
    }
  }
  return Status::kOk;
}

void destroy_owned(Session& session) {
  for (OwnedObject* owned = session.owned; owned != nullptr; owned = owned->next) {
    owned->destroy(owned->object);
  }
  session.owned = nullptr;
}

// Lays the session out from `base`. With a null base nothing is written but `memory`. `vulkan` becomes the
// session's on success, unless it only counted.
Status lay_out_on(VulkanBackend* vulkan, const Model& model, const SessionOptions& options,
                  std::byte* base, Session** out, SessionMemory* memory, Error* error) {
  const schema::Model& graph = *model.graph;
  const schema::MemoryPlan& plan = *graph.plan();
  const Session* elder = options.sibling;
  if (elder != nullptr && elder->elder != nullptr) elder = elder->elder;
  if (elder != nullptr && elder->model != &model) {
    return fail(error, Status::kInvalidArgument, "the sibling is a session of another model");
  }
  const size_t ring_count = graph.rings() == nullptr ? 0 : graph.rings()->size();
  SessionOptions used = elder == nullptr ? options : elder->options;
  used.threads = std::max<uint32_t>(used.threads, 1);
  used.sibling = nullptr;
  used.pipeline_cache = {};
  if (used.threads > ThreadPool::kMaxThreads) {
    return fail(error, Status::kInvalidArgument, "%u threads; at most %zu", used.threads,
                ThreadPool::kMaxThreads);
  }

  ArenaCursor arena(base);
  Session counted;
  std::byte* session_at = arena.take(sizeof(Session));
  Session* session = base == nullptr ? &counted : new (session_at) Session();
  session->model = &model;
  session->elder = elder;
  session->options = used;
  session->vulkan = vulkan;
  uint32_t step_count = 0;
  for (size_t e = 0; e < model.entry_count(); ++e) {
    step_count += model.entry(e).steps()->size();
    session->entry_ends[e] = step_count;
  }
  auto* steps = reinterpret_cast<BoundStep*>(arena.take(step_count * sizeof(BoundStep)));

  // Params come before the regions that the ops' tensors live in, but tensors must have their addresses
  // when params are filled: so count the params first, by binding without addresses.
  size_t params_bytes = 0, scratch_bytes = 0;
  OXB_TRY(bind_steps(*session, nullptr, nullptr, &params_bytes, &scratch_bytes, error));
  std::byte* params = arena.take(params_bytes);
  const bool has_pool = elder == nullptr && used.threads > 1;
  std::byte* pool_at = has_pool ? arena.take(ThreadPool::bytes(used.threads)) : nullptr;
  memory->session = arena.used();

  const size_t header_bytes =
      round_up(sizeof(StateHeader) + ring_count * sizeof(RingPosition), kTensorAlignment);
  const auto shared_bytes = static_cast<size_t>(plan.shared_states());
  const size_t state_bytes =
      header_bytes + static_cast<size_t>(plan.states()) - (elder == nullptr ? 0 : shared_bytes);
  const auto activation_bytes = static_cast<size_t>(plan.activations());
  std::byte* state = nullptr;
  if (vulkan == nullptr) {
    state = arena.take(state_bytes);
    memory->states = arena.used() - memory->session;
  } else {
    const VulkanSizes sizes = {state_bytes, header_bytes, activation_bytes};
    OXB_TRY(count_vulkan(*vulkan, model, sizes, &memory->device, error));
    if (base != nullptr) {
      VulkanAddresses addresses;
      OXB_TRY(place_vulkan(*vulkan, model, sizes, &addresses, error));
      state = addresses.states;
      session->activations = addresses.activations;
    }
  }
  if (elder == nullptr) {
    if (vulkan == nullptr) session->activations = arena.take(activation_bytes);
    memory->activations = arena.used() - memory->session - memory->states;
    session->scratch = arena.take(scratch_bytes);
    memory->scratch = round_up(scratch_bytes, kTensorAlignment);
  }
  memory->total = arena.used() + kTensorAlignment - 1;
  if (base == nullptr) return Status::kOk;

  session->state = {state, state_bytes};
  session->header = reinterpret_cast<StateHeader*>(state);
  session->rings = {reinterpret_cast<RingPosition*>(state + sizeof(StateHeader)), ring_count};
  if (elder == nullptr) {
    session->shared_states = state + header_bytes;
    session->own_states = session->shared_states + shared_bytes;
    std::memset(session->activations, 0, activation_bytes);
    std::memset(session->scratch, 0, scratch_bytes);
  } else {
    session->shared_states = elder->shared_states;
    session->own_states = state + header_bytes;
    session->activations = elder->activations;
    session->scratch = elder->scratch;
    session->pool = elder->pool;
  }
  Status status = bind_steps(*session, params, steps, &params_bytes, &scratch_bytes, error);
  if (status == Status::kOk && has_pool) {
    status = ThreadPool::create(pool_at, used.threads, error, &session->pool, used.cpu_mask);
  }
  if (status == Status::kOk && vulkan != nullptr) {
    status = record_vulkan(*vulkan, *session, error);
    if (status != Status::kOk && has_pool) ThreadPool::destroy(session->pool);
  }
  if (status != Status::kOk) {
    destroy_owned(*session);
    return status;
  }
  session->steps = {steps, step_count};
  reset_session(*session);
  *out = session;
  return Status::kOk;
}

Status lay_out(const Model& model, const SessionOptions& options, std::byte* base, Session** out,
               SessionMemory* memory, Error* error) {
  VulkanBackend* vulkan = nullptr;
  if (options.backend == Backend::kVulkan && options.sibling == nullptr) {
    OXB_TRY(open_vulkan(&vulkan, error));
  }
  const Status status = lay_out_on(vulkan, model, options, base, out, memory, error);
  if (base == nullptr || status != Status::kOk) close_vulkan(vulkan);
  return status;
}

uint64_t now_nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

const InputValues* find_input(std::span<const InputValues> inputs, std::string_view name) {
  for (const InputValues& input : inputs) {
    if (input.name == name) return &input;
  }
  return nullptr;
}

/// Inputs of an entry point: the main one, then the others.
size_t input_count(const schema::EntryPoint& entry) {
  return 1 + (entry.inputs() == nullptr ? 0 : entry.inputs()->size());
}
uint32_t input_tensor(const schema::EntryPoint& entry, size_t index) {
  return index == 0 ? entry.tokens() : entry.inputs()->Get(static_cast<uint32_t>(index - 1));
}

Status check_values(const schema::Tensor& tensor, const InputValues& input, Error* error) {
  if (tensor.type() != schema::DataType::I32) return Status::kOk;
  const auto* values = static_cast<const int32_t*>(input.values);
  for (size_t i = 0; i < input.rows; ++i) {
    if (values[i] < 0 || static_cast<uint32_t>(values[i]) >= tensor.limit()) {
      return fail(error, Status::kInvalidArgument, "%.60s: %d at position %zu is not in 0..%u",
                  input.name, values[i], i, tensor.limit() - 1);
    }
  }
  return Status::kOk;
}

const schema::Tensor* find_tensor(const schema::Model& graph, const schema::EntryPoint& entry,
                                  std::string_view name) {
  for (size_t i = 0; i < input_count(entry); ++i) {
    const schema::Tensor* tensor = graph.tensors()->Get(input_tensor(entry, i));
    if (tensor->name()->string_view() == name) return tensor;
  }
  return nullptr;
}

Status check_inputs(const schema::Model& graph, const schema::EntryPoint& entry,
                    std::span<const InputValues> inputs, Error* error) {
  for (size_t i = 0; i < input_count(entry); ++i) {
    const schema::Tensor& tensor = *graph.tensors()->Get(input_tensor(entry, i));
    const bool needed = i == 0 || tensor.required();
    if (needed && find_input(inputs, tensor.name()->c_str()) == nullptr) {
      return fail(error, Status::kInvalidArgument, "'%.40s' needs the input '%.60s'",
                  entry.name()->c_str(), tensor.name()->c_str());
    }
  }
  const uint32_t most = graph.tensors()->Get(entry.tokens())->rows();
  for (const InputValues& input : inputs) {
    const schema::Tensor* tensor = find_tensor(graph, entry, input.name);
    if (tensor == nullptr || find_input(inputs, input.name) != &input) {
      return fail(error, Status::kInvalidArgument, "input '%.60s' of '%.40s' %s", input.name,
                  entry.name()->c_str(), tensor == nullptr ? "does not exist" : "is given twice");
    }
    if (input.rows != inputs[0].rows || input.values == nullptr) {
      return fail(error, Status::kInvalidArgument, "input '%.60s' has %zu rows, '%.60s' %zu",
                  input.name, input.values == nullptr ? 0 : input.rows, inputs[0].name,
                  inputs[0].rows);
    }
    if (input.rows == 0 || input.rows > most) {
      return fail(error, Status::kInvalidArgument, "a run takes 1 to %u tokens, not %zu", most,
                  input.rows);
    }
    OXB_TRY(check_values(*tensor, input, error));
  }
  return Status::kOk;
}

Status check_output(const schema::Model& graph, const schema::EntryPoint& entry, size_t tokens,
                    const float* output, size_t rows, Error* error) {
  const schema::Tensor& tensor = *graph.tensors()->Get(entry.logits());
  if (tensor.rows_symbol() < 0) {
    if (rows == tensor.rows() && output != nullptr) return Status::kOk;
    return fail(error, Status::kInvalidArgument,
                "%zu rows of '%.40s' wanted%s; a run gives exactly %u", rows,
                tensor.name()->c_str(), output == nullptr ? ", with nowhere to put them" : "",
                tensor.rows());
  }
  if (rows > tokens || rows > tensor.rows() || (rows > 0 && output == nullptr)) {
    return fail(error, Status::kInvalidArgument, "%zu rows of %.40s wanted for %zu tokens, %s",
                rows, tensor.name()->c_str(), tokens,
                output == nullptr ? "with nowhere to put them" : "at most one each");
  }
  return Status::kOk;
}

Status check_arguments(const Session& session, const schema::EntryPoint& entry,
                       std::span<const InputValues> inputs, const float* output, size_t rows,
                       Error* error) {
  const schema::Model& graph = *session.model->graph;
  if (session.needs_reset && !entry.starts()) {
    return fail(error, Status::kNeedsReset,
                "an earlier run failed half-way: reset the session, load a state or rewind");
  }
  if (entry.starts() && session.elder != nullptr) {
    return fail(error, Status::kInvalidArgument,
                "'%.40s' changes what siblings share: run it in the session they are siblings of",
                entry.name()->c_str());
  }
  OXB_TRY(check_inputs(graph, entry, inputs, error));
  const size_t tokens = inputs[0].rows;
  OXB_TRY(check_output(graph, entry, tokens, output, rows, error));
  const uint64_t position = entry.starts() ? 0 : session.header->position;
  if (entry.capacity() != 0 &&
      (position > entry.capacity() || tokens > entry.capacity() - position)) {
    return fail(error, Status::kStreamFull,
                "the model takes %u tokens and has had %llu, %zu more do not fit: reset it, or "
                "convert it with --ring for an endless stream",
                entry.capacity(), static_cast<unsigned long long>(position), tokens);
  }
  return Status::kOk;
}

void place_inputs(Session& session, const schema::EntryPoint& entry,
                  std::span<const InputValues> inputs) {
  const size_t rows = inputs[0].rows;
  for (size_t i = 0; i < input_count(entry); ++i) {
    const schema::Tensor& tensor = *session.model->graph->tensors()->Get(input_tensor(entry, i));
    std::byte* place = session.activations + tensor.offset();
    if (const InputValues* input = find_input(inputs, tensor.name()->c_str()); input != nullptr) {
      std::memcpy(place, input->values, rows * tensor.width() * 4);
    } else {
      auto* values = reinterpret_cast<int32_t*>(place);
      std::fill(values, values + rows, static_cast<int32_t>(tensor.default_value()));
    }
  }
}

Status run_steps(Session& session, uint32_t entry, RunContext& context) {
  for (size_t i = entry == 0 ? 0 : session.entry_ends[entry - 1]; i < session.entry_ends[entry];
       ++i) {
    const BoundStep& step = session.steps[i];
    const uint64_t start = session.profile == nullptr ? 0 : now_nanoseconds();
    OXB_TRY(step.run(context, step.params));
    if (session.profile != nullptr) {
      session.profile(session.profile_context, static_cast<uint32_t>(i), step.op, step.output,
                      now_nanoseconds() - start);
    }
  }
  return Status::kOk;
}

/// Exchanges the stream of a sibling with the one that its elder's device has.
Status exchange_streams(Session& sibling, Error* error) {
  const Session& elder = *sibling.elder;
  OXB_TRY(vulkan_to_host(*elder.vulkan, error));
  const schema::MemoryPlan& plan = *sibling.model->graph->plan();
  const auto bytes = static_cast<size_t>(plan.states() - plan.shared_states());
  std::swap_ranges(sibling.own_states, sibling.own_states + bytes, elder.own_states);
  vulkan_states_changed(*elder.vulkan);
  return Status::kOk;
}

/// A sibling of a session on a device has its stream in its arena, but for the time of a run: the streams were
/// exchanged, and are again.
Status run_on_elders_device(Session& sibling, uint32_t entry, RunContext& context) {
  const Status status = run_vulkan(*sibling.elder, entry, context);
  const Status back = exchange_streams(sibling, status == Status::kOk ? context.error : nullptr);
  if (back != Status::kOk) lose_vulkan(*sibling.elder->vulkan);  // The elder's stream is not there.
  return status != Status::kOk ? status : back;
}

/// What the rings of a fresh stream hold.
void fill_initial_rows(Session& session) {
  const schema::Model& graph = *session.model->graph;
  for (uint32_t i = 0; i < session.rings.size(); ++i) {
    const schema::Ring& ring = *graph.rings()->Get(i);
    if (ring.shared() && session.elder != nullptr) continue;
    session.rings[i].count = ring.initial_rows();
  }
  for (uint32_t i = 0; i < graph.tensors()->size(); ++i) {
    const int32_t initial = graph.tensors()->Get(i)->initial();
    if (initial < 0) continue;
    Tensor state = session_tensor(session, i);
    const Tensor row = session_tensor(session, static_cast<uint32_t>(initial));
    for (uint32_t r = 0; r < session.rings[static_cast<size_t>(state.ring)].count; ++r) {
      if (state.type == DataType::kF32) {
        std::memcpy(state.f32(r), row.f32(), state.stride());
      } else {
        quantize_row(row.f32(), state.width, state.scale_groups, state.i8(r), state.row_scales(r));
      }
    }
  }
}

}  // namespace

Status count_session_memory(const Model& model, const SessionOptions& options,
                            SessionMemory* memory, Error* error) {
  return lay_out(model, options, nullptr, nullptr, memory, error);
}

namespace {

Status place_session(const Model& model, const SessionOptions& options, std::span<std::byte> arena,
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

}  // namespace

Status create_session(const Model& model, const SessionOptions& options, std::span<std::byte> arena,
                      Session** session, Error* error) {
  // Held meanwhile, or counting and placing would each open the device.
  VulkanBackend* device = nullptr;
  if (options.backend == Backend::kVulkan && options.sibling == nullptr) {
    OXB_TRY(open_vulkan(&device, error));
    const Status status = read_vulkan_cache(*device, options.pipeline_cache, error);
    if (status != Status::kOk) {
      close_vulkan(device);
      return status;
    }
  }
  const Status status = place_session(model, options, arena, session, error);
  close_vulkan(device);
  return status;
}

size_t backend_bytes(const Session& session) {
  size_t bytes = 0;
  for (const OwnedObject* owned = session.owned; owned != nullptr; owned = owned->next) {
    bytes += owned->bytes;
  }
  if (session.vulkan != nullptr) bytes += vulkan_bytes(*session.vulkan);
  return bytes;
}

void destroy_session(Session* session) {
  destroy_owned(*session);
  close_vulkan(session->vulkan);
  if (session->pool != nullptr && session->elder == nullptr) ThreadPool::destroy(session->pool);
}

Status run_session(Session& session, uint32_t entry_index, std::span<const InputValues> inputs,
                   float* output, size_t output_rows, Error* error) {
  const Model& model = *session.model;
  const schema::EntryPoint& entry = model.entry(entry_index);
  OXB_TRY(check_arguments(session, entry, inputs, output, output_rows, error));
  if (entry.starts()) reset_session(session);
  const auto& tensors = *model.graph->tensors();
  const auto tokens = static_cast<uint32_t>(inputs[0].rows);
  std::memset(session.symbols, 0, sizeof(session.symbols));
  session.symbols[tensors.Get(entry.tokens())->rows_symbol()] = tokens;
  if (const int32_t symbol = tensors.Get(entry.logits())->rows_symbol(); symbol >= 0) {
    session.symbols[symbol] = static_cast<uint32_t>(output_rows);
  }
  const bool borrows_device = session.elder != nullptr && session.elder->vulkan != nullptr;
  // Before inputs are placed: it may copy over them.
  if (borrows_device) OXB_TRY(exchange_streams(session, error));
  place_inputs(session, entry, inputs);
  if (session.elder != nullptr) {
    for (uint32_t i = 0; i < session.rings.size(); ++i) {
      if (model.graph->rings()->Get(i)->shared()) session.rings[i] = session.elder->rings[i];
    }
  }

  RunContext context;
  context.symbols = session.symbols;
  context.rings = session.rings.data();
  context.scratch = session.scratch;
  context.pool = session.pool;
  context.error = error;
  context.position = session.header->position;
  context.caller_output = output;
  session.needs_reset = true;
  session.last_entry = entry_index;
  if (session.vulkan != nullptr) {
    OXB_TRY(run_vulkan(session, entry_index, context));
  } else if (borrows_device) {
    OXB_TRY(run_on_elders_device(session, entry_index, context));
  } else {
    OXB_TRY(run_steps(session, entry_index, context));
  }
  session.needs_reset = false;
  if (!entry.starts()) session.header->position += tokens;
  return Status::kOk;
}

void reset_session(Session& session) {
  *session.header = {};
  std::fill(session.rings.begin(), session.rings.end(), RingPosition{});
  fill_initial_rows(session);
  const auto& tensors = *session.model->graph->tensors();
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    Tensor state;
    if (!own_state(session, i, &state) || tensors.Get(i)->initial() >= 0) continue;
    // Nobody reads rows that a ring does not hold yet, and most of a large memory would be touched for
    // nothing. Numbers that select something must be right even in a file that breaks this.
    const bool by_ring = state.ring >= 0 && state.type != DataType::kI32;
    const size_t rows = by_ring ? session.rings[static_cast<size_t>(state.ring)].count : state.rows;
    std::memset(state.data, 0, rows * state.stride());
    if (state.scales != nullptr) {
      std::memset(state.scales, 0, rows * state.scale_groups * sizeof(float));
    }
  }
  if (session.vulkan != nullptr) vulkan_states_changed(*session.vulkan);
  session.needs_reset = false;
}

bool own_state(const Session& session, uint32_t index, Tensor* state) {
  const schema::Tensor& tensor = *session.model->graph->tensors()->Get(index);
  if (tensor.kind() != schema::TensorKind::State) return false;
  const bool shared = tensor.offset() < session.model->graph->plan()->shared_states();
  if (shared && session.elder != nullptr) return false;
  *state = session_tensor(session, index);
  return true;
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
  tensor.rows_symbol = static_cast<int16_t>(from.rows_symbol());
  tensor.ring = from.ring();
  if (from.ring() >= 0) {
    tensor.pinned =
        session.model->graph->rings()->Get(static_cast<uint32_t>(from.ring()))->pinned();
  }
  tensor.limit = from.limit();
  tensor.static_scale = from.static_scale().value_or(0.0f);
  std::byte* base = nullptr;
  uint64_t offset = from.offset();
  switch (from.kind()) {
    case schema::TensorKind::Weight:
      // Ops get one view type for all; that weights are read-only is checked when the file is opened.
      base = const_cast<std::byte*>(session.model->data);
      break;
    case schema::TensorKind::State: {
      const uint64_t shared = session.model->graph->plan()->shared_states();
      base = from.offset() < shared ? session.shared_states : session.own_states;
      if (from.offset() >= shared) offset -= shared;
      break;
    }
    case schema::TensorKind::Activation:
    case schema::TensorKind::Input:
      base = session.activations;
      break;
    case schema::TensorKind::Output:
      break;
  }
  if (base == nullptr) return tensor;
  tensor.data = base + offset;
  if (tensor.scale_groups != 0) {
    tensor.scales = reinterpret_cast<float*>(
        tensor.data + element_bytes(tensor.type, tensor.layout, tensor.rows, tensor.width));
  }
  return tensor;
}

}  // namespace oxbow

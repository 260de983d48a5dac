#include "runtime/session/run.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/session/draft.h"
#include "runtime/session/host_view.h"
#include "runtime/session/state.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

const InputValues* find_input(std::span<const InputValues> inputs, std::string_view name) {
  for (const InputValues& input : inputs) {
    if (input.name == name) return &input;
  }
  return nullptr;
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

/// The first of the inputs given whose rows this symbol counts; there is one.
const InputValues& first_of_symbol(const schema::Model& graph, const schema::EntryPoint& entry,
                                   std::span<const InputValues> inputs, int32_t symbol) {
  return *std::find_if(inputs.begin(), inputs.end(), [&](const InputValues& input) {
    const schema::Tensor* tensor = find_tensor(graph, entry, input.name);
    return tensor != nullptr && tensor->rows_symbol() == symbol;
  });
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
  const schema::Tensor& main = *graph.tensors()->Get(entry.tokens());
  for (const InputValues& input : inputs) {
    const schema::Tensor* tensor = find_tensor(graph, entry, input.name);
    if (tensor == nullptr || find_input(inputs, input.name) != &input) {
      return fail(error, Status::kInvalidArgument, "input '%.60s' of '%.40s' %s", input.name,
                  entry.name()->c_str(), tensor == nullptr ? "does not exist" : "is given twice");
    }
    const InputValues& first = first_of_symbol(graph, entry, inputs, tensor->rows_symbol());
    if (input.rows != first.rows || (input.values == nullptr && input.rows != 0)) {
      return fail(error, Status::kInvalidArgument, "input '%.60s' has %zu rows, '%.60s' %zu",
                  input.name, input.values == nullptr ? 0 : input.rows, first.name, first.rows);
    }
    if (tensor->rows_symbol() == main.rows_symbol()) {
      if (input.rows == 0 || input.rows > main.rows()) {
        return fail(error, Status::kInvalidArgument, "a run takes 1 to %u tokens, not %zu",
                    main.rows(), input.rows);
      }
    } else if (input.rows > tensor->rows()) {
      return fail(error, Status::kInvalidArgument, "input '%.60s' has %zu rows, at most %u",
                  input.name, input.rows, tensor->rows());
    }
    OXB_TRY(check_values(*tensor, input, error));
  }
  return Status::kOk;
}

/// How many tokens this run has. Once the inputs were checked.
size_t main_rows(const schema::Model& graph, const schema::EntryPoint& entry,
                 std::span<const InputValues> inputs) {
  return find_input(inputs, graph.tensors()->Get(entry.tokens())->name()->c_str())->rows;
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

}  // namespace

Status check_run(const Session& session, uint32_t entry_index, std::span<const InputValues> inputs,
                 const float* output, size_t rows, Error* error) {
  const schema::Model& graph = *session.model->graph;
  const schema::EntryPoint& entry = session.model->entry(entry_index);
  if (session.needs_reset && !entry.starts()) {
    return fail(error, Status::kNeedsReset,
                "an earlier run failed half-way: reset the session, load a state or rewind");
  }
  const Session& owner = session.lender == nullptr ? session : *session.lender;
  if (owner.shared_needs_reset && !entry.starts()) {
    return fail(error, Status::kNeedsReset,
                "what the streams share was left half-way: encode again, or reset the lender");
  }
  if (entry.starts() && session.lender != nullptr) {
    return fail(error, Status::kInvalidArgument,
                "'%.40s' changes what the lender shares: run it in the lender",
                entry.name()->c_str());
  }
  OXB_TRY(check_inputs(graph, entry, inputs, error));
  const size_t tokens = main_rows(graph, entry, inputs);
  OXB_TRY(check_output(graph, entry, tokens, output, rows, error));
  const uint64_t position = entry.starts() ? 0 : session.header->position;
  if (entry.capacity() != 0 &&
      (position > entry.capacity() || tokens > entry.capacity() - position)) {
    return fail(error, Status::kStreamFull,
                "the model takes %u tokens and has had %llu, %zu more do not fit: reset it, or "
                "convert it with --ring for an endless stream",
                entry.capacity(), static_cast<unsigned long long>(position), tokens);
  }
  if (session.draft != nullptr && !entry.starts()) {
    return check_draft(session, entry_index, static_cast<uint32_t>(tokens), error);
  }
  return Status::kOk;
}

void place_inputs(Session& session, uint32_t entry_index, std::span<const InputValues> inputs) {
  const schema::EntryPoint& entry = session.model->entry(entry_index);
  for (size_t i = 0; i < input_count(entry); ++i) {
    const schema::Tensor& tensor = *session.model->graph->tensors()->Get(input_tensor(entry, i));
    const size_t rows = session.symbols[static_cast<size_t>(tensor.rows_symbol())];
    if (rows == 0) continue;
    std::byte* place = session.activations + tensor.offset();
    if (const InputValues* input = find_input(inputs, tensor.name()->c_str()); input != nullptr) {
      std::memcpy(place, input->values, rows * tensor.width() * 4);
    } else {
      auto* values = reinterpret_cast<int32_t*>(place);
      std::fill(values, values + rows, static_cast<int32_t>(tensor.default_value()));
    }
  }
}

bool take_cancel(const Session& session) {
  const auto take = [](std::atomic<bool>& flag) {
    return flag.load(std::memory_order_relaxed) && flag.exchange(false, std::memory_order_acquire);
  };
  return take(session.cancelled) || (session.lender != nullptr && take(session.lender->cancelled));
}

Status say_cancelled(Error* error) {
  return fail(error, Status::kCancelled, "the run was cancelled");
}

namespace {

/// Says where a step failed.
Status at_step(Status status, const BoundStep& step, uint32_t index, Error* error) {
  if (status == Status::kOk || error == nullptr) return status;
  error->set_code(status);
  error->set_step(static_cast<int32_t>(index), step.op);
  return status;
}

}  // namespace

Status run_on_cpu(const Session& session, const BoundStep& step, uint32_t index,
                  RunContext& context) {
  const uint64_t start = session.profile == nullptr ? 0 : now_nanoseconds();
  OXB_TRY(at_step(step.run(context, step.params), step, index, context.error));
  if (session.profile != nullptr) {
    session.profile(session.profile_context, index, step.op, step.output,
                    now_nanoseconds() - start);
  }
  return Status::kOk;
}

namespace {

Status run_range(Session& session, const Device& device, uint32_t entry, uint32_t first,
                 uint32_t end, RunContext& context) {
  DeviceRange range = {entry, first, end};
  if (session.profile != nullptr) {
    range.timed_context = &session;
    range.timed = [](void* timed, uint32_t index, uint64_t nanoseconds) {
      const Session& to = *static_cast<const Session*>(timed);
      const BoundStep& step = to.steps[index];
      to.profile(to.profile_context, index, step.op, step.output, nanoseconds);
    };
  }
  const Status status = device.driver->run(device.self, range, context);
  return first == end ? status : at_step(status, session.steps[first], first, context.error);
}

/// Tokens of a run from which on pages of the file are let go of once a step has read them: mapping them again takes
/// microseconds where the products with so many rows take many times as long, and a long text then needs the memory of
/// one layer's weights and not of all.
constexpr uint32_t kTokensToLetGo = 1024;

void let_go_of_weights(const Session& session, const schema::Step& step) {
  for (uint32_t i = 0; i < step.inputs()->size(); ++i) {
    const Tensor tensor = session_tensor(session, step.inputs()->Get(i));
    const schema::Tensor& from = *session.model->graph->tensors()->Get(step.inputs()->Get(i));
    if (from.kind() != schema::TensorKind::Weight) continue;
    release_pages(*session.model, tensor.data, static_cast<size_t>(from.bytes()));
  }
}

/// The steps of `bound`, which is the session itself or the one whose device it uses.
Status run_steps(Session& session, const Session& bound, uint32_t entry, bool lets_go,
                 RunContext& context) {
  const uint32_t begin = entry == 0 ? 0 : bound.entry_ends[entry - 1];
  const uint32_t end = bound.entry_ends[entry];
  if (bound.device) OXB_TRY(hand_to_device(bound, context.error));
  for (uint32_t i = begin;;) {
    const uint32_t first = i;
    while (i < end && bound.steps[i].on_device()) ++i;
    if (first > begin && take_cancel(session)) return say_cancelled(context.error);
    if (bound.device && (i > first || first == begin || first == end)) {
      OXB_TRY(run_range(session, bound.device, entry, first, i, context));
    }
    if (i == end) return Status::kOk;
    for (; i < end && !bound.steps[i].on_device(); ++i) {
      if (i > begin && take_cancel(session)) return say_cancelled(context.error);
      if (session.draft != nullptr) log_step(session, i - begin);
      OXB_TRY(run_on_cpu(session, bound.steps[i], i, context));
      if (lets_go) let_go_of_weights(session, *session.model->entry(entry).steps()->Get(i - begin));
    }
  }
}

/// Exchanges the stream of a borrower with the one that its lender has on its device.
Status exchange_streams(const Session& borrower, Error* error) {
  HostView own, lenders;
  OXB_TRY(HostView::change(borrower, &own, error));
  OXB_TRY(HostView::change(*borrower.lender, &lenders, error));
  const std::span<std::byte> bytes = own.own_states();
  std::swap_ranges(bytes.begin(), bytes.end(), lenders.own_states().begin());
  return Status::kOk;
}

/// A borrower from a session on a device has its stream in its arena, but for the time of a run: the streams were
/// exchanged, and are again.
Status run_on_lenders_device(Session& borrower, uint32_t entry, RunContext& context) {
  const Device& device = borrower.lender->device;
  const Status status = run_steps(borrower, *borrower.lender, entry, false, context);
  const Status back = exchange_streams(borrower, status == Status::kOk ? context.error : nullptr);
  if (back != Status::kOk) device.driver->lose(device.self);  // The lender's stream is not there.
  return status != Status::kOk ? status : back;
}

}  // namespace

void begin_run(Session& session, uint32_t entry_index, std::span<const InputValues> inputs,
               size_t output_rows) {
  const schema::Model& graph = *session.model->graph;
  const schema::EntryPoint& entry = session.model->entry(entry_index);
  const auto set_symbol = [&](const schema::Tensor& tensor, size_t rows) {
    if (tensor.rows_symbol() < 0) return;
    session.symbols[static_cast<size_t>(tensor.rows_symbol())] = static_cast<uint32_t>(rows);
  };
  std::fill(session.symbols.begin(), session.symbols.end(), 0);
  std::fill(session.symbols_set.begin(), session.symbols_set.end(), false);
  for (const InputValues& input : inputs) {
    set_symbol(*find_tensor(graph, entry, input.name), input.rows);
  }
  set_symbol(*graph.tensors()->Get(entry.logits()), output_rows);
  if (session.lender != nullptr) {
    for (uint32_t i = 0; i < session.rings.size(); ++i) {
      if (graph.rings()->Get(i)->shared()) session.rings[i] = session.lender->rings[i];
    }
  }
  session.needs_reset = true;
  session.shared_needs_reset |= entry.starts();
  session.last_entry = entry_index;
}

RunContext make_context(const Session& session, float* output, Error* error) {
  RunContext context;
  context.symbols = session.symbols.data();
  context.symbols_set = session.symbols_set.data();
  context.rings = session.rings.data();
  context.scratch = session.scratch;
  context.pool = session.pool;
  context.error = error;
  context.position = session.header->position;
  context.caller_output = output;
  return context;
}

void end_run(Session& session, uint32_t entry_index, uint32_t tokens) {
  const bool starts = session.model->entry(entry_index).starts();
  session.needs_reset = false;
  if (session.draft != nullptr) end_draft_run(session, tokens);
  if (starts) session.shared_needs_reset = false;
  if (!starts) session.header->position += tokens;
}

Status run_session(Session& session, uint32_t entry_index, std::span<const InputValues> inputs,
                   float* output, size_t output_rows, Error* error) {
  const Model& model = *session.model;
  const schema::EntryPoint& entry = model.entry(entry_index);
  OXB_TRY(check_run(session, entry_index, inputs, output, output_rows, error));
  if (take_cancel(session)) return say_cancelled(error);
  const auto tokens = static_cast<uint32_t>(main_rows(*model.graph, entry, inputs));
  if (entry.starts()) {
    reset_session(session);
  } else if (session.draft != nullptr) {
    session.draft->next = 0;
  }
  const bool borrows_device = session.lender != nullptr && session.lender->device;
  // Before inputs are placed: it may copy over them.
  if (borrows_device) OXB_TRY(exchange_streams(session, error));
  begin_run(session, entry_index, inputs, output_rows);
  place_inputs(session, entry_index, inputs);
  RunContext context = make_context(session, output, error);
  if (borrows_device) {
    OXB_TRY(run_on_lenders_device(session, entry_index, context));
  } else {
    // A stream that goes on will need them again at once.
    const bool lets_go = entry.starts() && tokens >= kTokensToLetGo && !session.options.warm_up;
    OXB_TRY(run_steps(session, session, entry_index, lets_go, context));
  }
  end_run(session, entry_index, tokens);
  return Status::kOk;
}

}  // namespace oxbow

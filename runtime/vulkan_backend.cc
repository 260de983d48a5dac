#include "runtime/vulkan_backend.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/base/checked.h"
#include "runtime/session.h"
#include "runtime/vulkan/program.h"
#include "runtime/vulkan_steps.h"
#include "schema/model_generated.h"

namespace oxbow {

struct VulkanBackend {
  vulkan::Context* context = nullptr;
  VulkanStepList list;
  vulkan::Program program;
  /// Staged: which copy of the states is the latest. Both false: they are equal.
  bool host_is_newer = false;
  bool device_is_newer = false;
};

namespace {

Status memory_sizes(const VulkanBackend& backend, const Model& model, const VulkanSizes& sizes,
                    vulkan::MemorySizes* wanted, Error* error) {
  uint64_t output = 0;
  for (size_t e = 0; e < model.entry_count(); ++e) {
    const schema::Tensor& logits = *model.graph->tensors()->Get(model.entry(e).logits());
    uint64_t bytes = 0;
    if (!tensor_bytes(static_cast<DataType>(logits.type()), static_cast<Layout>(logits.layout()),
                      logits.rows(), logits.width(), logits.scale_groups(), &bytes)) {
      return fail(error, Status::kFileCorrupt, "the output '%.60s' is too large",
                  logits.name()->c_str());
    }
    output = std::max(output, bytes);
  }
  uint64_t aligned_output = 0, scratch = 0, all = 0;
  if (!checked_align(output, kTensorAlignment, &aligned_output) ||
      !checked_align(backend.list.scratch_bytes, kTensorAlignment, &scratch) ||
      !checked_add(aligned_output, scratch, &all) ||
      !checked_add(all, sizes.activations + kTensorAlignment, &all) || all > SIZE_MAX / 2) {
    return fail(error, Status::kOutOfMemory, "the activations do not fit in memory");
  }
  wanted->weights = model.data_bytes;
  wanted->states = sizes.states;
  wanted->state_header = sizes.state_header;
  wanted->activations = round_up(sizes.activations, kTensorAlignment);
  wanted->output = static_cast<size_t>(aligned_output);
  wanted->scratch = static_cast<size_t>(scratch);
  wanted->slots = backend.list.dispatches.size() * sizeof(VulkanSlot);
  return Status::kOk;
}

vulkan::Range input_range(const schema::Tensor& tensor) {
  return {vulkan::Region::kActivations, tensor.offset(), tensor.bytes()};
}

uint64_t now_nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

Status run_segment(const Session& session, const vulkan::Program::Segment& segment, Error* error) {
  vulkan::Program& program = session.vulkan->program;
  const bool timed = session.profile != nullptr;
  OXB_TRY(program.run(segment, timed, error));
  if (!timed) return Status::kOk;
  for (uint32_t i = segment.first_step; i < segment.end_step; ++i) {
    uint64_t nanoseconds = 0;
    OXB_TRY(program.step_nanoseconds(i, &nanoseconds, error));
    const BoundStep& step = session.steps[i];
    session.profile(session.profile_context, i, step.op, step.output, nanoseconds);
  }
  return Status::kOk;
}

Status run_on_cpu(const Session& session, uint32_t index, RunContext& context) {
  const BoundStep& step = session.steps[index];
  const uint64_t start = session.profile == nullptr ? 0 : now_nanoseconds();
  OXB_TRY(step.run(context, step.params));
  if (session.profile != nullptr) {
    session.profile(session.profile_context, index, step.op, step.output,
                    now_nanoseconds() - start);
  }
  return Status::kOk;
}

}  // namespace

Status open_vulkan(VulkanBackend** backend, Error* error) {
  auto* made = new (std::nothrow) VulkanBackend();
  if (made == nullptr) return fail(error, Status::kOutOfMemory, "no memory for a device");
  const Status status = vulkan::acquire_context(&made->context, error);
  if (status != Status::kOk) {
    delete made;
    return status;
  }
  *backend = made;
  return Status::kOk;
}

void close_vulkan(VulkanBackend* backend) {
  if (backend == nullptr) return;
  backend->program.close();
  vulkan::release_context(backend->context);
  delete backend;
}

Status bind_vulkan_step(VulkanBackend& backend, const OpDef& op, BindContext& context,
                        const VulkanPlaces& places, bool* on_device, Error* error) {
  OXB_TRY(add_vulkan_step(context, places, backend.context->device.features, op.bind_vulkan,
                          &backend.list, error));
  *on_device = backend.list.steps[backend.list.steps.size() - 1].dispatch_count != 0;
  return Status::kOk;
}

Status count_vulkan(VulkanBackend& backend, const Model& model, const VulkanSizes& sizes,
                    size_t* bytes, Error* error) {
  vulkan::MemorySizes wanted;
  OXB_TRY(memory_sizes(backend, model, sizes, &wanted, error));
  return vulkan::Memory::measure(backend.context->device, wanted, bytes, error);
}

Status place_vulkan(VulkanBackend& backend, const Model& model, const VulkanSizes& sizes,
                    VulkanAddresses* addresses, Error* error) {
  vulkan::MemorySizes wanted;
  OXB_TRY(memory_sizes(backend, model, sizes, &wanted, error));
  OXB_TRY(backend.program.open(*backend.context, wanted, error));
  backend.list.clear();
  addresses->states = backend.program.memory().host_states();
  addresses->activations = backend.program.memory().host_activations();
  return Status::kOk;
}

Status record_vulkan(VulkanBackend& backend, const Session& session, Error* error) {
  const Model& model = *session.model;
  OXB_TRY(backend.program.copy_weights({model.data, model.data_bytes}, error));
  vulkan::Array<vulkan::Range> inputs;
  uint32_t input_ends[kMaxEntries] = {};
  for (size_t e = 0; e < model.entry_count(); ++e) {
    const schema::EntryPoint& entry = model.entry(e);
    bool pushed = inputs.push(input_range(*model.graph->tensors()->Get(entry.tokens())));
    const uint32_t others = entry.inputs() == nullptr ? 0 : entry.inputs()->size();
    for (uint32_t i = 0; i < others; ++i) {
      const uint32_t tensor = entry.inputs()->Get(i);
      pushed = pushed && inputs.push(input_range(*model.graph->tensors()->Get(tensor)));
    }
    if (!pushed) return fail(error, Status::kOutOfMemory, "no memory for the list of inputs");
    input_ends[e] = static_cast<uint32_t>(inputs.size());
  }
  const VulkanStepList& list = backend.list;
  vulkan::ProgramSpec spec;
  spec.steps = {list.steps.begin(), list.steps.end()};
  spec.dispatches = {list.dispatches.begin(), list.dispatches.end()};
  spec.touched = {list.touched.begin(), list.touched.end()};
  spec.entry_ends = {session.entry_ends, model.entry_count()};
  spec.entry_inputs = {inputs.begin(), inputs.end()};
  spec.entry_input_ends = {input_ends, model.entry_count()};
  return backend.program.record(spec, error);
}

Status run_vulkan(const Session& session, uint32_t entry, RunContext& context) {
  VulkanBackend& backend = *session.vulkan;
  vulkan::Program& program = backend.program;
  if (backend.host_is_newer) {
    OXB_TRY(program.upload(context.error));
    backend.host_is_newer = false;
  }
  backend.device_is_newer = true;
  const std::span<const vulkan::Program::Segment> segments = program.segments(entry);
  size_t next = 0;
  const auto run_due = [&](uint32_t step) {
    for (; next < segments.size() && segments[next].end_step <= step; ++next) {
      OXB_TRY(run_segment(session, segments[next], context.error));
    }
    return Status::kOk;
  };
  bool writes_output = false;
  const uint32_t begin = entry == 0 ? 0 : session.entry_ends[entry - 1];
  const uint32_t end = session.entry_ends[entry];
  for (uint32_t i = begin; i < end; ++i) {
    const vulkan::Step& step = backend.list.steps[i];
    if (step.dispatch_count == 0) {
      OXB_TRY(run_due(i));
      OXB_TRY(run_on_cpu(session, i, context));
      continue;
    }
    const VulkanStepList::Host& host = backend.list.host[i];
    writes_output |= host.writes_output;
    const std::span slots(program.memory().slot(step.first_dispatch), step.dispatch_count);
    OXB_TRY(host.prepare(context, host.params, slots));
    if (host.finish != nullptr) {
      OXB_TRY(run_due(i + 1));
      OXB_TRY(host.finish(context, host.params, slots));
    }
  }
  OXB_TRY(run_due(end));
  if (!writes_output) return Status::kOk;
  const schema::Tensor& logits =
      *session.model->graph->tensors()->Get(session.model->entry(entry).logits());
  const size_t rows =
      logits.rows_symbol() < 0 ? logits.rows() : context.symbols[logits.rows_symbol()];
  if (rows != 0) {
    std::memcpy(context.caller_output, program.memory().host_output(),
                rows * logits.width() * sizeof(float));
  }
  return Status::kOk;
}

void lose_vulkan(VulkanBackend& backend) { backend.context->lost = true; }

Status vulkan_to_host(VulkanBackend& backend, Error* error) {
  if (!backend.device_is_newer) return Status::kOk;
  OXB_TRY(backend.program.download(error));
  backend.device_is_newer = false;
  return Status::kOk;
}

void vulkan_states_changed(VulkanBackend& backend) {
  backend.host_is_newer = true;
  backend.device_is_newer = false;
}

size_t vulkan_bytes(const VulkanBackend& backend) { return backend.program.memory().taken(); }

Status read_vulkan_cache(VulkanBackend& backend, std::span<const std::byte> cache, Error* error) {
  const std::lock_guard lock(backend.context->pipelines_mutex);
  return backend.context->cache.read(backend.context->device, cache, error);
}

Status vulkan_cache(VulkanBackend& backend, std::span<std::byte> buffer, size_t* bytes,
                    Error* error) {
  const std::lock_guard lock(backend.context->pipelines_mutex);
  return backend.context->cache.write(backend.context->device, buffer, bytes, error);
}

}  // namespace oxbow

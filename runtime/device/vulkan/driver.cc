// A Vulkan device as runtime/device.h wants one: the ops' dispatches become a recorded program, and a range of steps
// a few submissions of it.

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/base/checked.h"
#include "runtime/device.h"
#include "runtime/device/vulkan/step_list.h"
#include "runtime/device/vulkan/wrapper/program.h"
#include "runtime/model/model.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct VulkanDevice {
  const Model* model = nullptr;
  vulkan::Context* context = nullptr;
  VulkanStepList list;
  vulkan::Program program;
};

VulkanDevice& of(void* device) { return *static_cast<VulkanDevice*>(device); }
const VulkanDevice& of(const void* device) { return *static_cast<const VulkanDevice*>(device); }

uint32_t entry_begin(const Model& model, uint32_t entry) {
  uint32_t step = 0;
  for (uint32_t e = 0; e < entry; ++e) step += model.entry(e).steps()->size();
  return step;
}

Status memory_sizes(const VulkanDevice& device, const DeviceSizes& sizes,
                    vulkan::MemorySizes* wanted, Error* error) {
  const Model& model = *device.model;
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
      !checked_align(device.list.scratch_bytes, kTensorAlignment, &scratch) ||
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
  wanted->values = device.list.dispatches.size() * sizeof(DispatchValues);
  return Status::kOk;
}

vulkan::Range input_range(const schema::Tensor& tensor) {
  return {vulkan::Region::kActivations, tensor.offset(), tensor.bytes()};
}

Status open(const Model& model, const DeviceOptions&, void** device, Error* error) {
  auto* made = new (std::nothrow) VulkanDevice();
  if (made == nullptr) return fail(error, Status::kOutOfMemory, "no memory for a device");
  made->model = &model;
  const Status status = vulkan::acquire_context(&made->context, error);
  if (status != Status::kOk) {
    delete made;
    return status;
  }
  *device = made;
  return Status::kOk;
}

void close(void* device) {
  of(device).program.close();
  vulkan::release_context(of(device).context);
  delete &of(device);
}

Status choose_form(void* context, const VulkanShader& shader, ShaderForm* form, Error* error) {
  auto& on = *static_cast<vulkan::Context*>(context);
  return on.proofs.choose(on, shader, form, error);
}

Status bind(void* device, const DeviceStep& step, bool* claimed, Error* error) {
  VulkanStepList& list = of(device).list;
  vulkan::Context& context = *of(device).context;
  OXB_TRY(add_vulkan_step(step, context.device.features, {&context, choose_form}, &list, error));
  *claimed = list.steps[list.steps.size() - 1].dispatch_count != 0;
  return Status::kOk;
}

Status count(void* device, const DeviceSizes& sizes, size_t* bytes, Error* error) {
  vulkan::MemorySizes wanted;
  OXB_TRY(memory_sizes(of(device), sizes, &wanted, error));
  return vulkan::Memory::measure(of(device).context->device, wanted, bytes, error);
}

Status place(void* device, const DeviceSizes& sizes, DeviceAddresses* addresses, Error* error) {
  VulkanDevice& to = of(device);
  vulkan::MemorySizes wanted;
  OXB_TRY(memory_sizes(to, sizes, &wanted, error));
  OXB_TRY(to.program.open(*to.context, wanted, error));
  to.list.clear();  // Its steps are bound again, to these addresses.
  addresses->states = to.program.memory().host_states();
  addresses->activations = to.program.memory().host_activations();
  return Status::kOk;
}

bool is_same_note(const VulkanStepList::Host& a, const VulkanStepList::Host& b) {
  return a.shader == b.shader && a.why_not == b.why_not;
}

/// What the device leaves to the CPU although there is a shader, and why: a line for each reason.
void log_placement(const VulkanDevice& device) {
  const std::span<const VulkanStepList::Host> all = {device.list.host.begin(),
                                                     device.list.host.size()};
  for (size_t i = 0; i < all.size(); ++i) {
    const auto same = [&](const VulkanStepList::Host& other) {
      return is_same_note(all[i], other);
    };
    if (all[i].shader == nullptr || std::any_of(all.begin(), all.begin() + i, same)) continue;
    const auto steps = static_cast<size_t>(std::count_if(all.begin(), all.end(), same));
    if (all[i].why_not != nullptr) {
      device.model->log(Log::kWarning,
                        "%zu steps, the first is %zu, stay on the CPU: the Vulkan shader %s %s",
                        steps, i, all[i].shader, all[i].why_not);
    } else {
      device.model->log(Log::kWarning,
                        "packed dot products of the Vulkan shader %s are wrong on this device; "
                        "%zu steps, the first is %zu, use its plain form",
                        all[i].shader, steps, i);
    }
  }
}

/// What a run of each entry point makes the device do.
void log_commands(const VulkanDevice& device) {
  using Counts = vulkan::Program::Counts;
  const Model& model = *device.model;
  for (uint32_t e = 0; e < model.entry_count(); ++e) {
    const std::span<const vulkan::Program::Segment> segments = device.program.segments(e);
    Counts many, few;
    for (const vulkan::Program::Segment& segment : segments) {
      const bool differs = segment.few_rows != VK_NULL_HANDLE;
      const Counts& of_few = differs ? segment.few_row_counts : segment.counts;
      many.dispatches += segment.counts.dispatches;
      many.barriers += segment.counts.barriers;
      few.dispatches += of_few.dispatches;
      few.barriers += of_few.barriers;
    }
    model.log(Log::kInfo,
              "entry point '%.40s' on Vulkan: %zu submissions, for few rows %u dispatches and %u "
              "barriers, for many %u and %u",
              model.entry(e).name()->c_str(), segments.size(), few.dispatches, few.barriers,
              many.dispatches, many.barriers);
  }
}

Status record(void* device, Error* error) {
  VulkanDevice& to = of(device);
  const Model& model = *to.model;
  log_placement(to);
  OXB_TRY(to.program.copy_weights({model.data, model.data_bytes}, error));
  vulkan::Array<vulkan::Range> inputs;
  uint32_t input_ends[kMaxEntries] = {}, entry_ends[kMaxEntries] = {};
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
    entry_ends[e] = entry_begin(model, static_cast<uint32_t>(e) + 1);
  }
  const VulkanStepList& list = to.list;
  vulkan::ProgramSpec spec;
  spec.steps = {list.steps.begin(), list.steps.end()};
  spec.dispatches = {list.dispatches.begin(), list.dispatches.end()};
  spec.touched = {list.touched.begin(), list.touched.end()};
  spec.entry_ends = {entry_ends, model.entry_count()};
  spec.entry_inputs = {inputs.begin(), inputs.end()};
  spec.entry_input_ends = {input_ends, model.entry_count()};
  OXB_TRY(to.program.record(spec, error));
  log_commands(to);
  return Status::kOk;
}

Status run_segment(vulkan::Program& program, const vulkan::Program::Segment& segment,
                   const DeviceRange& range, Error* error) {
  const bool timed = range.timed != nullptr;
  OXB_TRY(program.run(segment, timed, error));
  if (!timed) return Status::kOk;
  for (uint32_t i = segment.first_step; i < segment.end_step; ++i) {
    uint64_t nanoseconds = 0;
    OXB_TRY(program.step_nanoseconds(i, &nanoseconds, error));
    range.timed(range.timed_context, i, nanoseconds);
  }
  return Status::kOk;
}

/// After an entry point's last range.
void copy_output(VulkanDevice& device, const DeviceRange& range, RunContext& context) {
  const Model& model = *device.model;
  bool writes_output = false;
  for (uint32_t i = entry_begin(model, range.entry); i < range.end_step; ++i) {
    writes_output |= device.list.host[i].writes_output;
  }
  if (!writes_output) return;
  const schema::Tensor& logits = *model.graph->tensors()->Get(model.entry(range.entry).logits());
  const size_t rows =
      logits.rows_symbol() < 0 ? logits.rows() : context.symbols[logits.rows_symbol()];
  if (rows == 0) return;
  std::memcpy(context.caller_output, device.program.memory().host_output(),
              rows * logits.width() * sizeof(float));
}

Status run(void* device, const DeviceRange& range, RunContext& context) {
  VulkanDevice& on = of(device);
  const std::span<const vulkan::Program::Segment> segments = on.program.segments(range.entry);
  size_t next = 0;
  while (next < segments.size() && segments[next].first_step < range.first_step) ++next;
  const auto run_due = [&](uint32_t step) {
    for (; next < segments.size() && segments[next].end_step <= step; ++next) {
      OXB_TRY(run_segment(on.program, segments[next], range, context.error));
    }
    return Status::kOk;
  };
  for (uint32_t i = range.first_step; i < range.end_step; ++i) {
    const vulkan::Step& step = on.list.steps[i];
    const VulkanStepList::Host& host = on.list.host[i];
    const std::span values(on.program.memory().dispatch_values(step.first_dispatch),
                           step.dispatch_count);
    OXB_TRY(host.prepare(context, host.params, values));
    if (host.finish != nullptr) {
      OXB_TRY(run_due(i + 1));
      OXB_TRY(host.finish(context, host.params, values));
    }
  }
  OXB_TRY(run_due(range.end_step));
  if (range.end_step == entry_begin(*on.model, range.entry + 1)) copy_output(on, range, context);
  return Status::kOk;
}

Status to_host(void* device, Error* error) { return of(device).program.download(error); }
Status to_device(void* device, Error* error) { return of(device).program.upload(error); }

void lose(void* device) { of(device).context->lost = true; }
bool is_lost(const void* device) { return of(device).context->lost; }
size_t bytes(const void* device) { return of(device).program.memory().taken(); }

Status read_cache(void* device, std::span<const std::byte> cache, Error* error) {
  vulkan::Context& context = *of(device).context;
  const std::lock_guard lock(context.pipelines_mutex);
  return context.cache.read(context.device, cache, context.proofs, error);
}

Status write_cache(void* device, std::span<std::byte> buffer, size_t* bytes, Error* error) {
  vulkan::Context& context = *of(device).context;
  const std::lock_guard lock(context.pipelines_mutex);
  return context.cache.write(context.device, context.proofs, buffer, bytes, error);
}

}  // namespace

const DeviceDriver kVulkanDevice = {
    "vulkan", open,      close, bind,    count, place,      record,      run,
    to_host,  to_device, lose,  is_lost, bytes, read_cache, write_cache,
};

}  // namespace oxbow

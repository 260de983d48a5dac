// Cuts the steps into segments and records each.

#include <algorithm>

#include "runtime/device/vulkan/wrapper/copies.h"
#include "runtime/device/vulkan/wrapper/program.h"
#include "runtime/device/vulkan/wrapper/result.h"

namespace oxbow::vulkan {
namespace {

constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
constexpr VkPipelineStageFlags kTransfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kShader = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
constexpr VkAccessFlags kCopy = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;

bool on_device(const Step& step) { return step.dispatch_count != 0; }

Status no_memory(Error* error) {
  return fail(error, Status::kOutOfMemory, "no memory for a list of copies");
}

/// What the steps [begin, end), all on the CPU, touch, or of that what they write.
Status add_touched(const ProgramSpec& spec, const Memory& memory, uint32_t begin, uint32_t end,
                   bool written_only, Copies* copies, Error* error) {
  for (uint32_t i = begin; i < end; ++i) {
    const Step& step = spec.steps[i];
    for (const Touched& touched : spec.touched.subspan(step.first_touched, step.touched_count)) {
      if (written_only && !touched.written) continue;
      if (!copies->add(memory, touched.range)) return no_memory(error);
    }
  }
  return Status::kOk;
}

uint32_t entry_begin(const ProgramSpec& spec, uint32_t entry) {
  return entry == 0 ? 0 : spec.entry_ends[entry - 1];
}

}  // namespace

Status Program::make_segments(const ProgramSpec& spec, Error* error) {
  const auto push = [&](uint32_t begin, uint32_t end) {
    Segment segment;
    segment.first_step = begin;
    segment.end_step = end;
    return segments_.push(segment);
  };
  for (uint32_t e = 0; e < spec.entry_ends.size(); ++e) {
    const uint32_t begin = entry_begin(spec, e), end = spec.entry_ends[e];
    bool pushed = true;
    if (memory_.staged && begin < end && !on_device(spec.steps[begin])) {
      pushed = push(begin, begin);
    }
    for (uint32_t i = begin; i < end; ++i) {
      if (!on_device(spec.steps[i])) continue;
      const uint32_t first = i;
      while (i + 1 < end && on_device(spec.steps[i + 1]) && !spec.steps[i].ends_segment) ++i;
      pushed = pushed && push(first, i + 1);
    }
    if (memory_.staged && begin < end && !on_device(spec.steps[end - 1])) {
      pushed = pushed && push(end, end);
    }
    pushed = pushed && segment_ends_.push(static_cast<uint32_t>(segments_.size()));
    if (!pushed) return fail(error, Status::kOutOfMemory, "no memory for the list of segments");
  }
  for (uint32_t i = 0; i < spec.steps.size(); ++i) {
    const Step& step = spec.steps[i];
    for (uint32_t d = step.first_dispatch; d < step.first_dispatch + step.dispatch_count; ++d) {
      if (spec.dispatches[d].for_many_rows && !many_rows_.push({i, d})) {
        return fail(error, Status::kOutOfMemory, "no memory for the list of dispatches");
      }
    }
  }
  for (uint32_t e = 0; e < spec.entry_ends.size(); ++e) {
    const uint32_t first = e == 0 ? 0 : segment_ends_[e - 1];
    for (uint32_t s = first; s < segment_ends_[e]; ++s) {
      Segment& segment = segments_[s];
      OXB_TRY(record_segment(spec, s, e, Recording::kAll, &segment.commands, error));
      const bool has_many =
          std::any_of(many_rows_.begin(), many_rows_.end(), [&](const ManyRows& many) {
            return many.step >= segment.first_step && many.step < segment.end_step;
          });
      if (has_many) {
        OXB_TRY(record_segment(spec, s, e, Recording::kFewRows, &segment.few_rows, error));
      }
      if (queries_ == VK_NULL_HANDLE) continue;
      OXB_TRY(record_segment(spec, s, e, Recording::kTimed, &segment.timed, error));
    }
  }
  return Status::kOk;
}

Status Program::record_uploads(const ProgramSpec& spec, uint32_t index, uint32_t entry,
                               VkCommandBuffer commands, Error* error) {
  const bool is_first = index == (entry == 0 ? 0 : segment_ends_[entry - 1]);
  Copies copies;
  if (is_first) {
    const uint32_t begin = entry == 0 ? 0 : spec.entry_input_ends[entry - 1];
    for (uint32_t i = begin; i < spec.entry_input_ends[entry]; ++i) {
      if (!copies.add(memory_, spec.entry_inputs[i])) return no_memory(error);
    }
  } else {
    OXB_TRY(add_touched(spec, memory_, segments_[index - 1].end_step, segments_[index].first_step,
                        true, &copies, error));
  }
  copies.record(device().api(), memory_, true, commands);
  barrier(device().api(), commands, kTransfer, VK_ACCESS_TRANSFER_WRITE_BIT, kCompute | kTransfer,
          kShader | kCopy);
  return Status::kOk;
}

Status Program::record_downloads(const ProgramSpec& spec, uint32_t index, uint32_t entry,
                                 VkCommandBuffer commands, Error* error) {
  const bool is_last = index + 1 == segment_ends_[entry];
  const uint32_t next = is_last ? spec.entry_ends[entry] : segments_[index + 1].first_step;
  Copies copies;
  OXB_TRY(add_touched(spec, memory_, segments_[index].end_step, next, false, &copies, error));
  if (is_last && !copies.add(memory_, {Region::kOutput, 0, memory_.sizes.output})) {
    return no_memory(error);
  }
  barrier(device().api(), commands, kCompute, VK_ACCESS_SHADER_WRITE_BIT, kTransfer,
          VK_ACCESS_TRANSFER_READ_BIT);
  copies.record(device().api(), memory_, false, commands);
  return Status::kOk;
}

Status Program::add_hazards(const Dispatch& dispatch, uint32_t written, Hazards* hazards,
                            bool* waits, Error* error) const {
  Hazards::Touch touches[kMaxVulkanOperands];
  for (uint32_t i = 0; i < dispatch.operand_count; ++i) {
    uint64_t offset = 0;
    Hazards::Touch& touch = touches[i];
    touch.buffer = &memory_.locate(dispatch.operands[i], &offset);
    // All that is bound, from the rest in front of the tensor on.
    touch.begin = offset - rest_of(offset);
    touch.end = offset + dispatch.operands[i].bytes;
    touch.written = (written >> (i + 1) & 1) != 0;
    *waits = *waits || hazards->meets(touch);
  }
  if (*waits) hazards->clear();
  for (uint32_t i = 0; i < dispatch.operand_count; ++i) {
    if (!hazards->add(touches[i])) {
      return fail(error, Status::kOutOfMemory, "no memory for the list of dispatches");
    }
  }
  return Status::kOk;
}

Status Program::record_dispatches(const ProgramSpec& spec, const Segment& segment,
                                  Recording recording, VkCommandBuffer commands, Counts* counts,
                                  Error* error) {
  const Api& api = device().api();
  const bool timed = recording == Recording::kTimed;
  Hazards hazards;
  for (uint32_t i = segment.first_step; i < segment.end_step; ++i) {
    const Step& step = spec.steps[i];
    if (timed) {
      api.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, 2 * i);
    }
    for (uint32_t d = step.first_dispatch; d < step.first_dispatch + step.dispatch_count; ++d) {
      const Dispatch& dispatch = spec.dispatches[d];
      if (recording == Recording::kFewRows && dispatch.for_many_rows) continue;
      // The first waits for what ran before the segment.
      bool waits = timed || counts->dispatches == 0;
      OXB_TRY(add_hazards(dispatch, pipelines_[d].written, &hazards, &waits, error));
      // One for all: whatever an earlier dispatch wrote is seen, and nothing it still reads is changed.
      if (waits) {
        barrier(api, commands, kCompute, VK_ACCESS_SHADER_WRITE_BIT, kCompute, kShader);
        ++counts->barriers;
      }
      api.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_[d].handle);
      api.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_[d].layout, 0,
                                1, &sets_[d], 0, nullptr);
      api.CmdDispatchIndirect(commands, memory_.values.handle, d * sizeof(DispatchValues));
      ++counts->dispatches;
    }
    if (timed) {
      api.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, 2 * i + 1);
    }
  }
  return Status::kOk;
}

Status Program::record_segment(const ProgramSpec& spec, uint32_t index, uint32_t entry,
                               Recording recording, VkCommandBuffer* commands, Error* error) {
  const Api& api = device().api();
  const Segment segment = segments_[index];
  OXB_TRY(commands_.begin(commands, error));
  if (recording == Recording::kTimed && segment.first_step < segment.end_step) {
    api.CmdResetQueryPool(*commands, queries_, 2 * segment.first_step,
                          2 * (segment.end_step - segment.first_step));
  }
  if (memory_.staged) OXB_TRY(record_uploads(spec, index, entry, *commands, error));
  Counts counts;
  OXB_TRY(record_dispatches(spec, segment, recording, *commands, &counts, error));
  if (recording == Recording::kAll) segments_[index].counts = counts;
  if (recording == Recording::kFewRows) segments_[index].few_row_counts = counts;
  if (memory_.staged) OXB_TRY(record_downloads(spec, index, entry, *commands, error));
  barrier(api, *commands, kCompute | kTransfer,
          VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
          VK_ACCESS_HOST_READ_BIT);
  return commands_.end(*commands, error);
}

}  // namespace oxbow::vulkan

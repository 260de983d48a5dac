#pragma once

// The steps of a session as commands, recorded once: a segment for each stretch of steps that the device
// runs without the host in between. A run fills the values of dispatches and submits segments.
//
//   segment:  copies to the device (staged) | dispatches, each behind a barrier | copies to the host (staged)
//
// Staged, an entry point begins and ends with a segment, if need be one of copies only, so that steps on
// the CPU find what they read and the device finds what they wrote.

#include <cstdint>
#include <span>

#include "runtime/device/vulkan/wrapper/command.h"
#include "runtime/device/vulkan/wrapper/hazards.h"
#include "runtime/device/vulkan/wrapper/memory.h"
#include "runtime/device/vulkan/wrapper/pipeline.h"

namespace oxbow::vulkan {

/// All of a session's steps, entry point after entry point.
struct ProgramSpec {
  std::span<const Step> steps;
  std::span<const Dispatch> dispatches;
  std::span<const Touched> touched;
  std::span<const uint32_t> entry_ends;
  /// What the caller places before a run of entry e: entry_inputs up to entry_input_ends[e].
  std::span<const Range> entry_inputs;
  std::span<const uint32_t> entry_input_ends;
};

class Program {
 public:
  /// Memory first: tensors need addresses before steps can be bound.
  Status open(Context& context, const MemorySizes& sizes, Error* error);
  Status copy_weights(std::span<const std::byte> data, Error* error);
  /// Makes pipelines and commands. The lists of `spec` are not needed afterwards.
  Status record(const ProgramSpec& spec, Error* error);
  void close();

  Memory& memory() { return memory_; }
  const Memory& memory() const { return memory_; }
  const Device& device() const { return context_->device; }

  struct Counts {
    uint32_t dispatches = 0;
    /// Those between dispatches.
    uint32_t barriers = 0;
  };
  /// The steps [first_step, end_step), all on the device. It is due before the host does anything that comes
  /// after them, or at the end of the entry point.
  struct Segment {
    uint32_t first_step = 0;
    uint32_t end_step = 0;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    /// Without the dispatches for many rows; null: there are none.
    VkCommandBuffer few_rows = VK_NULL_HANDLE;
    /// All, with a timestamp on either side of each step, which waits for the one before; null: the device has none.
    VkCommandBuffer timed = VK_NULL_HANDLE;
    /// Of `commands` and of `few_rows`.
    Counts counts, few_row_counts;
  };
  std::span<const Segment> segments(uint32_t entry) const;
  Status run(const Segment& segment, bool timed, Error* error);
  /// After a timed run.
  Status step_nanoseconds(uint32_t step, uint64_t* nanoseconds, Error* error);

  /// Staged: whole states and activations to the host; states to the device. Otherwise nothing.
  Status download(Error* error);
  Status upload(Error* error);

 private:
  /// What a binding's offset must not have.
  uint64_t rest_of(uint64_t offset) const;
  /// DispatchValues::rests.
  uint32_t rests_of(const Dispatch& dispatch) const;
  Status make_dispatches(const ProgramSpec& spec, Error* error);
  Status make_descriptors(const ProgramSpec& spec, Error* error);
  Status make_segments(const ProgramSpec& spec, Error* error);
  Status make_copies(Error* error);
  enum class Recording : uint8_t { kAll, kFewRows, kTimed };
  Status record_segment(const ProgramSpec& spec, uint32_t index, uint32_t entry,
                        Recording recording, VkCommandBuffer* commands, Error* error);
  Status record_dispatches(const ProgramSpec& spec, const Segment& segment, Recording recording,
                           VkCommandBuffer commands, Counts* counts, Error* error);
  /// Whether the dispatch must wait for those that `hazards` knows. Adds it to them.
  Status add_hazards(const Dispatch& dispatch, uint32_t written, Hazards* hazards, bool* waits,
                     Error* error) const;
  /// Whether a dispatch for many rows has groups in this run.
  bool has_many_rows(const Segment& segment) const;
  Status record_uploads(const ProgramSpec& spec, uint32_t index, uint32_t entry,
                        VkCommandBuffer commands, Error* error);
  Status record_downloads(const ProgramSpec& spec, uint32_t index, uint32_t entry,
                          VkCommandBuffer commands, Error* error);

  Context* context_ = nullptr;
  Memory memory_;
  Commands commands_;
  VkDescriptorPool descriptors_ = VK_NULL_HANDLE;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  /// By dispatch.
  Array<Pipeline> pipelines_;
  Array<VkDescriptorSet> sets_;
  Array<Segment> segments_;
  Array<uint32_t> segment_ends_;
  /// The dispatches for many rows, with the step of each.
  struct ManyRows {
    uint32_t step, dispatch;
  };
  Array<ManyRows> many_rows_;
  VkCommandBuffer upload_ = VK_NULL_HANDLE;
  VkCommandBuffer download_ = VK_NULL_HANDLE;
};

}  // namespace oxbow::vulkan

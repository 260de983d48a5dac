#pragma once

// One stream through a model, in memory the caller gave.
//
//   arena:  | Session | steps and params | thread team | state | activations | scratch |
//                                                        `--------------------- saved, checkpointed
// A session on a device (runtime/vulkan_backend.h) has state and activations in that one's memory, not in
// the arena.
//
//   state:  | StateHeader | one RingPosition per ring | shared state tensors | the others |
//
// A sibling has a state of its own but for the shared tensors, and neither threads nor activations nor
// scratch: those are its elder's.
//
// The same code lays the arena out twice: once over no memory at all, to count, and once to place.

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/base/tensor.h"
#include "runtime/base/thread_pool.h"
#include "runtime/model.h"
#include "runtime/op.h"

namespace oxbow {

struct Session;
struct VulkanBackend;

struct SessionOptions {
  uint32_t threads = 1;
  Backend backend = Backend::kCpu;
  /// Cores for the threads it starts; 0: any.
  uint64_t cpu_mask = 0;
  /// Whose shared states, activations, scratch and threads this session uses; null: its own.
  const Session* sibling = nullptr;
  /// Compiled shaders of an earlier session on a device; may be empty. Only read at creation.
  std::span<const std::byte> pipeline_cache;
};

/// Bytes by purpose. `total` also covers the alignment of an arbitrary arena.
struct SessionMemory {
  size_t session = 0;
  size_t states = 0;
  size_t activations = 0;
  size_t scratch = 0;
  size_t total = 0;
  /// Not in the arena: what a device will be asked for.
  size_t device = 0;
};

/// One step, ready to run.
struct BoundStep {
  RunFunction run;
  const void* params;
  const char* op;
  /// Name of the first output, for messages and profiles.
  const char* output;
  /// Who computes it: "cpu", "reference", "vulkan" or a library.
  const char* provider;
};

struct StateHeader {
  /// Tokens since the last reset.
  uint64_t position;
};

using ProfileCallback = void (*)(void* context, uint32_t step, const char* op, const char* output,
                                 uint64_t nanoseconds);

/// One input of a run, by its name: rows of int32_t or float.
struct InputValues {
  const char* name;
  const void* values;
  size_t rows;
};

struct Session {
  const Model* model = nullptr;
  /// The one whose memory this session uses; null: its own.
  const Session* elder = nullptr;
  /// Steps of all entry points, one after the other; those of entry e end at entry_ends[e].
  std::span<const BoundStep> steps;
  uint32_t entry_ends[kMaxEntries] = {};
  /// The entry point that ran last: whose activations can be read.
  uint32_t last_entry = 0;
  SessionOptions options;
  /// What ops made for this session, the latest first.
  OwnedObject* owned = nullptr;
  /// Not null: states and activations are the device's, or copies of them.
  VulkanBackend* vulkan = nullptr;
  ThreadPool* pool = nullptr;
  /// The whole state region, header and ring positions first.
  std::span<std::byte> state;
  StateHeader* header = nullptr;
  std::span<RingPosition> rings;
  std::byte* shared_states = nullptr;
  /// Where the planned offset shared_states of the plan lies.
  std::byte* own_states = nullptr;
  std::byte* activations = nullptr;
  std::byte* scratch = nullptr;
  uint32_t symbols[kMaxSymbols] = {};
  /// A run failed half-way: refuse to go on until the state is whole again.
  bool needs_reset = false;
  ProfileCallback profile = nullptr;
  void* profile_context = nullptr;
};

Status count_session_memory(const Model& model, const SessionOptions& options,
                            SessionMemory* memory, Error* error);

Status create_session(const Model& model, const SessionOptions& options, std::span<std::byte> arena,
                      Session** session, Error* error);
void destroy_session(Session* session);

/// What libraries took from the system for this session, and what it took from a device.
size_t backend_bytes(const Session& session);

Status run_session(Session& session, uint32_t entry, std::span<const InputValues> inputs,
                   float* output, size_t output_rows, Error* error);
void reset_session(Session& session);

/// Whether this tensor is a state in the session's own memory, and a view of it.
bool own_state(const Session& session, uint32_t index, Tensor* state);

/// A view of one of the model's tensors in this session's memory.
Tensor session_tensor(const Session& session, uint32_t index);

}  // namespace oxbow

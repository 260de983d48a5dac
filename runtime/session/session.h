#pragma once

// One stream through a model, in memory the caller gave.
//
//   arena:  | Session | steps and params | thread team | state | activations | scratch |
//                                                        `--------------------- saved, checkpointed
// A session on a device (runtime/device.h) has state and activations in that one's memory, not in the arena, unless the
// device works there.
//
//   state:  | StateHeader | one RingPosition per ring | shared state tensors | the others |
//
// A borrower owns only its stream: threads, activations, scratch and shared state tensors are its lender's.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/base/tensor.h"
#include "runtime/base/thread_pool.h"
#include "runtime/device.h"
#include "runtime/model/model.h"
#include "runtime/op.h"

namespace oxbow {

struct Draft;
struct Session;

struct SessionOptions {
  uint32_t threads = 1;
  Backend backend = Backend::kCpu;
  /// The backend's device; null: it has none.
  const DeviceDriver* device = nullptr;
  DeviceOptions device_options;
  /// Cores for the threads it starts; 0: any.
  uint64_t cpu_mask = 0;
  /// Whose shared states, activations, scratch and threads this session uses; null: its own.
  const Session* lender = nullptr;
  /// Creation touches all weights and the whole arena.
  bool warm_up = false;
  /// What the device of an earlier session compiled; may be empty. Only read at creation.
  std::span<const std::byte> pipeline_cache;
};

/// Bytes by purpose. `total` also covers the alignment of an arbitrary arena.
struct SessionMemory {
  size_t session = 0;
  size_t states = 0;
  size_t activations = 0;
  size_t scratch = 0;
  size_t total = 0;
  /// Not in the arena: what a device and libraries will be asked for.
  size_t device = 0;
  size_t libraries = 0;
  /// Of a saved state or a checkpoint.
  size_t checkpoint = 0;
  /// Total of a session that borrows from this one; 0 for a borrower.
  size_t borrower = 0;
};

/// One step, ready to run.
struct BoundStep {
  /// Null: the session's device runs it.
  RunFunction run;
  const void* params;
  const char* op;
  /// Name of the first output, for messages and profiles.
  const char* output;
  /// Who computes it: "cpu", "reference", a library or a device.
  const char* provider;
  /// Rows of several streams can be given at once: none sees another or a state.
  bool by_row;

  bool on_device() const { return run == nullptr; }
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

/// Where host and device each have a copy of states and activations. kNone: they are equal.
enum class NewerCopy : uint8_t { kNone, kHost, kDevice };

struct Session {
  const Model* model = nullptr;
  /// The one whose memory this session uses; null: its own.
  const Session* lender = nullptr;
  /// Steps of all entry points, one after the other; those of entry e end at entry_ends[e].
  std::span<const BoundStep> steps;
  uint32_t entry_ends[kMaxEntries] = {};
  /// Of all steps together, as a borrower's are.
  size_t params_bytes = 0;
  /// The entry point that ran last: whose activations can be read. kMaxEntries: none.
  uint32_t last_entry = 0;
  SessionOptions options;
  /// What ops made for this session, the latest first.
  OwnedObject* owned = nullptr;
  /// While counting: what they will take from the system.
  size_t planned_library_bytes = 0;
  /// Open: states and activations are the device's, or copies of them.
  Device device;
  /// Which copy of them is the latest; changed by HostView and by runs alone.
  mutable NewerCopy newer_copy = NewerCopy::kNone;
  ThreadPool* pool = nullptr;
  /// The whole state region, header and ring positions first. Those two are the host's alone; the rest, and the
  /// activations, are read and written through HostView (host_view.h) and by steps.
  std::span<std::byte> state;
  StateHeader* header = nullptr;
  std::span<RingPosition> rings;
  std::byte* shared_states = nullptr;
  /// Where the planned offset shared_states of the plan lies.
  std::byte* own_states = nullptr;
  std::byte* activations = nullptr;
  std::byte* scratch = nullptr;
  /// Row counts of the last run, and which of them its steps have set.
  std::span<uint32_t> symbols;
  std::span<bool> symbols_set;
  /// By ring: some of its states may hold rows that were not written when the ring took them.
  std::span<bool> partly_written;
  /// A run failed half-way: refuse to go on until the state is whole again.
  bool needs_reset = false;
  /// Runs are being drafted (draft.h), in memory of the caller's; null: they are not.
  Draft* draft = nullptr;
  /// The same for what borrowers share, of a session that lends: only its own reset, load or encode makes it whole.
  bool shared_needs_reset = false;
  /// Set by any thread: the run under way, or the next, is to end.
  mutable std::atomic<bool> cancelled = false;
  ProfileCallback profile = nullptr;
  void* profile_context = nullptr;
};

/// From the model's plan (plan.h) or by binding every step.
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

/// One of the model's tensors in this session's memory: its shape and address. For its values see HostView.
Tensor session_tensor(const Session& session, uint32_t index);

}  // namespace oxbow

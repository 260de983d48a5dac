#pragma once

// One stream through a model, in memory the caller gave.
//
//   arena:  | Session | steps and params | thread team | state | activations | scratch |
//                                                        `--------------------- saved, checkpointed
//   state:  | StateHeader | one RingPosition per ring | state tensors as planned by the converter |
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

struct SessionOptions {
  uint32_t threads = 1;
  bool reference_only = false;
};

/// Bytes by purpose. `total` also covers the alignment of an arbitrary arena.
struct SessionMemory {
  size_t session = 0;
  size_t states = 0;
  size_t activations = 0;
  size_t scratch = 0;
  size_t total = 0;
};

/// One step, ready to run.
struct BoundStep {
  RunFunction run;
  const void* params;
  const char* op;
  /// Name of the first output, for messages and profiles.
  const char* output;
};

struct StateHeader {
  /// Tokens since the last reset.
  uint64_t position;
};

using ProfileCallback = void (*)(void* context, uint32_t step, const char* op, const char* output,
                                 uint64_t nanoseconds);

struct Session {
  const Model* model = nullptr;
  std::span<const BoundStep> steps;
  ThreadPool* pool = nullptr;
  /// The whole state region, header and ring positions first.
  std::span<std::byte> state;
  StateHeader* header = nullptr;
  std::span<RingPosition> rings;
  std::byte* state_tensors = nullptr;
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

Status run_session(Session& session, std::span<const int32_t> tokens, float* logits,
                   size_t logits_rows, Error* error);
void reset_session(Session& session);

/// A view of one of the model's tensors in this session's memory.
Tensor session_tensor(const Session& session, uint32_t index);

}  // namespace oxbow

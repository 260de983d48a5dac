#pragma once

// A draft: some tokens are run, and the stream is to go on behind the first k of them as if there had been no others.
//
//   memory:  | Draft | tokens of each run | what state-changing steps were given, token by token | checkpoint |
//
// Keeping k takes the checkpoint back and repeats, for the first k tokens, the steps that change states, with what they
// were given: one copy of the state, and no matrix is multiplied. A step's rows are causal where a stream may be cut
// anywhere (EntryPoint.any_pieces), so those of the first k tokens do not depend on the others.

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/session/session.h"

namespace oxbow {

struct Draft {
  uint32_t entry = 0;
  /// Tokens there is room for, and those that were run.
  uint32_t capacity = 0;
  uint32_t tokens = 0;
  uint32_t runs = 0;
  std::span<uint32_t> run_tokens;
  std::byte* log = nullptr;
  /// Where the next step's part of the log begins, during a run.
  size_t next = 0;
  std::span<std::byte> checkpoint;
};

Status draft_bytes(const Session& session, size_t tokens, size_t* bytes, Error* error);
Status begin_draft(Session& session, std::span<std::byte> memory, size_t tokens, Error* error);
Status keep_draft(Session& session, size_t tokens, Error* error);

/// For run_session: before anything changes, before each step (`index` of its entry point), after all.
Status check_draft(const Session& session, uint32_t entry, uint32_t tokens, Error* error);
void log_step(Session& session, uint32_t index);
void end_draft_run(Session& session, uint32_t tokens);

}  // namespace oxbow

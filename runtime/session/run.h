#pragma once

// The parts of a run, for run_session() and for runs of several streams at once (lockstep.h).

#include <cstdint>
#include <span>

#include "runtime/session/session.h"

namespace oxbow {

/// Refuses what run_session() would refuse. Nothing has changed.
Status check_run(const Session& session, uint32_t entry, std::span<const InputValues> inputs,
                 const float* output, size_t output_rows, Error* error);

/// The caller's wish, which is taken back by being granted. A borrower also obeys its lender's.
bool take_cancel(const Session& session);
Status say_cancelled(Error* error);

/// Counts the rows of this run, and those of the lender's memories. Until end_run() the stream is half-way.
void begin_run(Session& session, uint32_t entry, std::span<const InputValues> inputs,
               size_t output_rows);
/// For the rows that begin_run() has counted.
void place_inputs(Session& session, uint32_t entry, std::span<const InputValues> inputs);
RunContext make_context(const Session& session, float* output, Error* error);
/// One step, `index` of all that there are.
Status run_on_cpu(const Session& session, const BoundStep& step, uint32_t index,
                  RunContext& context);
void end_run(Session& session, uint32_t entry, uint32_t tokens);

}  // namespace oxbow

#pragma once

// Several streams of one model, step by step together: what works row by row gets the rows of all streams at once, so
// that weights are read once for all of them; what sees a state, or other rows, runs for one stream after the other.
//
// That needs sessions that share their working memory (a lender and its borrowers), where the rows of stream i lie
// behind those of the streams before it, and steps whose rows are this run's tokens or outputs. Other sessions and models
// run one after the other: the results are the same bits. After a run together no activation can be read by its name. Texts for an encoder share the memory of one session likewise.

#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/session/session.h"

namespace oxbow {

/// Feeds tokens[i] to sessions[i] through the main entry point, for logits in output[i][output_width]; null: none are
/// wanted. The sessions are different ones of one model. A failure half-way leaves all of them refusing to run.
Status run_lockstep(std::span<Session* const> sessions, std::span<const int32_t> tokens,
                    float* output, Error* error);

/// Texts of so many tokens each, one behind the other, through an entry point whose runs know nothing of each other; their
/// outputs follow each other as well. As many as fit take a run together. What a failure leaves of the outputs is not told.
Status run_texts(Session& session, const int32_t* tokens, std::span<const size_t> lengths,
                 float* output, Error* error);

}  // namespace oxbow

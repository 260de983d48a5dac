#pragma once

// A beam search over sessions: the inside of oxb_beam_search, which oxbow.h documents.
//
// Each beam has a session, the caller's or one that borrows from it. A beam that goes on with its text keeps its
// session; only a text that several beams go on with is copied, to the sessions of those that ended. A round is one run
// in lockstep (session/lockstep.h).
//
//   memory:  oxb_beam_search | BeamSearch | Session*[B] | Session*[B] | logits[B][V] | borrower | ...

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/api/oxbow.h"
#include "runtime/base/status.h"
#include "runtime/generate/beam_search.h"
#include "runtime/session/session.h"

struct oxb_beam_search {
 public:
  /// Sets *bytes to what place() needs.
  static oxbow::Status measure(const oxbow::Session& session, const oxb_beam_options& options,
                               size_t* bytes, oxbow::Error* error);
  /// `memory` needs no alignment.
  static oxbow::Status place(oxbow::Session& session, const oxb_beam_options& options, void* memory,
                             size_t bytes, oxb_beam_search** search, oxbow::Error* error);

  oxbow::Status run(std::span<const int32_t> prompt, oxbow::Error* error);
  const oxbow::BeamSearch& search() const { return *search_; }

 private:
  struct Layout;

  explicit oxb_beam_search(oxbow::Session& session) : session_(session) {}
  oxbow::Status check_prompt(std::span<const int32_t> prompt, oxbow::Error* error) const;
  oxbow::Status feed_prompt(std::span<const int32_t> prompt, oxbow::Error* error);
  oxbow::Status give_sessions(bool first_round, oxbow::Error* error);

  oxbow::Session& session_;
  uint32_t max_tokens_ = 0;
  oxbow::BeamSearch* search_ = nullptr;
  /// Of each beam; the caller's is among them.
  std::span<oxbow::Session*> sessions_;
  std::span<oxbow::Session*> next_;
  /// A row for each beam.
  std::span<float> logits_;
};

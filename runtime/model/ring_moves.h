#pragma once

// How the rings of a model move, as far as its graph tells: which of them move together, and which stand where the
// number of tokens says. A state from outside has to agree.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/base/status.h"
#include "runtime/base/tensor.h"

namespace oxbow::schema {
struct EntryPoint;
struct Model;
struct Step;
}  // namespace oxbow::schema

namespace oxbow {

/// What a step does to the ring that its outputs are in, with the rows of its first input.
struct RingMove {
  uint32_t group = 1;
  uint32_t only_full = 0;
  uint32_t first = 0;
  bool replace = false;
  bool clear = false;

  /// All rows enter and nothing else happens: where the ring stands follows from how many came in all.
  bool is_plain() const { return only_full == 0 && first == 0 && !replace && !clear; }
};

/// False: it is not told how this step moves rings. Defined beside the op that does (ops/ring_push/), for none is known
/// here.
bool ring_move_of(const schema::Step& step, RingMove* move);

class RingMoves {
 public:
  /// Of a graph that check_plan accepted.
  Status find(const schema::Model& graph, Error* error);

  /// The first ring that stands where this one does after every run; perhaps itself.
  uint32_t like(uint32_t ring) const { return rings_[ring].like; }
  /// Whether the place of this ring follows from the tokens of the stream, and where that is.
  bool place_after(const schema::Model& graph, uint32_t ring, uint64_t tokens,
                   RingPosition* place) const;

 private:
  struct Moves {
    /// Of all that moves the ring, in order.
    uint64_t hash = 0;
    uint32_t like = 0;
    uint32_t group = 0;
    uint32_t pushes = 0;
    /// Entry points that go on with a stream and push its tokens, all in the same way.
    uint32_t token_entries = 0;
    uint32_t last_entry = UINT32_MAX;
  };

  void see_step(const schema::Model& graph, uint32_t entry_index, const schema::Step& step);
  Status find_like(Error* error);

  std::unique_ptr<Moves[]> rings_;
  uint32_t count_ = 0;
  /// Entry points that go on with a stream.
  uint32_t going_on_ = 0;
};

}  // namespace oxbow

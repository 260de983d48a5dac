#include "runtime/model/ring_moves.h"

#include <algorithm>
#include <new>

#include "runtime/base/hash.h"
#include "runtime/base/ring_rule.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

template <typename... Numbers>
void add_to_hash(uint64_t* hash, Numbers... numbers) {
  const uint64_t all[] = {static_cast<uint64_t>(numbers)...};
  *hash = hash_bytes(all, sizeof(all), *hash);
}

}  // namespace

Status RingMoves::find(const schema::Model& graph, Error* error) {
  count_ = graph.rings() == nullptr ? 0 : graph.rings()->size();
  rings_.reset(new (std::nothrow) Moves[count_]);
  if (rings_ == nullptr) return fail(error, Status::kOutOfMemory, "no memory for %u rings", count_);
  for (uint32_t i = 0; i < count_; ++i) {
    const schema::Ring& ring = *graph.rings()->Get(i);
    rings_[i].hash = kHashSeed;
    add_to_hash(&rings_[i].hash, ring.capacity(), ring.pinned(), ring.initial_rows(),
                ring.shared());
  }
  going_on_ = 0;
  for (uint32_t e = 0; e < graph.entry_points()->size(); ++e) {
    const schema::EntryPoint& entry = *graph.entry_points()->Get(e);
    if (!entry.starts()) ++going_on_;
    for (const schema::Step* step : *entry.steps()) see_step(graph, e, *step);
  }
  return find_like(error);
}

void RingMoves::see_step(const schema::Model& graph, uint32_t entry_index,
                         const schema::Step& step) {
  const auto& tensors = *graph.tensors();
  const schema::EntryPoint& entry = *graph.entry_points()->Get(entry_index);
  if (step.outputs() == nullptr || step.outputs()->size() == 0) return;
  // An op sees to it that all of its outputs are in one ring.
  const int32_t ring = tensors.Get(step.outputs()->Get(0))->ring();
  if (ring < 0) return;
  Moves& moves = rings_[static_cast<size_t>(ring)];
  ++moves.pushes;
  RingMove move;
  if (step.inputs() == nullptr || step.inputs()->size() == 0 || !ring_move_of(step, &move)) {
    add_to_hash(&moves.hash, ring);  // Like no other.
    return;
  }
  const schema::Tensor& rows = *tensors.Get(step.inputs()->Get(0));
  // A symbol has one value in a run, whoever asks.
  add_to_hash(&moves.hash, entry_index, rows.rows_symbol(),
              rows.rows_symbol() < 0 ? rows.rows() : 0, move.group, move.only_full, move.first,
              move.replace, move.clear);
  const bool of_tokens =
      rows.rows_symbol() >= 0 && rows.rows_symbol() == tensors.Get(entry.tokens())->rows_symbol();
  const bool known = moves.token_entries == 0 || moves.group == move.group;
  if (entry.starts() || !of_tokens || !known || !move.is_plain()) return;
  if (moves.last_entry == entry_index) return;
  moves.last_entry = entry_index;
  moves.group = move.group;
  ++moves.token_entries;
}

Status RingMoves::find_like(Error* error) {
  const std::unique_ptr<uint32_t[]> order(new (std::nothrow) uint32_t[count_]);
  if (order == nullptr) return fail(error, Status::kOutOfMemory, "no memory for %u rings", count_);
  for (uint32_t i = 0; i < count_; ++i) order[i] = i;
  std::sort(order.get(), order.get() + count_, [&](uint32_t a, uint32_t b) {
    return rings_[a].hash != rings_[b].hash ? rings_[a].hash < rings_[b].hash : a < b;
  });
  for (uint32_t i = 0; i < count_; ++i) {
    const bool same = i > 0 && rings_[order[i]].hash == rings_[order[i - 1]].hash;
    rings_[order[i]].like = same ? rings_[order[i - 1]].like : order[i];
  }
  return Status::kOk;
}

bool RingMoves::place_after(const schema::Model& graph, uint32_t index, uint64_t tokens,
                            RingPosition* place) const {
  const Moves& moves = rings_[index];
  const schema::Ring& ring = *graph.rings()->Get(index);
  if (moves.pushes == 0) {
    *place = {0, ring.initial_rows()};
    return true;
  }
  // One push in each of them, and none elsewhere.
  if (moves.pushes != going_on_ || moves.token_entries != going_on_) return false;
  // Rows leave in whole groups, as few as there have to be: in which pieces they came does not matter.
  const RingStep step = ring_step(ring.initial_rows(), tokens, ring.capacity(), moves.group);
  *place = {static_cast<uint32_t>(step.leaving % (ring.capacity() - ring.pinned())),
            static_cast<uint32_t>(step.staying)};
  return true;
}

}  // namespace oxbow

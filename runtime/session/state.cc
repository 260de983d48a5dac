#include "runtime/session/state.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/hadamard.h"
#include "runtime/base/hash.h"
#include "runtime/model/ring_moves.h"
#include "runtime/model/state_kinds.h"
#include "runtime/session/host_view.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct BlobHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint64_t model_hash;
  uint64_t state_bytes;
  /// Of the state behind the header; 0 in a checkpoint.
  uint64_t checksum;
};

constexpr uint32_t kBlobVersion = 1;

const char* magic(StateForm form) { return form == StateForm::kSaved ? "OXBSTATE" : "OXBCHECK"; }

RingPosition ring_of_state(const std::byte* state, size_t ring) {
  RingPosition position;
  std::memcpy(&position, state + sizeof(StateHeader) + ring * sizeof(RingPosition),
              sizeof(position));
  return position;
}

/// A borrower has a copy of the positions of what its lender shares: for it they say nothing.
bool is_lenders(const Session& session, uint32_t ring) {
  return session.lender != nullptr && session.model->graph->rings()->Get(ring)->shared();
}

// Far from where sums of positions and rows would overflow.
constexpr uint64_t kMaxPosition = uint64_t{1} << 62;

/// How many tokens a stream can have had.
uint64_t most_tokens(const Model& model) {
  uint64_t most = 0;
  for (size_t e = 0; e < model.entry_count(); ++e) {
    const schema::EntryPoint& entry = model.entry(e);
    if (entry.starts()) continue;
    most = std::max<uint64_t>(most, entry.capacity() == 0 ? kMaxPosition : entry.capacity());
  }
  return most;
}

/// Where each ring may stand, by itself and beside those that take the same rows.
Status check_ring(const Session& session, const std::byte* state, uint64_t tokens, uint32_t index,
                  Error* error) {
  const schema::Model& graph = *session.model->graph;
  const schema::Ring& ring = *graph.rings()->Get(index);
  const RingPosition position = ring_of_state(state, index);
  const uint32_t capacity = ring.capacity(), pinned = ring.pinned();
  // While rows are still being pinned none has moved.
  const bool moved = pinned != 0 && position.count <= pinned && position.head != 0;
  if (position.count > capacity || position.head >= capacity - pinned || moved) {
    return fail(error, Status::kStateCorrupt, "the state's memory '%.80s' is out of range",
                ring.name()->c_str());
  }
  const auto is_at = [&](const RingPosition& other) {
    return position.head == other.head && position.count == other.count;
  };
  const uint32_t like = session.model->ring_moves->like(index);
  if (!is_at(ring_of_state(state, like))) {
    return fail(error, Status::kStateCorrupt,
                "the state's memories '%.80s' and '%.80s' take the same rows and do not agree",
                graph.rings()->Get(like)->name()->c_str(), ring.name()->c_str());
  }
  RingPosition place;
  if (session.model->ring_moves->place_after(graph, index, tokens, &place) && !is_at(place)) {
    return fail(error, Status::kStateCorrupt,
                "the state's memory '%.80s' does not fit a stream of %llu tokens",
                ring.name()->c_str(), static_cast<unsigned long long>(tokens));
  }
  return Status::kOk;
}

// A checksum is no proof: positions index memory and are checked like everything from outside.
Status check_positions(const Session& session, const std::byte* state, Error* error) {
  StateHeader header;
  std::memcpy(&header, state, sizeof(header));
  if (const uint64_t most = most_tokens(*session.model); header.position > most) {
    return fail(error, Status::kStateCorrupt, "the state has had %llu tokens, the model takes %llu",
                static_cast<unsigned long long>(header.position),
                static_cast<unsigned long long>(most));
  }
  for (uint32_t i = 0; i < session.rings.size(); ++i) {
    if (!is_lenders(session, i)) {
      OXB_TRY(check_ring(session, state, header.position, i, error));
    }
  }
  return Status::kOk;
}

// Steps were promised that the numbers in a state are below its limit.
Status check_numbers(const Session& session, const std::byte* state, Error* error) {
  const HostView view = HostView::places(session);
  for (uint32_t i = 0; i < session.model->graph->tensors()->size(); ++i) {
    Tensor tensor;
    if (!view.own_state(i, &tensor) || tensor.type != DataType::kI32) continue;
    const std::byte* rows = state + (tensor.data - view.state().data());
    // Also those that a ring does not hold: a push that leaves this state out makes them its rows.
    for (size_t at = 0; at < size_t{tensor.rows} * tensor.width; ++at) {
      int32_t value = 0;
      std::memcpy(&value, rows + at * sizeof(value), sizeof(value));
      if (value < 0 || static_cast<uint32_t>(value) >= tensor.limit) {
        return fail(error, Status::kStateCorrupt,
                    "the state's tensor '%.80s' has the value %d, expected 0 to %u", tensor.name,
                    value, tensor.limit - 1);
      }
    }
  }
  return Status::kOk;
}

/// The rows that are filled; all else is zero, so that a saved state depends on its stream alone. What a push can leave
/// out is copied whole: rows that left may come back.
void copy_filled_rows(const Session& session, const HostView& view, std::byte* blob) {
  std::memset(blob, 0, view.state().size());
  const std::byte* from = view.state().data();
  const auto copy = [&](const void* data, size_t bytes) {
    const std::byte* begin = static_cast<const std::byte*>(data);
    std::memcpy(blob + (begin - from), begin, bytes);
  };
  copy(session.header, sizeof(*session.header));
  copy(session.rings.data(), session.rings.size_bytes());
  for (uint32_t i = 0; i < session.model->graph->tensors()->size(); ++i) {
    Tensor state;
    if (!view.own_state(i, &state)) continue;
    const bool whole = is_kept_whole(session, state);
    const size_t rows = whole ? state.rows : filled_rows(session, state);
    for (size_t r = 0; r < rows; ++r) {
      const size_t slot = whole ? r : state_slot(state, session.rings.data(), r);
      copy(state.data + slot * state.stride(), state.stride());
      if (state.scales != nullptr) {
        copy(state.row_scales(slot), state.scale_groups * sizeof(float));
      }
    }
  }
}

/// What a turned row was made of: turning it again gives it `hadamard` times.
void turn_back(const Tensor& tensor, float* row) {
  if (tensor.hadamard == 0) return;
  hadamard_row(row, tensor.width, tensor.hadamard);
  const float factor = 1.0f / static_cast<float>(tensor.hadamard);
  for (uint32_t i = 0; i < tensor.width; ++i) row[i] *= factor;
}

/// Of I8 and I4Rows.
void read_codes(const Tensor& tensor, size_t slot, float* values) {
  const float* scales = tensor.row_scales(slot);
  const uint32_t group_width = tensor.width / tensor.scale_groups;
  const bool packed = tensor.type == DataType::kI4Rows;
  const auto* blocks = reinterpret_cast<const I4RowBlock*>(tensor.data + slot * tensor.stride());
  int8_t block[kI4RowColumns];
  const int8_t* codes = packed ? block : tensor.i8(slot);
  for (uint32_t i = 0; i < tensor.width; ++i) {
    const uint32_t column = packed ? i % kI4RowColumns : i;
    if (packed && column == 0) unpack_i4_row(blocks + i / kI4RowColumns, kI4RowColumns, block);
    values[i] = static_cast<float>(codes[column]) * scales[i / group_width];
  }
}

}  // namespace

size_t state_blob_bytes(size_t state_bytes) { return sizeof(BlobHeader) + state_bytes; }
size_t state_blob_bytes(const Session& session) { return state_blob_bytes(session.state.size()); }

Status write_state(const Session& session, StateForm form, std::span<std::byte> blob,
                   Error* error) {
  if (session.needs_reset || session.shared_needs_reset) {
    return fail(error, Status::kNeedsReset,
                "the last run failed half-way: there is no whole state");
  }
  if (blob.data() == nullptr || blob.size() < state_blob_bytes(session)) {
    return fail(error, Status::kBufferTooSmall, "the buffer has %zu bytes; the state needs %zu",
                blob.size(), state_blob_bytes(session));
  }
  HostView view;
  OXB_TRY(HostView::read(session, &view, error));
  BlobHeader header = {};
  std::memcpy(header.magic, magic(form), sizeof(header.magic));
  header.version = kBlobVersion;
  header.header_bytes = sizeof(BlobHeader);
  header.model_hash = session.model->hash;
  header.state_bytes = session.state.size();
  std::byte* state = blob.data() + sizeof(header);
  if (form == StateForm::kSaved) {
    copy_filled_rows(session, view, state);
    header.checksum = hash_bytes(state, session.state.size());
  } else {
    std::memcpy(state, view.state().data(), view.state().size());
  }
  std::memcpy(blob.data(), &header, sizeof(header));
  return Status::kOk;
}

Status read_state(Session& session, StateForm form, std::span<const std::byte> blob, Error* error) {
  BlobHeader header;
  if (blob.data() == nullptr || blob.size() < sizeof(header)) {
    return fail(error, Status::kStateCorrupt, "the state has only %zu bytes", blob.size());
  }
  std::memcpy(&header, blob.data(), sizeof(header));
  if (std::memcmp(header.magic, magic(form), sizeof(header.magic)) != 0 ||
      header.version != kBlobVersion || header.header_bytes != sizeof(BlobHeader)) {
    return fail(error, Status::kStateCorrupt, "the bytes are not %s of this library's version",
                form == StateForm::kSaved ? "a saved state" : "a checkpoint");
  }
  if (header.model_hash != session.model->hash || header.state_bytes != session.state.size()) {
    return fail(error, Status::kStateMismatch,
                "the state belongs to another model: open the file it was saved with");
  }
  if (blob.size() < state_blob_bytes(session)) {
    return fail(error, Status::kStateCorrupt, "the state has %zu bytes of %zu: it is truncated",
                blob.size(), state_blob_bytes(session));
  }
  const std::byte* state = blob.data() + sizeof(header);
  if (form == StateForm::kSaved && hash_bytes(state, session.state.size()) != header.checksum) {
    return fail(error, Status::kStateCorrupt, "the state's checksum does not match: it is damaged");
  }
  OXB_TRY(check_positions(session, state, error));
  OXB_TRY(check_numbers(session, state, error));
  const HostView view = HostView::replace(session);
  std::memcpy(view.state().data(), state, view.state().size());
  for (uint32_t i = 0; i < session.rings.size(); ++i) {
    if (is_lenders(session, i)) session.rings[i] = session.lender->rings[i];
  }
  session.needs_reset = session.shared_needs_reset = false;
  session.draft = nullptr;
  return Status::kOk;
}

bool is_kept_whole(const Session& session, const Tensor& state) {
  return state_kind(state).begins_full || session.partly_written[static_cast<size_t>(state.ring)];
}

uint32_t filled_rows(const Session& session, const Tensor& tensor) {
  if (tensor.ring >= 0) return session.rings[static_cast<size_t>(tensor.ring)].count;
  return tensor.rows_symbol >= 0 ? session.symbols[static_cast<size_t>(tensor.rows_symbol)]
                                 : tensor.rows;
}

Status read_rows(const Session& session, uint32_t index, uint32_t rows, float* values,
                 Error* error) {
  HostView view;
  OXB_TRY(HostView::read(session, &view, error));
  const Tensor tensor = view.tensor(index);
  for (uint32_t r = 0; r < rows; ++r, values += tensor.width) {
    const size_t slot = state_slot(tensor, session.rings.data(), r);
    if (tensor.type == DataType::kF32) {
      std::memcpy(values, tensor.f32(slot), tensor.width * sizeof(float));
      turn_back(tensor, values);
      continue;
    }
    if (tensor.type == DataType::kI32) {
      for (uint32_t i = 0; i < tensor.width; ++i) {
        values[i] = static_cast<float>(tensor.i32(slot)[i]);
      }
      continue;
    }
    read_codes(tensor, slot, values);
    turn_back(tensor, values);
  }
  return Status::kOk;
}

Status copy_stream(Session& to, const Session& from, Error* error) {
  const auto lender = [](const Session& s) { return s.lender == nullptr ? &s : s.lender; };
  if (lender(to) != lender(from)) {
    return fail(error, Status::kInvalidArgument,
                "neither session borrows from the other, nor both from a third");
  }
  if (from.needs_reset) {
    return fail(error, Status::kNeedsReset, "the last run of the session failed half-way");
  }
  if (&to == &from) return Status::kOk;
  HostView source, target;
  OXB_TRY(HostView::read(from, &source, error));
  OXB_TRY(HostView::change(to, &target, error));
  const schema::Model& graph = *to.model->graph;
  *to.header = *from.header;
  for (uint32_t i = 0; i < to.rings.size(); ++i) {
    if (!graph.rings()->Get(i)->shared()) to.rings[i] = from.rings[i];
  }
  std::memcpy(target.own_states().data(), source.own_states().data(), source.own_states().size());
  to.needs_reset = false;
  to.draft = nullptr;
  return Status::kOk;
}

}  // namespace oxbow

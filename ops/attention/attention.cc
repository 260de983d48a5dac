// Runs attention: heads and queries are spread over threads; for each query the pattern and the
// filters say which slots it sees, and the stream feeds their keys to the kernel.

#include "ops/attention/attention.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ops/attention/filters.h"
#include "ops/attention/key_stream.h"
#include "ops/attention/params.h"

namespace oxbow {
namespace {

/// Queries of one head in one work item: enough to outweigh handing it out, and they share their
/// keys.
constexpr size_t kItemQueries = 8;

/// What all queries of a run share.
struct AttentionRun {
  const RunContext& context;
  const AttentionParams& params;
  /// That of the params, with what rings have room for.
  AttentionShape shape;
  /// All slots, and those of rings.
  uint64_t slots = 0;
  uint64_t memory_slots = 0;
  /// Of the mask, null without one.
  const uint32_t* turns = nullptr;
  const uint32_t* globals = nullptr;
  size_t global_count = 0;
};

size_t rows_of(const RunContext& context, const AttentionSource& source) {
  return source.rows_symbol < 0 ? source.rows : context.symbols[source.rows_symbol];
}

/// Counts slots, and lists what the mask and the flags say.
AttentionRun start_run(const RunContext& context, const AttentionParams& params) {
  AttentionRun run{context, params, params.shape};
  for (const int32_t ring : params.rooms) {
    if (ring >= 0) run.shape.relative_zero -= context.rings[ring].count;
  }
  size_t last_rows = 0;
  for (size_t s = 0; s < params.sources; ++s) {
    const AttentionSource& source = params.source[s];
    if (source.ring >= 0) {
      run.memory_slots += context.rings[source.ring].count;
    } else {
      last_rows = rows_of(context, source);
    }
  }
  run.slots = run.memory_slots + last_rows;
  if (params.mask != nullptr) {
    auto* turns = reinterpret_cast<uint32_t*>(context.scratch + params.turns_at);
    find_turns(params.mask, last_rows, turns);
    run.turns = turns;
  }
  if (params.globals != nullptr) {
    auto* list = reinterpret_cast<uint32_t*>(context.scratch + params.globals_at);
    run.global_count = find_globals(params.globals, last_rows, list);
    run.globals = list;
  }
  return run;
}

/// The pieces of memory that hold the keys of one head, in the order of their slots.
template <typename Element>
void list_pieces(const AttentionRun& run, size_t kv_head, KeyPieces<Element>* list) {
  const AttentionParams& params = run.params;
  uint64_t slot = 0;
  list->count = 0;
  const auto add = [&](const AttentionSource& source, size_t row, size_t count,
                       const int32_t* types, bool pinned) {
    if (count == 0) return;
    const size_t element = row * params.shape.key_stride + kv_head * params.shape.head_width;
    KeyPiece<Element>& piece = list->pieces[list->count++];
    piece.first = slot;
    piece.end = slot += count;
    piece.k = reinterpret_cast<const Element*>(source.k) + element;
    piece.v = reinterpret_cast<const Element*>(source.v) + element;
    piece.k_scales = nullptr;
    piece.v_scales = nullptr;
    if constexpr (std::is_same_v<Element, int8_t>) {
      const size_t scale = row * params.shape.key_scale_stride + kv_head;
      piece.k_scales = source.k_scales + scale;
      piece.v_scales = source.v_scales + scale;
    }
    piece.types = types;
    piece.pinned = pinned;
    piece.reach = UINT64_MAX;
  };
  for (size_t s = 0; s < params.sources; ++s) {
    const AttentionSource& source = params.source[s];
    if (source.ring < 0) {
      add(source, 0, rows_of(run.context, source), params.types, false);
      continue;
    }
    const RingPosition ring = run.context.rings[source.ring];
    const size_t fixed = std::min<size_t>(ring.count, source.pinned);
    const size_t moving = ring.count - fixed;
    const size_t head = ring_slot(ring, source.rows, source.pinned, source.pinned);
    const size_t up_to_end = std::min<size_t>(moving, source.rows - head);
    add(source, 0, fixed, nullptr, params.pinned_query != nullptr);
    if (fixed != 0) list->pieces[list->count - 1].reach = slot - fixed + source.rows;
    add(source, head, up_to_end, nullptr, false);
    add(source, source.pinned, moving - up_to_end, nullptr, false);
  }
}

template <typename Element>
const AttentionKernel<Element>& kernel_of(const AttentionParams& params) {
  if constexpr (std::is_same_v<Element, float>) {
    return *params.f32_kernel;
  } else {
    return *params.i8_kernel;
  }
}

/// What the terms need of one head; q, slot and type come with each query.
template <typename Element>
AttentionQuery<Element> query_of_head(const AttentionParams& params, size_t head) {
  const size_t column = head * params.shape.head_width;
  AttentionQuery<Element> query;
  if (params.shape.relative) {
    query.query_bias = params.query_bias + column;
    query.table = reinterpret_cast<const Element*>(params.table) + column;
    if constexpr (std::is_same_v<Element, int8_t>) query.table_scales = params.table_scales + head;
  }
  if (params.bias != nullptr) query.bias = params.bias + head;
  if (params.shape.alibi) query.slope = params.slopes[head];
  if (params.shape.segments) {
    query.segment_table = params.segment_table + column;
    query.segment_bias = params.segment_bias + column;
  }
  return query;
}

/// All keys that query `i`, at this slot, sees with this head.
template <typename Element>
void feed(const AttentionRun& run, size_t head, size_t i, uint64_t slot,
          KeyStream<Element>* stream) {
  const AttentionParams& params = run.params;
  const auto push = [stream](const SlotSpan& span) { stream->push(span); };
  if (run.turns == nullptr && run.globals == nullptr) {
    visit_pattern(params.pattern, head, slot, run.slots, push);
    return;
  }
  const uint64_t kept = params.mask_keeps_own ? i : kNoRow;
  const MaskFilter mask(params.mask, run.turns, run.memory_slots, kept, push);
  const auto push_masked = [&](const SlotSpan& span) {
    if (run.turns == nullptr) {
      push(span);
    } else {
      mask.push(span);
    }
  };
  GlobalsFilter globals(run.globals, run.global_count, run.memory_slots, push_masked);
  visit_pattern(params.pattern, head, slot, run.slots,
                [&](const SlotSpan& span) { globals.push(span); });
  globals.finish();
}

/// Sets what changes from query to query. Row i of the result goes to `out`; false: the mask says it is
/// zero.
template <typename Element>
bool start_query(const AttentionParams& params, size_t head, size_t i, uint64_t slot, float* out,
                 HeadTask<Element>* task) {
  const size_t width = params.q.width, column = head * params.shape.head_width;
  task->out = out + column;
  if (params.mask_queries && params.mask[i] == 0) {
    std::fill_n(task->out, params.shape.head_width, 0.0f);
    return false;
  }
  AttentionQuery<Element>& query = task->query;
  query.q = params.q.f32(i) + column;
  query.slot = static_cast<size_t>(slot);
  if (params.pinned_query != nullptr) query.pinned_q = params.pinned_query + i * width + column;
  if (params.types != nullptr) query.type = params.types[i];
  return true;
}

/// Queries [first, last) of `heads` heads from `head` on, several heads only if they see the same slots;
/// row i of the result goes to out + (i - out_first) * width.
template <typename Element>
void attend(const AttentionRun& run, size_t head, size_t heads, size_t first, size_t last,
            std::byte* scratch, float* out, size_t out_first) {
  const AttentionParams& params = run.params;
  const size_t group = params.heads / params.kv_heads;
  KeyPieces<Element> pieces;
  list_pieces(run, head / group, &pieces);
  HeadTask<Element> tasks[kMaxHeadsAtOnce];
  for (size_t h = 0; h < heads; ++h) {
    tasks[h].query = query_of_head<Element>(params, head + h);
    tasks[h].state.scratch = scratch + h * head_scratch_bytes(params);
    tasks[h].kv_head = (head + h) / group - head / group;
  }
  KeyStream<Element> stream(kernel_of<Element>(params), run.shape, pieces, {tasks, heads});
  for (size_t i = first; i < last; ++i) {
    float* row = out + (i - out_first) * params.q.width;
    const uint64_t slot = params.own ? run.memory_slots + i : run.slots;
    bool visible = true;
    for (size_t h = 0; h < heads; ++h) {
      visible = start_query(params, head + h, i, slot, row, tasks + h);
    }
    if (!visible) continue;
    stream.begin();
    feed(run, head, i, slot, &stream);
    stream.end();
  }
}

template <typename Element>
Status run_attention(RunContext& context, const void* raw_params) {
  const auto& params = *static_cast<const AttentionParams*>(raw_params);
  const AttentionRun run = start_run(context, params);
  const size_t rows = context.rows(params.q);
  const size_t step = float_rows(params, rows);
  const size_t worker_bytes = params.heads_at_once * head_scratch_bytes(params);
  // One query reads all keys for itself alone, which is what it waits for: see KeyStream.
  const size_t heads = rows == 1 ? params.heads_at_once : 1;
  const size_t groups = ceil_div(params.heads, heads);
  const bool quantise = params.out.type == DataType::kI8;
  Tensor out = params.out;
  auto* float_out = reinterpret_cast<float*>(context.scratch);
  std::byte* workers = context.scratch + params.workers_at;

  for (size_t first = 0; first < rows; first += step) {
    const size_t last = std::min(rows, first + step);
    float* target = quantise ? float_out : out.f32(first);
    const size_t blocks = ceil_div(last - first, kItemQueries);
    parallel_for(context.pool, blocks * groups, [&](size_t item, size_t worker) {
      const size_t head = item / blocks * heads;
      const size_t begin = first + item % blocks * kItemQueries;
      attend<Element>(run, head, std::min(heads, params.heads - head), begin,
                      std::min(last, begin + kItemQueries), workers + worker * worker_bytes, target,
                      first);
    });
    if (!quantise) continue;
    parallel_for(context.pool, last - first, [&](size_t row, size_t) {
      quantize_into(params.quantize, target + row * out.width, out, first + row);
    });
  }
  return Status::kOk;
}

}  // namespace

RunFunction attention_run_function(DataType keys) {
  return keys == DataType::kF32 ? run_attention<float> : run_attention<int8_t>;
}

}  // namespace oxbow

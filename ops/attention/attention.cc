// Runs attention: heads and queries are spread over threads; for each query its pattern, or seen.h with what masks, flags
// and terms have to say, tells the positions that it sees, whose keys go to the kernel tile by tile. The whole way of one
// query is here, in the pattern's file, in generic.h, in the files of its terms and in that of the ISA's loops.

#include "ops/attention/attention.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "ops/attention/key_ranges.h"
#include "ops/attention/params.h"
#include "ops/attention/seen.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

/// Queries of one head in one work item: enough to outweigh handing it out, and they share their
/// keys.
constexpr size_t kItemQueries = kBlockQueries;

/// What all queries of a run share.
struct AttentionRun {
  const RunContext& context;
  const AttentionParams& params;
  /// That of the params, with what rings have room for.
  AttentionShape shape;
  PatternParams pattern;
  Sight sight;
};

/// Rows that a source holds in this run.
size_t rows_of(const RunContext& context, const AttentionSource& source) {
  if (source.ring >= 0) return context.rings[source.ring].count;
  return source.rows_symbol < 0 ? source.rows : context.symbols[source.rows_symbol];
}

/// Counts positions.
AttentionRun start_run(const RunContext& context, const AttentionParams& params) {
  AttentionRun run{context, params, params.shape, params.pattern, {}};
  for (const int32_t ring : params.terms.rooms.rings) {
    if (ring >= 0) run.shape.relative_zero -= context.rings[ring].count;
  }
  Sight& sight = run.sight;
  for (size_t s = 0; s < params.sources; ++s) {
    sight.positions += rows_of(context, params.source[s]);
  }
  const AttentionSource& last = params.source[params.sources - 1];
  sight.last_source = sight.positions - (last.ring >= 0 ? 0 : rows_of(context, last));
  run.pattern.origin = context.position - sight.last_source;
  return run;
}

/// Whether rows whose mask is 0 give zeros.
bool masks_queries(const AttentionRun& run) {
  return run.params.terms.key_mask.masks_queries &&
         !(run.pattern.kind == schema::PatternKind::ListedBlocks &&
           run.sight.positions <= run.pattern.full_up_to);
}

/// The ranges of memory that hold the keys of one head, in the order of their positions.
template <typename Element>
void list_ranges(const AttentionRun& run, size_t kv_head, KeyRanges<Element>* list) {
  const AttentionParams& params = run.params;
  const AttentionShape& shape = params.shape;
  uint64_t position = 0;
  list->count = 0;
  const auto add = [&](const AttentionSource& source, size_t row, size_t count) {
    KeyRange<Element>& range = list->ranges[list->count];
    if (count == 0) return &range;
    ++list->count;
    range.first = position;
    range.end = position += count;
    range.k = reinterpret_cast<const Element*>(source.k) + row * shape.key_stride +
              kv_head * shape.head_width;
    range.v = reinterpret_cast<const Element*>(source.v) + row * shape.value_stride +
              kv_head * shape.value_width;
    range.k_scales = nullptr;
    range.v_scales = nullptr;
    if constexpr (std::is_same_v<Element, int8_t>) {
      const size_t scale = row * shape.scale_stride + kv_head;
      range.k_scales = source.k_scales + scale;
      range.v_scales = source.v_scales + scale;
    }
    range.row = kNoRow;
    range.pinned = false;
    range.reach = UINT64_MAX;
    range.packed_k_stride = source.packed_k_stride;
    range.packed_v_stride = source.packed_v_stride;
    if constexpr (std::is_same_v<Element, int8_t>) {
      if (source.packed_k_stride != 0) {
        range.k = reinterpret_cast<const int8_t*>(source.k) + row * source.packed_k_stride +
                  i4_row_bytes(kv_head * shape.head_width);
        range.v = reinterpret_cast<const int8_t*>(source.v) + row * source.packed_v_stride +
                  i4_row_bytes(kv_head * shape.value_width);
      }
    }
    return &range;
  };
  for (size_t s = 0; s < params.sources; ++s) {
    const AttentionSource& source = params.source[s];
    const size_t rows = rows_of(run.context, source);
    if (source.ring < 0) {
      add(source, 0, rows)->row = s + 1 == params.sources ? 0 : kNoRow;
      continue;
    }
    const RingPosition ring = run.context.rings[source.ring];
    const size_t fixed = std::min<size_t>(rows, source.pinned);
    const size_t moving = rows - fixed;
    const size_t head = ring_slot(ring, source.rows, source.pinned, source.pinned);
    const size_t up_to_end = std::min<size_t>(moving, source.rows - head);
    const uint64_t first = position;
    KeyRange<Element>* pinned = add(source, 0, fixed);
    pinned->pinned = params.terms.pinned_query.q != nullptr;
    pinned->reach = first + source.rows;
    add(source, head, up_to_end);
    add(source, source.pinned, moving - up_to_end);
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

/// Sets what changes from query to query. Row i of the result goes to `out`; false: the mask says it is
/// zero.
bool start_query(const AttentionRun& run, size_t i, uint64_t position, float* out, HeadTask* task) {
  const AttentionParams& params = run.params;
  AttentionQuery& query = task->query;
  const size_t column = query.head * params.shape.head_width;
  task->out = out + query.head * params.shape.value_width;
  // Only then the mask has a row for each query.
  if (params.terms.key_mask.mask != nullptr && masks_queries(run) &&
      params.terms.key_mask.mask[i] == 0) {
    std::fill_n(task->out, params.shape.value_width, 0.0f);
    return false;
  }
  query.q = params.q.f32(i) + column;
  query.position = static_cast<size_t>(position);
  query.row = i;
  const float* pinned = params.terms.pinned_query.q;
  if (pinned != nullptr) query.pinned_q = pinned + i * params.q.width + column;
  return true;
}

/// What a query sees, in few spans.
class SeenSpans {
 public:
  void push(const PositionSpan& span) {
    if (count_ == kMost) overflowed_ = true;
    if (overflowed_) return;
    spans_[count_++] = span;
    keys_ += span.count;
  }
  bool overflowed() const { return overflowed_; }
  uint64_t keys() const { return keys_; }
  std::span<const PositionSpan> spans() const { return {spans_, count_}; }

  /// Whether these are the first keys of the others.
  bool begins(const SeenSpans& others) const {
    for (size_t i = 0; i < count_; ++i) {
      if (i == others.count_) return false;
      const PositionSpan &own = spans_[i], &other = others.spans_[i];
      // The step from a key that is alone leads nowhere.
      if (own.first != other.first || (own.step != other.step && own.count > 1)) return false;
      if (i + 1 < count_ ? own.count != other.count : own.count > other.count) return false;
    }
    return true;
  }

 private:
  /// A mask that has more holes is rare.
  static constexpr size_t kMost = 16;
  PositionSpan spans_[kMost];
  size_t count_ = 0;
  uint64_t keys_ = 0;
  bool overflowed_ = false;
};

uint64_t position_of(const AttentionRun& run, size_t row) {
  return run.params.own ? run.sight.last_source + row : run.sight.positions;
}

/// What row `row` sees with this head.
void visit_row(const AttentionRun& run, size_t head, size_t row, SpanSink sink) {
  const Sight& sight = run.sight;
  if (sight.positions == 0) return;
  const uint64_t query = position_of(run, row);
  if (run.params.filters) {
    visit_seen(sight, run.pattern, run.params.terms, head, row, query, sink);
  } else {
    run.pattern.visit(run.pattern, head, query, sight.positions, sink);
  }
}

/// Whether what a range's keys are multiplied with, and how far they are away, is told by their positions alone.
template <typename Element>
bool are_plain(const KeyRanges<Element>& ranges, uint64_t last_query) {
  for (size_t p = 0; p < ranges.count; ++p) {
    if (ranges.ranges[p].pinned || ranges.ranges[p].reach < last_query) return false;
  }
  return true;
}

/// Makes tiles of the keys that are pushed and gives them to the kernel. Several heads that see the same positions take
/// each tile in turn: their keys lie side by side, and memory gives whole rows faster than columns of them. Or they are
/// a block (attend_spans).
template <typename Element>
class KeyStream {
 public:
  /// All of these live longer than the stream. `ranges` are of the first head.
  KeyStream(const AttentionKernel<Element>& kernel, const AttentionShape& shape,
            const AttentionTerms& terms, const KeyRanges<Element>& ranges,
            std::span<HeadTask> heads, bool block = false)
      : kernel_(kernel),
        shape_(shape),
        unpacked_shape_(shape),
        terms_(terms),
        ranges_(ranges),
        heads_(heads),
        is_block_(block) {
    if (!unpacks()) return;
    unpacked_shape_.key_stride = shape.head_width;
    unpacked_shape_.value_stride = shape.value_width;
    unpacked_shape_.scale_stride = 1;
  }

  void begin() {
    range_ = ranges_.ranges;
    // One head alone reads keys that its other queries have just read, and small memories stay in the
    // caches from token to token.
    const uint64_t positions = ranges_.count == 0 ? 0 : ranges_.ranges[ranges_.count - 1].end;
    looks_ahead_ = !is_block_ && !unpacks() && heads_.size() > 1 &&
                   positions * shape_.key_stride * sizeof(Element) > kCachedBytes;
    tile_.span_count = tile_.keys = unpacked_.keys = 0;
    for (HeadTask& head : heads_) {
      kernel_.begin(head.query, shape_, terms_, &head.state, head.out);
    }
  }

  /// The next keys; each is newer than all before.
  void push(PositionSpan span) {
    while (span.count != 0) {
      while (span.first >= range_->end) ++range_;
      const uint64_t inside = (range_->end - span.first + span.step - 1) / span.step;
      const uint64_t room = kAttentionTile - tile_.keys;
      const uint64_t count = smaller(smaller(span.count, inside), room);
      add_keys(span.first, static_cast<size_t>(count), span.step);
      span.first += count * span.step;
      span.count -= count;
    }
  }

  void end() {
    if (tile_.keys != 0) flush();
    for (HeadTask& head : heads_) kernel_.end(shape_, terms_, &head.state, head.out);
  }

 private:
  void add_keys(uint64_t position, size_t count, uint64_t step) {
    const auto row = static_cast<size_t>(position - range_->first);
    range_of_[tile_.span_count] = range_;
    KeySpan<Element>& span = tile_.spans[tile_.span_count++];
    span.k = range_->k + row * key_stride(*range_);
    span.v = range_->v + row * value_stride(*range_);
    span.k_scales = nullptr;
    span.v_scales = nullptr;
    if (shape_.scale_stride != 0) {
      span.k_scales = range_->k_scales + row * shape_.scale_stride;
      span.v_scales = range_->v_scales + row * shape_.scale_stride;
    }
    span.row = range_->row == kNoRow ? kNoRow : range_->row + row;
    span.count = count;
    // A step that is not taken may lead anywhere.
    span.step = count == 1 ? 1 : static_cast<size_t>(step);
    const uint64_t query = heads_[0].query.position;
    const uint64_t beyond = query > range_->reach ? query - range_->reach : 0;
    span.position = static_cast<size_t>(position + beyond);
    span.pinned = range_->pinned;
    tile_.keys += count;
    if (tile_.keys == kAttentionTile) flush();
  }

  void flush_block() {
    HeadTask* tasks[kBlockQueries];
    size_t count = 0;
    for (HeadTask& head : heads_) {
      if (head.to_come == 0) continue;
      head.seen = static_cast<size_t>(smaller(head.to_come, tile_.keys));
      head.to_come -= head.seen;
      tasks[count++] = &head;
    }
    tile_.keys_ahead.rows = tile_.values_ahead.rows = nullptr;
    if (count != 0) kernel_.block(tasks, count, shape_of_tiles(), terms_, tile_of(0));
    tile_.span_count = tile_.keys = unpacked_.keys = 0;
  }

  bool unpacks() const { return std::is_same_v<Element, int8_t> && ranges_.unpacked != nullptr; }
  const AttentionShape& shape_of_tiles() const { return unpacks() ? unpacked_shape_ : shape_; }
  size_t key_stride(const KeyRange<Element>& range) const {
    return unpacks() && range.packed_k_stride != 0 ? range.packed_k_stride : shape_.key_stride;
  }
  size_t value_stride(const KeyRange<Element>& range) const {
    return unpacks() && range.packed_v_stride != 0 ? range.packed_v_stride : shape_.value_stride;
  }

  /// What a kernel is given: the tile itself, or, of a head so many further on, its keys unpacked side by side, those that
  /// are not packed too.
  const KeyTile<Element>& tile_of(size_t kv_head) {
    if constexpr (std::is_same_v<Element, int8_t>) {
      if (unpacks()) {
        if (unpacked_.keys == 0 || unpacked_head_ != kv_head) unpack(kv_head);
        return unpacked_;
      }
    }
    return tile_;
  }

  [[gnu::noinline]] void unpack(size_t kv_head) {
    const size_t key_width = shape_.head_width, value_width = shape_.value_width;
    auto* keys = reinterpret_cast<int8_t*>(ranges_.unpacked);
    int8_t* values = keys + kAttentionTile * key_width;
    auto* key_scales = reinterpret_cast<float*>(values + kAttentionTile * value_width);
    float* value_scales = key_scales + kAttentionTile;
    unpacked_head_ = kv_head;
    unpacked_.span_count = unpacked_.keys = 0;
    const auto copy = [&](const int8_t* from, bool packed, size_t width, int8_t* to) {
      if (packed) {
        const auto* row = reinterpret_cast<const I4RowBlock*>(from);
        unpack_i4_row(row + kv_head * (width / kI4RowColumns), width, to);
      } else {
        std::memcpy(to, from + kv_head * width, width);
      }
    };
    for (size_t s = 0; s < tile_.span_count; ++s) {
      const KeySpan<Element>& span = tile_.spans[s];
      const KeyRange<Element>& range = *range_of_[s];
      const bool packed = range.packed_k_stride != 0;
      for (size_t j = 0; j < span.count; ++j) {
        const size_t at = j * span.step, to = unpacked_.keys++;
        copy(span.k + at * key_stride(range), packed, key_width, keys + to * key_width);
        copy(span.v + at * value_stride(range), packed, value_width, values + to * value_width);
        key_scales[to] = span.k_scales[at * shape_.scale_stride + kv_head];
        value_scales[to] = span.v_scales[at * shape_.scale_stride + kv_head];
        if (j != 0 && span.step == 1) continue;
        // Side by side lie only keys of neighbouring positions.
        KeySpan<Element>& own = unpacked_.spans[unpacked_.span_count++];
        own = span;
        own.k = keys + to * key_width;
        own.v = values + to * value_width;
        own.k_scales = key_scales + to;
        own.v_scales = value_scales + to;
        own.count = span.step == 1 ? span.count : 1;
        own.step = 1;
        own.position = span.position + at;
        if (span.row != kNoRow) own.row = span.row + at;
      }
    }
    unpacked_.keys_ahead.rows = unpacked_.values_ahead.rows = nullptr;
  }

  void flush() {
    if (is_block_) return flush_block();
    size_t kv_head = 0;
    for (size_t h = 0; h < heads_.size(); ++h) {
      if (!unpacks()) move_spans(heads_[h].kv_head - kv_head);
      kv_head = heads_[h].kv_head;
      look_ahead(h);
      kernel_.tile(heads_[h].query, shape_of_tiles(), terms_, tile_of(kv_head), &heads_[h].state,
                   heads_[h].out);
    }
    tile_.span_count = tile_.keys = unpacked_.keys = 0;
  }

  /// To a head so many further on.
  void move_spans(size_t kv_heads) {
    if (kv_heads == 0) return;
    for (size_t s = 0; s < tile_.span_count; ++s) {
      KeySpan<Element>& span = tile_.spans[s];
      span.k += kv_heads * shape_.head_width;
      span.v += kv_heads * shape_.value_width;
      if (shape_.scale_stride != 0) {
        span.k_scales += kv_heads;
        span.v_scales += kv_heads;
      }
    }
  }

  /// The next tile likely follows this one in memory; each head asks for a part of it. Where that is
  /// wrong nothing is lost.
  void look_ahead(size_t h) {
    const KeySpan<Element>& span = tile_.spans[tile_.span_count - 1];
    tile_.keys_ahead.rows = tile_.values_ahead.rows = nullptr;
    if (!looks_ahead_ || span.step != 1) return;
    look_ahead(h, span.k + span.count * shape_.key_stride, shape_.key_stride, shape_.head_width,
               &tile_.keys_ahead);
    look_ahead(h, span.v + span.count * shape_.value_stride, shape_.value_stride,
               shape_.value_width, &tile_.values_ahead);
  }

  /// `next` is behind what head h has of the last row.
  void look_ahead(size_t h, const Element* next, size_t stride, size_t width,
                  RowsAhead<Element>* ahead) {
    ahead->rows = next - heads_[h].kv_head * width;
    ahead->stride = stride * sizeof(Element);
    ahead->row_lines = ceil_div((heads_.back().kv_head + 1) * width * sizeof(Element), kCacheLine);
    const size_t all = kAttentionTile * ahead->row_lines;
    ahead->first = all * h / heads_.size();
    ahead->count = all * (h + 1) / heads_.size() - ahead->first;
  }

  /// Of the keys of all heads that are expected to be near anyway.
  static constexpr size_t kCachedBytes = 128 * 1024;

  const AttentionKernel<Element>& kernel_;
  const AttentionShape& shape_;
  AttentionShape unpacked_shape_;
  const AttentionTerms& terms_;
  const KeyRanges<Element>& ranges_;
  std::span<HeadTask> heads_;
  bool is_block_;
  bool looks_ahead_ = false;
  const KeyRange<Element>* range_ = nullptr;
  KeyTile<Element> tile_;
  /// Where each of its spans lies.
  const KeyRange<Element>* range_of_[kAttentionTile];
  /// The same keys, unpacked, of one head; without keys: not made yet.
  KeyTile<Element> unpacked_;
  size_t unpacked_head_ = 0;
};

void store_log_sum(const AttentionParams& params, const HeadTask& task, size_t row, size_t head,
                   bool visible) {
  if (params.log_sums == nullptr) return;
  params.log_sums[row * params.heads + head] =
      visible ? task.state.max + log_f32(task.state.sum) : log_f32(0.0f);
}

/// Queries [first, last) of one head as one block, if each sees the first keys of what another sees; false: they
/// do not, and nothing was done.
template <typename Element>
bool attend_as_block(const AttentionRun& run, size_t head, size_t first, size_t last,
                     const KeyRanges<Element>& ranges, std::byte* scratch, float* out,
                     size_t out_first) {
  const AttentionParams& params = run.params;
  const AttentionKernel<Element>& kernel = kernel_of<Element>(params);
  if (kernel.block == nullptr || last - first < 2 || last - first > kBlockQueries ||
      !are_plain(ranges, position_of(run, last - 1))) {
    return false;
  }
  SeenSpans seen[kBlockQueries];
  const SeenSpans* most = seen;
  for (size_t i = first; i < last; ++i) {
    SeenSpans& of_query = seen[i - first];
    visit_row(run, head, i, sink_of(of_query));
    if (of_query.overflowed()) return false;
    if (of_query.keys() > most->keys()) most = &of_query;
  }
  for (size_t i = 0; i < last - first; ++i) {
    if (!seen[i].begins(*most)) return false;
  }
  HeadTask tasks[kBlockQueries];
  size_t rows[kBlockQueries], count = 0;
  for (size_t i = first; i < last; ++i) {
    HeadTask& task = tasks[count];
    task.query.head = head;
    task.state.scratch = scratch + count * head_scratch_bytes(params);
    task.to_come = seen[i - first].keys();
    float* row = out + (i - out_first) * params.out.width;
    if (start_query(run, i, position_of(run, i), row, &task)) {
      rows[count++] = i;
    } else {
      store_log_sum(params, task, i, head, false);
    }
  }
  if (count == 0) return true;
  attend_spans<Element>(kernel, run.shape, params.terms, ranges, {tasks, count}, most->spans(),
                        true);
  for (size_t i = 0; i < count; ++i) store_log_sum(params, tasks[i], rows[i], head, true);
  return true;
}

/// Queries [first, last) of `heads` heads from `head` on, several heads only if they see the same positions;
/// row i of the result goes to out + (i - out_first) * width.
template <typename Element>
void attend(const AttentionRun& run, size_t head, size_t heads, size_t first, size_t last,
            std::byte* scratch, float* out, size_t out_first) {
  const AttentionParams& params = run.params;
  const size_t group = params.heads / params.kv_heads;
  KeyRanges<Element> ranges;
  list_ranges(run, head / group, &ranges);
  ranges.unpacked = params.packed ? scratch + worker_task_bytes(params) : nullptr;
  if (heads == 1 && attend_as_block(run, head, first, last, ranges, scratch, out, out_first)) {
    return;
  }
  HeadTask tasks[kMaxHeadsAtOnce];
  for (size_t h = 0; h < heads; ++h) {
    tasks[h].query.head = head + h;
    tasks[h].state.scratch = scratch + h * head_scratch_bytes(params);
    tasks[h].kv_head = (head + h) / group - head / group;
  }
  KeyStream<Element> stream(kernel_of<Element>(params), run.shape, params.terms, ranges,
                            {tasks, heads});
  for (size_t i = first; i < last; ++i) {
    float* row = out + (i - out_first) * params.out.width;
    const uint64_t position = position_of(run, i);
    bool visible = true;
    for (size_t h = 0; h < heads; ++h) {
      visible = start_query(run, i, position, row, tasks + h);
    }
    if (visible) {
      stream.begin();
      visit_row(run, head, i, sink_of(stream));
      stream.end();
    }
    for (size_t h = 0; h < heads; ++h) store_log_sum(params, tasks[h], i, head + h, visible);
  }
}

template <typename Element>
Status run_attention(RunContext& context, const void* raw_params) {
  const auto& params = *static_cast<const AttentionParams*>(raw_params);
  AttentionRun run = start_run(context, params);
  const size_t rows = context.rows(params.q);
  if (params.filters || params.terms.has(schema::TermKind::Blocks)) {
    OXB_TRY(find_sight(context, params, rows, &run.sight, &run.pattern));
  }
  const size_t step = float_rows(params, rows);
  const size_t worker_bytes =
      worker_task_bytes(params) + (params.packed ? unpacked_bytes(params.shape) : 0);
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

template <typename Element>
void attend_spans(const AttentionKernel<Element>& kernel, const AttentionShape& shape,
                  const AttentionTerms& terms, const KeyRanges<Element>& ranges,
                  std::span<HeadTask> tasks, std::span<const PositionSpan> spans, bool block) {
  KeyStream<Element> stream(kernel, shape, terms, ranges, tasks, block);
  stream.begin();
  for (const PositionSpan& span : spans) stream.push(span);
  stream.end();
}

template void attend_spans(const AttentionKernel<float>&, const AttentionShape&,
                           const AttentionTerms&, const KeyRanges<float>&, std::span<HeadTask>,
                           std::span<const PositionSpan>, bool);
template void attend_spans(const AttentionKernel<int8_t>&, const AttentionShape&,
                           const AttentionTerms&, const KeyRanges<int8_t>&, std::span<HeadTask>,
                           std::span<const PositionSpan>, bool);

RunFunction attention_run_function(DataType keys) {
  return keys == DataType::kF32 ? run_attention<float> : run_attention<int8_t>;
}

}  // namespace oxbow

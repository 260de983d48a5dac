// Runs attention: heads and queries are spread over threads; for each query seen.h says which positions it
// sees, and the stream feeds their keys to the kernel.

#include "ops/attention/attention.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "ops/attention/key_stream.h"
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

/// Counts positions, and lists what the mask and the flags say.
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
  const size_t last_rows = last.ring >= 0 ? 0 : rows_of(context, last);
  sight.last_source = sight.positions - last_rows;
  if (params.terms.key_mask.mask != nullptr) {
    auto* turns = reinterpret_cast<uint32_t*>(context.scratch + params.turns_at);
    find_turns(params.terms.key_mask.mask, last_rows, turns);
    sight.turns = turns;
  }
  if (params.terms.globals.flags != nullptr) {
    auto* list = reinterpret_cast<uint32_t*>(context.scratch + params.globals_at);
    sight.global_count = find_globals(params.terms.globals.flags, last_rows, list);
    sight.globals = list;
  }
  run.pattern.origin = context.position - sight.last_source;
  return run;
}

/// A length of the term Groups: what the file says, or the product of the last numbers of the shape.
Status group_length(const RunContext& context, const GroupsTerm& groups, uint32_t length,
                    uint32_t dimensions, uint64_t* result) {
  *result = length;
  if (length != 0) return Status::kOk;
  const uint32_t numbers =
      groups.shape_symbol < 0 ? groups.shape_rows : context.symbols[groups.shape_symbol];
  uint64_t product = numbers < dimensions ? 0 : 1;
  for (uint32_t i = 0; i < dimensions && product != 0; ++i) {
    const int32_t number = groups.shape[numbers - 1 - i];
    // Rows are counted with 32 bits, so that a longer group is wrong and the product of two fits.
    product = number <= 0 || product > UINT32_MAX ? 0 : product * static_cast<uint64_t>(number);
  }
  *result = product;
  if (product != 0 && product <= UINT32_MAX) return Status::kOk;
  return fail(context.error, Status::kInvalidArgument,
              "the shape of attention's groups has %u numbers, expected at least %u, all positive",
              numbers, dimensions);
}

/// What groups there are. Without queries or keys there are none, and no shape is needed.
Status find_groups(const AttentionParams& params, size_t rows, AttentionRun* run) {
  if (!params.terms.has(schema::TermKind::Groups) || rows == 0 || run->sight.positions == 0) {
    return Status::kOk;
  }
  const GroupsTerm& groups = params.terms.groups;
  OXB_TRY(group_length(run->context, groups, groups.query_length, groups.query_dimensions,
                       &run->sight.query_group));
  return group_length(run->context, groups, groups.key_length, groups.key_dimensions,
                      &run->sight.key_group);
}

/// Takes the caller's list of blocks, if there is one.
Status take_blocks(const RunContext& context, AttentionRun& run) {
  PatternParams& pattern = run.pattern;
  const IndexList& list = run.params.terms.blocks.list;
  if (!run.params.terms.has(schema::TermKind::Blocks)) return Status::kOk;
  const uint64_t rows = list.rows(context), positions = run.sight.positions;
  const uint64_t blocks = ceil_div(positions, uint64_t{pattern.length});
  if (rows == 0 || positions <= pattern.full_up_to || blocks <= 2) return Status::kOk;
  // Below 2^36 times two numbers of 32 bits, of which one was checked against a width.
  const uint64_t others = run.params.heads * (blocks - 2);
  if (rows / others != pattern.listed || rows % others != 0) {
    return fail(context.error, Status::kInvalidArgument,
                "'%.60s' has %llu rows, expected %u for each of %zu heads and %llu blocks",
                list.name, static_cast<unsigned long long>(rows), pattern.listed, run.params.heads,
                static_cast<unsigned long long>(blocks - 2));
  }
  for (uint64_t i = 0; i < rows; ++i) {
    const int32_t block = list.values[i];
    if (block < 0 || static_cast<uint64_t>(block) >= blocks) {
      return fail(context.error, Status::kInvalidArgument, "'%.60s' names block %d of %llu",
                  list.name, block, static_cast<unsigned long long>(blocks));
    }
  }
  pattern.list = list.values;
  return Status::kOk;
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

/// Where spans go. Patterns and filters make much code, which is then there once.
struct SpanSink {
  void* target;
  void (*push)(void* target, const PositionSpan& span);
};

template <typename Target>
SpanSink sink_of(Target& target) {
  return {&target,
          [](void* to, const PositionSpan& span) { static_cast<Target*>(to)->push(span); }};
}

/// What row `row` sees with this head.
void visit_row(const AttentionRun& run, size_t head, size_t row, SpanSink sink) {
  visit_seen(run.sight, run.pattern, run.params.terms, head, row, position_of(run, row),
             [sink](const PositionSpan& span) { sink.push(sink.target, span); });
}

/// Whether what a range's keys are multiplied with, and how far they are away, is told by their positions alone.
template <typename Element>
bool are_plain(const KeyRanges<Element>& ranges, uint64_t last_query) {
  for (size_t p = 0; p < ranges.count; ++p) {
    if (ranges.ranges[p].pinned || ranges.ranges[p].reach < last_query) return false;
  }
  return true;
}

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
  KeyStream<Element> stream(kernel, run.shape, params.terms, ranges, {tasks, count}, true);
  stream.begin();
  for (const PositionSpan& span : most->spans()) stream.push(span);
  stream.end();
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
  OXB_TRY(take_blocks(context, run));
  const size_t rows = context.rows(params.q);
  OXB_TRY(find_groups(params, rows, &run));
  const size_t step = float_rows(params, rows);
  const size_t worker_bytes = tasks_at_once(params) * head_scratch_bytes(params);
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

// Runs the pattern Circle behind a ring: a text that goes on, row after row, as Reformer's authors' users know it from
// Hugging Face's library.
//
// The first run of a stream is one text, as sorted_run.cc has it: filled up to whole chunks, in a circle. Each row behind
// it meets what was there before. Without an order these are the rows of its chunk and of those before it. With one,
// rows keep their buckets in a ring of their own. For each round all rows are sorted by them, the new one is the last of
// its bucket, and it meets the chunk of that order in which it is and those before and behind, in a circle of all rows
// there are, as often as it comes round. As long as no row was sorted, it meets all.
//
//   code of a row, head and round = bucket << 2 | kind
//
// The original counts buckets of all rounds on, and those of a text that was filled up have one more a round; it guesses
// from the greatest it finds whether there were such, and orders rows of both kinds by what it has. Codes keep that.

#include <algorithm>
#include <type_traits>

#include "ops/attention/gathered.h"
#include "ops/attention/params.h"

namespace oxbow {
namespace {

enum CodeKind : uint32_t {
  /// Of a first run that was too short to be sorted.
  kShort = 0,
  kPlain = 1,
  /// Counted with one more bucket a round.
  kPadded = 2,
};

/// The parts of a worker's scratch.
struct WorkerParts {
  uint64_t keys, gathered, window, counts, total;
  bool fits;

  explicit WorkerParts(const AttentionParams& params)
      : keys(chunk_keys(params) + 1), gathered(0), fits(gathered_bytes(params, keys, &gathered)) {
    window = gathered;
    counts = round_up(window + keys * 4, kTensorAlignment);
    const uint64_t limit = params.terms.order.buckets() + params.pattern.rounds;
    total = round_up(counts + limit * 4, kTensorAlignment);
  }
};

template <typename Element>
class CachedRun {
 public:
  CachedRun(RunContext& context, const AttentionParams& params,
            const AttentionKernel<Element>& kernel)
      : context_(context),
        params_(params),
        kernel_(kernel),
        ring_(context.rings[params.source[0].ring]),
        past_(ring_.count),
        rows_(context.rows(params.q)),
        hashed_(params.terms.has(schema::TermKind::Order)),
        columns_(params.heads * params.pattern.rounds),
        buckets_(static_cast<uint32_t>(params.terms.order.buckets())) {}

  Status run() {
    const size_t capacity = params_.source[0].rows;
    if (past_ > capacity || rows_ > capacity - past_) {
      return fail(context_.error, Status::kInvalidArgument,
                  "a memory of %zu rows has %zu, and %zu come", capacity, past_, rows_);
    }
    if (hashed_) OXB_TRY(number_rows());
    mixed_ = begin_mixed_rows(context_, params_, rows_);
    if (past_ == 0) {
      first();
    } else {
      next();
    }
    end_mixed_rows(context_, params_, rows_);
    return Status::kOk;
  }

 private:
  struct Worker {
    GatheredKeys<Element> keys;
    uint32_t* window;
    uint32_t* counts;
  };
  Worker worker(size_t index) const {
    const WorkerParts parts(params_);
    std::byte* scratch = context_.scratch + params_.workers_at + index * params_.worker_bytes;
    return {GatheredKeys<Element>(params_, kernel_, parts.keys, scratch),
            reinterpret_cast<uint32_t*>(scratch + parts.window),
            reinterpret_cast<uint32_t*>(scratch + parts.counts)};
  }

  size_t slot(size_t row) const { return ring_slot(ring_, params_.source[0].rows, 0, row); }
  /// Of a row of the stream, all heads and rounds.
  const int32_t* codes(size_t row) const {
    return row < past_ ? params_.terms.order.kept + slot(row) * columns_
                       : params_.codes + (row - past_) * columns_;
  }
  static uint32_t kind(int32_t code) { return static_cast<uint32_t>(code) & 3; }
  /// A saved state may hold any number.
  uint32_t bucket(int32_t code) const {
    return std::min(static_cast<uint32_t>(code) >> 2, buckets_ - 1);
  }
  /// What rows are sorted by.
  uint32_t key(int32_t code, size_t round) const {
    return bucket(code) + (kind(code) == kPadded ? static_cast<uint32_t>(round) : 0);
  }
  /// The number that the original has for it.
  uint64_t number(int32_t code, size_t column) const {
    const uint64_t round = column % params_.pattern.rounds;
    return round * (uint64_t{buckets_} + (kind(code) == kPadded ? 1 : 0)) + bucket(code);
  }

  /// Whether rows were sorted before this one came: the first run was, or there is a whole chunk and a row behind the
  /// first run has found that.
  bool was_sorted(size_t row) const {
    const size_t length = params_.pattern.length;
    return row > length || kind(codes(0)[0]) != kShort ||
           (row == length && kind(codes(row - 1)[0]) != kShort);
  }

  /// The codes of this run's rows. Not inline, as find_window(): the same code serves both types of keys.
  [[gnu::noinline]] Status number_rows() {
    const PatternParams& pattern = params_.pattern;
    const OrderTerm& term = params_.terms.order;
    const bool is_given = term.may_be_given && term.given.rows(context_) != 0;
    const IndexList& list = is_given ? term.given : term.order;
    if (list.rows(context_) != columns_ * rows_) {
      return fail(context_.error, Status::kInvalidArgument, "'%.60s' has %u rows, expected %zu",
                  list.name, list.rows(context_), columns_ * rows_);
    }
    const auto put = [&](size_t row, uint32_t kind) {
      int32_t* to = params_.codes + row * columns_;
      for (size_t c = 0; c < columns_; ++c) {
        const uint32_t round = static_cast<uint32_t>(c % pattern.rounds);
        const uint32_t found = static_cast<uint32_t>(list.values[c * rows_ + row]);
        const uint32_t own = std::min(found - std::min(found, round * buckets_), buckets_ - 1);
        to[c] = static_cast<int32_t>(own << 2 | kind);
      }
    };
    if (past_ == 0) {
      const bool is_short = rows_ <= pattern.full_up_to;
      const uint32_t kind = is_short ? kShort : rows_ % pattern.block_width == 0 ? kPlain : kPadded;
      for (size_t row = 0; row < rows_; ++row) put(row, kind);
      return Status::kOk;
    }
    uint64_t greatest = 0;
    const auto look = [&](size_t row) {
      const int32_t* of = codes(row);
      for (size_t c = 0; c < columns_; ++c) greatest = std::max(greatest, number(of[c], c));
    };
    for (size_t row = 0; row < past_; ++row) look(row);
    for (size_t row = 0; row < rows_; ++row) {
      const bool has_more =
          was_sorted(past_ + row) && greatest >= uint64_t{pattern.rounds} * buckets_;
      put(row, has_more ? kPadded : kPlain);
      look(past_ + row);
    }
    return Status::kOk;
  }

  void add(GatheredKeys<Element>& keys, size_t row, size_t head) const {
    const size_t kv_head = head / (params_.heads / params_.kv_heads);
    if (row < past_) {
      keys.add(params_.source[0], slot(row), kv_head, row);
    } else {
      keys.add(params_.source[1], row - past_, kv_head, row);
    }
  }

  void attend(GatheredKeys<Element>& keys, size_t row, size_t head) const {
    const size_t own = row - past_;
    keys.attend(params_.q.f32(own), row, head);
    keys.mix(mixed_.out + own * params_.out.width + head * params_.shape.value_width,
             mixed_.sums + (own * params_.heads + head) * 2);
  }

  /// The first run of a stream.
  void first() {
    const PatternParams& pattern = params_.pattern;
    const bool full = rows_ <= pattern.full_up_to;
    const size_t padded = full ? rows_ : round_up(rows_, size_t{pattern.block_width});
    const size_t length = full ? rows_ : pattern.length;
    const size_t chunks = length == 0 ? 0 : padded / length;
    const size_t rounds = hashed_ && !full ? pattern.rounds : 1;
    auto* orders = reinterpret_cast<uint32_t*>(context_.scratch + params_.orders_at);
    if (hashed_ && !full) {
      parallel_for(context_.pool, columns_, [&](size_t column, size_t index) {
        sort(column, worker(index).counts, orders + column * rows_);
      });
    }
    for (size_t round = 0; round < rounds; ++round) {
      parallel_for(context_.pool, params_.heads * chunks, [&](size_t item, size_t index) {
        Worker work = worker(index);
        const size_t head = item / chunks, chunk = round * chunks + item % chunks;
        /// Calls visit(row) for the rows of a chunk that are no filling.
        const auto rows_of = [&](size_t other, const auto& visit) {
          for (size_t i = 0; i < length; ++i) {
            const size_t place = other % chunks * length + i;
            if (place >= rows_) return;
            const size_t column = head * pattern.rounds + other / chunks;
            visit(hashed_ && !full ? size_t{orders[column * rows_ + place]} : place);
          }
        };
        work.keys.clear();
        for (size_t i = 0; i < (full ? 1 : size_t{pattern.before} + 1 + pattern.after); ++i) {
          rows_of(full ? 0 : CirclePattern::neighbour(chunk, i, pattern.before, chunks * rounds),
                  [&](size_t row) { add(work.keys, row, head); });
        }
        rows_of(chunk, [&](size_t row) { attend(work.keys, row, head); });
      });
    }
  }

  /// Rows of the first run by one head and round.
  void sort(size_t column, uint32_t* counts, uint32_t* order) const {
    const size_t round = column % params_.pattern.rounds;
    begin_places(column, rows_, counts);
    for (size_t row = 0; row < rows_; ++row) {
      order[counts[key(codes(row)[column], round)]++] = static_cast<uint32_t>(row);
    }
  }

  /// counts[x] becomes the place of the first row whose key is x.
  void begin_places(size_t column, size_t rows, uint32_t* counts) const {
    const size_t rounds = params_.pattern.rounds, limit = buckets_ + rounds;
    std::fill_n(counts, limit, 0u);
    for (size_t row = 0; row < rows; ++row) ++counts[key(codes(row)[column], column % rounds)];
    uint32_t sum = 0;
    for (size_t x = 0; x < limit; ++x) {
      const uint32_t count = counts[x];
      counts[x] = sum;
      sum += count;
    }
  }

  /// Rows that go on.
  void next() {
    parallel_for(context_.pool, params_.heads * rows_, [&](size_t item, size_t index) {
      Worker work = worker(index);
      const size_t head = item / rows_, row = past_ + item % rows_;
      if (hashed_ && was_sorted(row)) {
        for (size_t round = 0; round < params_.pattern.rounds; ++round) {
          find_window(row, head * params_.pattern.rounds + round, work);
          work.keys.clear();
          for (size_t i = 0; i < chunk_keys(params_); ++i) add(work.keys, work.window[i], head);
          attend(work.keys, row, head);
        }
        return;
      }
      work.keys.clear();
      for (size_t other = hashed_ ? 0 : first_local(row); other <= row; ++other) {
        add(work.keys, other, head);
      }
      attend(work.keys, row, head);
    });
  }

  /// Where there are fewer chunks than it may see, the original counts from the end of the rows.
  size_t first_local(size_t row) const {
    const size_t length = params_.pattern.length, before = params_.pattern.before;
    const size_t chunk = row / length;
    if (chunk >= before) return (chunk - before) * length;
    const size_t last = (before - chunk) * length;
    return row > last ? row - last : 0;
  }

  /// The rows that `row` meets, in their order.
  [[gnu::noinline]] void find_window(size_t row, size_t column, Worker& work) const {
    const PatternParams& pattern = params_.pattern;
    const size_t round = column % pattern.rounds, all = row + 1, wide = chunk_keys(params_);
    begin_places(column, all, work.counts);
    // It is the last of its bucket.
    const uint32_t own = key(codes(row)[column], round);
    const size_t limit = buckets_ + pattern.rounds;
    const size_t place = (own + 1 < limit ? work.counts[own + 1] : all) - 1;
    const size_t back = size_t{pattern.before} * pattern.length % all;
    const size_t start = (place / pattern.length * pattern.length + all - back) % all;
    for (size_t other = 0; other < all; ++other) {
      const size_t at = work.counts[key(codes(other)[column], round)]++;
      const size_t from_start = at >= start ? at - start : at + all - start;
      if (from_start < wide) work.window[from_start] = static_cast<uint32_t>(other);
    }
    for (size_t i = all; i < wide; ++i) work.window[i] = work.window[i - all];
  }

  RunContext& context_;
  const AttentionParams& params_;
  const AttentionKernel<Element>& kernel_;
  const RingPosition ring_;
  size_t past_, rows_;
  bool hashed_;
  size_t columns_;
  uint32_t buckets_;
  MixedRows mixed_ = {};
};

template <typename Element>
Status run_cached(RunContext& context, const void* raw_params) {
  const auto& params = *static_cast<const AttentionParams*>(raw_params);
  if constexpr (std::is_same_v<Element, float>) {
    return CachedRun<Element>(context, params, *params.f32_kernel).run();
  } else {
    return CachedRun<Element>(context, params, *params.i8_kernel).run();
  }
}

}  // namespace

bool cached_scratch_bytes(const AttentionParams& params, uint64_t* bytes) {
  const WorkerParts parts(params);
  *bytes = parts.total;
  return parts.fits;
}

RunFunction cached_run_function(DataType keys) {
  return keys == DataType::kF32 ? run_cached<float> : run_cached<int8_t>;
}

}  // namespace oxbow

// Runs attention over rows that are sorted before they are cut into chunks, in several rounds (locality-sensitive
// hashing, Kitaev et al. 2020).
//
//   order      | rows of round 0 in their order | rows of round 1 in theirs | ...      for one head
//   chunks     |   0   |   1   |   2   |   3    |   4   |   5   |   6   |   7   |      behind the last comes the first
//
// The keys and values that a chunk's queries may see are gathered once, side by side; then each query takes those that
// are not newer than itself. Rounds follow each other, and each query is in every round once, so that threads
// never meet: what a round gives is mixed into what earlier ones gave, with the maximum and the sum of the weights
// kept apart. Their logarithm alone would lose what tells two rounds apart when a query sees only itself, at a score
// of -1e5.

#include <algorithm>
#include <type_traits>

#include "ops/attention/gathered.h"
#include "ops/attention/params.h"

namespace oxbow {
namespace {

/// One chunk of one head in one round.
template <typename Element>
class Chunk {
 public:
  Chunk(const AttentionParams& params, const AttentionKernel<Element>& kernel, size_t rows,
        std::byte* scratch)
      : params_(params), keys_(params, kernel, chunk_keys(params), scratch), rows_(rows) {}

  /// `order` is that of the head, of all rounds. Row i goes to out + i * width; `sums` has two numbers for each row.
  void run(const int32_t* order, size_t head, size_t chunk, float* out, float* sums) {
    const PatternParams& pattern = params_.pattern;
    const size_t length = pattern.length, chunks = rows_ / length * pattern.rounds;
    const size_t kv_head = head / (params_.heads / params_.kv_heads);
    const int32_t* mask = params_.terms.key_mask.mask;
    keys_.clear();
    for (size_t i = 0; i < size_t{pattern.before} + 1 + pattern.after; ++i) {
      const size_t other = CirclePattern::neighbour(chunk, i, pattern.before, chunks);
      for (size_t j = 0; j < length; ++j) {
        const auto row = static_cast<size_t>(order[other * length + j]);
        if (mask == nullptr || mask[row] != 0) keys_.add(params_.source[0], row, kv_head, row);
      }
    }
    for (size_t i = 0; i < length; ++i) {
      const auto row = static_cast<size_t>(order[chunk * length + i]);
      keys_.attend(params_.q.f32(row), row, head);
      keys_.mix(out + row * params_.out.width + head * params_.shape.value_width,
                sums + (row * params_.heads + head) * 2);
    }
  }

 private:
  const AttentionParams& params_;
  GatheredKeys<Element> keys_;
  size_t rows_;
};

/// A file may hold any step before this one.
Status check_order(const RunContext& context, const AttentionParams& params, size_t rows) {
  const IndexList& order = params.terms.order.order;
  const uint64_t lists = params.heads * uint64_t{params.pattern.rounds};
  if (rows % params.pattern.length != 0 || lists > UINT32_MAX / rows ||
      order.rows(context) != lists * rows) {
    return fail(
        context.error, Status::kInvalidArgument,
        "'%.60s' has %u rows, expected %zu for each of %zu heads and %u rounds, in chunks of %u",
        order.name, order.rows(context), rows, params.heads, params.pattern.rounds,
        params.pattern.length);
  }
  // Rows that a list names twice would be two threads'. There are two numbers for each row of each head.
  auto* named_in = reinterpret_cast<uint32_t*>(context.scratch + params.sums_at);
  std::fill_n(named_in, rows, 0u);
  const int32_t* next = order.values;
  for (uint32_t list = 1; list <= lists; ++list) {
    for (size_t i = 0; i < rows; ++i, ++next) {
      const auto row = static_cast<uint32_t>(*next);
      if (row >= rows || named_in[row] == list) {
        return fail(context.error, Status::kFileCorrupt, "'%.60s' names row %d%s of %zu",
                    order.name, *next, row < rows ? " twice" : "", rows);
      }
      named_in[row] = list;
    }
  }
  return Status::kOk;
}

template <typename Element>
Status run_sorted(RunContext& context, const void* raw_params) {
  const auto& params = *static_cast<const AttentionParams*>(raw_params);
  const size_t rows = context.rows(params.q);
  constexpr DataType kType = std::is_same_v<Element, float> ? DataType::kF32 : DataType::kI8;
  if (rows <= params.pattern.full_up_to) return attention_run_function(kType)(context, raw_params);
  OXB_TRY(check_order(context, params, rows));
  const AttentionKernel<Element>* kernel = nullptr;
  if constexpr (kType == DataType::kF32) {
    kernel = params.f32_kernel;
  } else {
    kernel = params.i8_kernel;
  }
  const MixedRows mixed = begin_mixed_rows(context, params, rows);
  std::byte* workers = context.scratch + params.workers_at;
  const size_t chunks = rows / params.pattern.length, rounds = params.pattern.rounds;
  for (size_t round = 0; round < rounds; ++round) {
    parallel_for(context.pool, params.heads * chunks, [&](size_t item, size_t worker) {
      const size_t head = item / chunks, chunk = round * chunks + item % chunks;
      Chunk<Element> work(params, *kernel, rows, workers + worker * params.worker_bytes);
      work.run(params.terms.order.order.values + head * rounds * rows, head, chunk, mixed.out,
               mixed.sums);
    });
  }
  end_mixed_rows(context, params, rows);
  return Status::kOk;
}

}  // namespace

bool sorted_scratch_bytes(const AttentionParams& params, uint64_t* bytes) {
  return gathered_bytes(params, chunk_keys(params), bytes);
}

RunFunction sorted_run_function(DataType keys) {
  return keys == DataType::kF32 ? run_sorted<float> : run_sorted<int8_t>;
}

}  // namespace oxbow

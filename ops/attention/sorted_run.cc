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
#include <cstring>
#include <type_traits>

#include "ops/attention/params.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

/// Gathered keys of one chunk. Rows keep the strides of one head.
template <typename Element>
struct Gathered {
  Element* k = nullptr;
  Element* v = nullptr;
  float* k_scales = nullptr;
  float* v_scales = nullptr;
  uint32_t* rows = nullptr;
  size_t count = 0;
};

struct Sizes {
  uint64_t keys, k, v, k_scales, v_scales, rows, head, out, total;
};

/// Where the parts of a worker's scratch begin.
bool sizes_of(const AttentionParams& params, Sizes* sizes) {
  const PatternParams& pattern = params.pattern;
  const uint64_t element = params.shape.scale_stride == 0 ? sizeof(float) : sizeof(int8_t);
  uint64_t bytes = 0;
  bool fits = checked_mul(uint64_t{pattern.length}, uint64_t{pattern.before} + 1 + pattern.after,
                          &sizes->keys);
  const auto take = [&](uint64_t count, uint64_t size, uint64_t* at) {
    uint64_t part = 0;
    *at = bytes;
    fits = fits && checked_mul(count, size, &part) && part < SIZE_MAX / 16;
    bytes = fits ? round_up(bytes + part, kTensorAlignment) : 0;
  };
  take(sizes->keys, params.shape.head_width * element, &sizes->k);
  take(sizes->keys, params.shape.value_width * element, &sizes->v);
  take(sizes->keys, 4, &sizes->k_scales);
  take(sizes->keys, 4, &sizes->v_scales);
  take(sizes->keys, 4, &sizes->rows);
  take(head_scratch_bytes(params), 1, &sizes->head);
  take(params.shape.value_width, 4, &sizes->out);
  sizes->total = bytes;
  return fits;
}

/// One chunk of one head in one round.
template <typename Element>
class Chunk {
 public:
  Chunk(const AttentionParams& params, const AttentionKernel<Element>& kernel, size_t rows,
        std::byte* scratch)
      : params_(params), kernel_(kernel), rows_(rows) {
    Sizes sizes;
    (void)sizes_of(params, &sizes);
    keys_.k = reinterpret_cast<Element*>(scratch + sizes.k);
    keys_.v = reinterpret_cast<Element*>(scratch + sizes.v);
    keys_.k_scales = reinterpret_cast<float*>(scratch + sizes.k_scales);
    keys_.v_scales = reinterpret_cast<float*>(scratch + sizes.v_scales);
    keys_.rows = reinterpret_cast<uint32_t*>(scratch + sizes.rows);
    state_.scratch = scratch + sizes.head;
    result_ = reinterpret_cast<float*>(scratch + sizes.out);
    shape_ = params.shape;
    shape_.key_stride = shape_.head_width;
    shape_.value_stride = shape_.value_width;
    shape_.scale_stride = std::is_same_v<Element, int8_t> ? 1 : 0;
  }

  /// `order` is that of the head, of all rounds. Row i goes to out + i * width; `sums` has two numbers for each row.
  void run(const int32_t* order, size_t head, size_t chunk, float* out, float* sums) {
    const PatternParams& pattern = params_.pattern;
    const size_t length = pattern.length, chunks = rows_ / length * pattern.rounds;
    const size_t group = params_.heads / params_.kv_heads;
    keys_.count = 0;
    for (size_t i = 0; i < size_t{pattern.before} + 1 + pattern.after; ++i) {
      const size_t other = CirclePattern::neighbour(chunk, i, pattern.before, chunks);
      gather(order + other * length, length, head / group);
    }
    for (size_t i = 0; i < length; ++i) {
      const auto row = static_cast<size_t>(order[chunk * length + i]);
      attend(row, head);
      mix(out + row * params_.out.width + head * shape_.value_width,
          sums + (row * params_.heads + head) * 2);
    }
  }

 private:
  void gather(const int32_t* order, size_t count, size_t kv_head) {
    const AttentionSource& source = params_.source[0];
    const AttentionShape& from = params_.shape;
    const int32_t* mask = params_.terms.key_mask.mask;
    for (size_t i = 0; i < count; ++i) {
      const auto row = static_cast<size_t>(order[i]);
      if (mask != nullptr && mask[row] == 0) continue;
      const size_t at = keys_.count++;
      std::memcpy(keys_.k + at * from.head_width,
                  reinterpret_cast<const Element*>(source.k) + row * from.key_stride +
                      kv_head * from.head_width,
                  from.head_width * sizeof(Element));
      std::memcpy(keys_.v + at * from.value_width,
                  reinterpret_cast<const Element*>(source.v) + row * from.value_stride +
                      kv_head * from.value_width,
                  from.value_width * sizeof(Element));
      if constexpr (std::is_same_v<Element, int8_t>) {
        keys_.k_scales[at] = source.k_scales[row * from.scale_stride + kv_head];
        keys_.v_scales[at] = source.v_scales[row * from.scale_stride + kv_head];
      }
      keys_.rows[at] = static_cast<uint32_t>(row);
    }
  }

  void attend(size_t row, size_t head) {
    query_.q = params_.q.f32(row) + head * shape_.head_width;
    query_.position = query_.row = row;
    query_.head = head;
    kernel_.begin(query_, shape_, params_.terms, &state_, result_);
    tile_.span_count = tile_.keys = 0;
    const bool causal = params_.pattern.causal;
    size_t at = 0;
    while (at < keys_.count) {
      if (causal && keys_.rows[at] > row) {
        ++at;
        continue;
      }
      // The own row, or a stretch of others.
      size_t end = at + 1;
      const bool own = keys_.rows[at] == row;
      while (!own && end < keys_.count && keys_.rows[end] != row &&
             !(causal && keys_.rows[end] > row)) {
        ++end;
      }
      push(at, end - at, own);
      at = end;
    }
    if (tile_.keys != 0) flush();
    kernel_.end(shape_, params_.terms, &state_, result_);
  }

  void push(size_t first, size_t count, bool own) {
    while (count != 0) {
      const size_t part = std::min(count, kAttentionTile - tile_.keys);
      KeySpan<Element>& span = tile_.spans[tile_.span_count++];
      span.k = keys_.k + first * shape_.key_stride;
      span.v = keys_.v + first * shape_.value_stride;
      span.k_scales = keys_.k_scales + first;
      span.v_scales = keys_.v_scales + first;
      span.count = part;
      span.step = 1;
      span.position = keys_.rows[first];
      span.row = own ? query_.row : kNoRow;
      span.pinned = false;
      tile_.keys += part;
      first += part;
      count -= part;
      if (tile_.keys == kAttentionTile) flush();
    }
  }

  void flush() {
    kernel_.tile(query_, shape_, params_.terms, tile_, &state_, result_);
    tile_.span_count = tile_.keys = 0;
  }

  /// sums[0] is the greatest score of all rounds so far, sums[1] the sum of the weights relative to it.
  void mix(float* out, float* sums) const {
    if (state_.sum == 0.0f) return;
    const float most = std::max(sums[0], state_.max);
    const float old_sum = sums[1] * exp_f32(sums[0] - most);
    const float new_sum = state_.sum * exp_f32(state_.max - most);
    const float all = old_sum + new_sum;
    const float keep = old_sum / all, add = new_sum / all;
    for (size_t d = 0; d < shape_.value_width; ++d) out[d] = out[d] * keep + result_[d] * add;
    sums[0] = most;
    sums[1] = all;
  }

  const AttentionParams& params_;
  const AttentionKernel<Element>& kernel_;
  size_t rows_;
  AttentionShape shape_;
  Gathered<Element> keys_;
  AttentionQuery query_;
  AttentionState state_ = {};
  KeyTile<Element> tile_;
  float* result_ = nullptr;
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
  for (uint64_t i = 0; i < lists * rows; ++i) {
    if (static_cast<uint32_t>(order.values[i]) >= rows) {
      return fail(context.error, Status::kFileCorrupt, "'%.60s' names row %d of %zu", order.name,
                  order.values[i], rows);
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
  Tensor out = params.out;
  const bool quantise = out.type == DataType::kI8;
  auto* target = quantise ? reinterpret_cast<float*>(context.scratch) : out.f32();
  auto* sums = reinterpret_cast<float*>(context.scratch + params.sums_at);
  std::byte* workers = context.scratch + params.workers_at;
  std::fill_n(target, rows * out.width, 0.0f);
  for (size_t i = 0; i < rows * params.heads; ++i) {
    sums[2 * i] = log_f32(0.0f);
    sums[2 * i + 1] = 0.0f;
  }
  const size_t chunks = rows / params.pattern.length, rounds = params.pattern.rounds;
  for (size_t round = 0; round < rounds; ++round) {
    parallel_for(context.pool, params.heads * chunks, [&](size_t item, size_t worker) {
      const size_t head = item / chunks, chunk = round * chunks + item % chunks;
      Chunk<Element> work(params, *kernel, rows, workers + worker * params.worker_bytes);
      work.run(params.terms.order.order.values + head * rounds * rows, head, chunk, target, sums);
    });
  }
  if (!quantise) return Status::kOk;
  parallel_for(context.pool, rows, [&](size_t row, size_t) {
    quantize_into(params.quantize, target + row * out.width, out, row);
  });
  return Status::kOk;
}

}  // namespace

bool sorted_scratch_bytes(const AttentionParams& params, uint64_t* bytes) {
  Sizes sizes;
  const bool fits = sizes_of(params, &sizes);
  *bytes = sizes.total;
  return fits;
}

RunFunction sorted_run_function(DataType keys) {
  return keys == DataType::kF32 ? run_sorted<float> : run_sorted<int8_t>;
}

}  // namespace oxbow

#include "ops/recurrence/recurrence.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/common/checks.h"
#include "runtime/base/math.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

using schema::Normaliser;

/// Tokens that make up for packing and unpacking.
constexpr size_t kPackedRun = 8;

struct Params {
  Tensor q, k, v, state, decay, factor, a, b, norm, floor, y;
  RecurrenceKernel kernel;
  ChunkRowsKernel chunk_rows;
  ChunksKernel chunks;
  size_t heads, key_heads, keys, values;
  Normaliser normaliser;
  float epsilon;
  bool reads, writes, read_before, delta, decay_per_key, rank_one;
  /// Where the rows of chunks begin in scratch, and the packed columns of each worker, in floats.
  size_t rows_at, packed_at;

  /// z is kept, and divides what is read.
  bool sums_keys() const {
    return normaliser == Normaliser::Keys || normaliser == Normaliser::Floored;
  }
  /// Long runs are cut into chunks.
  bool chunked() const {
    return reads && writes && !read_before && !decay_per_key && !rank_one &&
           keys > kRecurrenceChunkKeys && rows().rows >= kRecurrenceChunked;
  }
  /// Long runs keep the columns they work on side by side: rows of a wide state that lie a power of two apart would
  /// fight for the same lines of a cache.
  bool packs() const { return writes && values > kRecurrenceColumns && rows().rows >= kPackedRun; }
  /// What tells the number of tokens.
  const Tensor& rows() const { return reads ? q : k; }
};

/// A head's part of each token's row; none when the tensor is not there.
TokenRows rows_of(const Tensor& tensor, size_t first) {
  if (tensor.width == 0) return {};
  // One row that all tokens share.
  const bool same = tensor.rows_symbol < 0 && tensor.rows == 1;
  return {tensor.f32() + first, same ? 0 : tensor.width};
}

const float* at(const TokenRows& rows, size_t t) { return rows.data + t * rows.stride; }

/// The columns of a tile, at another place, side by side; and back.
void copy_columns(const RecurrenceTile& from, const RecurrenceTile& to) {
  for (size_t i = 0; i < from.keys; ++i) {
    std::memcpy(to.state + i * to.state_stride, from.state + i * from.state_stride,
                from.columns * sizeof(float));
  }
}

/// z <- w z + k, or f k, for all tokens of a head, and what each token's y is divided by.
void run_keys(const Params& p, size_t tokens, size_t head, float* divisors) {
  const size_t key_head = head / (p.heads / p.key_heads);
  const TokenRows q = rows_of(p.q, key_head * p.keys), k = rows_of(p.k, key_head * p.keys);
  const TokenRows decay = rows_of(p.decay, p.decay_per_key ? head * p.keys : head);
  const bool floored = p.normaliser == Normaliser::Floored;
  const TokenRows factor = floored ? rows_of(p.factor, head) : TokenRows{};
  const TokenRows floor = rows_of(p.floor, head);
  float* z = Tensor(p.norm).f32(head);
  const auto read = [&](size_t t) {
    const float sum = abs_f32(dot_f32(z, at(q, t), p.keys));
    // NaN stays.
    const float least = floored ? *at(floor, t) : p.epsilon;
    const float bounded = sum < least ? least : sum;
    divisors[t * p.heads + head] = floored ? bounded + p.epsilon : bounded;
  };
  for (size_t t = 0; t < tokens; ++t) {
    if (p.reads && (p.read_before || !p.writes)) read(t);
    for (size_t i = 0; p.writes && i < p.keys; ++i) {
      const float w = decay.data == nullptr ? 1.0f : at(decay, t)[p.decay_per_key ? i : 0];
      const float key = factor.data == nullptr ? at(k, t)[i] : *at(factor, t) * at(k, t)[i];
      z[i] = w * z[i] + key;
    }
    if (p.reads && !p.read_before && p.writes) read(t);
  }
}

/// n <- w n + 1 for all tokens of a head, and the decays and factors of a state divided by sqrt(n).
void run_decays(const Params& p, size_t tokens, size_t head, float* decays, float* factors) {
  const TokenRows decay = rows_of(p.decay, head), factor = rows_of(p.factor, head);
  float& n = Tensor(p.norm).f32()[head];
  for (size_t t = 0; t < tokens; ++t) {
    const float w = decay.data == nullptr ? 1.0f : *at(decay, t);
    const float before = n;
    n = before * w + 1.0f;
    const float root = __builtin_sqrtf(n);
    decays[t * p.heads + head] = __builtin_sqrtf(before) * w / root;
    factors[t * p.heads + head] = (factor.data == nullptr ? 1.0f : *at(factor, t)) / root;
  }
}

Status run_recurrence(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  const size_t tokens = context.rows(p.rows());
  float* scratch = reinterpret_cast<float*>(context.scratch);
  float* more = scratch + size_t{p.rows().rows} * p.heads;
  if (p.normaliser != Normaliser::None) {
    parallel_for(context.pool, p.heads, [&](size_t head, size_t) {
      if (p.sums_keys()) {
        run_keys(p, tokens, head, scratch);
      } else {
        run_decays(p, tokens, head, scratch, more);
      }
    });
  }
  const auto tile_of = [&](size_t head, size_t first) {
    const size_t key_head = head / (p.heads / p.key_heads);
    RecurrenceTile tile;
    tile.tokens = tokens;
    tile.keys = p.keys;
    tile.columns = std::min(kRecurrenceColumns, p.values - first);
    tile.state = Tensor(p.state).f32(head * p.keys) + first;
    tile.state_stride = p.values;
    tile.q = rows_of(p.q, key_head * p.keys);
    tile.k = rows_of(p.k, key_head * p.keys);
    tile.v = rows_of(p.v, head * p.values + first);
    tile.decay = rows_of(p.decay, p.decay_per_key ? head * p.keys : head);
    tile.decay_per_key = p.decay_per_key;
    tile.factor = rows_of(p.factor, head);
    tile.a = rows_of(p.a, head * p.keys);
    tile.b = rows_of(p.b, head * p.keys);
    if (p.sums_keys() && p.reads) tile.divisor = {scratch + head, p.heads};
    if (p.normaliser == Normaliser::Decays) {
      tile.decay = {scratch + head, p.heads};
      tile.factor = {more + head, p.heads};
    }
    tile.delta = p.delta;
    tile.read_before = p.read_before;
    if (p.reads) tile.y = Tensor(p.y).f32() + head * p.values + first;
    tile.y_stride = p.heads * p.values;
    return tile;
  };
  const bool chunked = p.chunked() && tokens >= kRecurrenceChunked;
  auto* rows = reinterpret_cast<ChunkRow*>(scratch + p.rows_at);
  if (chunked) {
    const size_t chunks = ceil_div(tokens, kRecurrenceChunk);
    parallel_for(context.pool, p.heads * chunks, [&](size_t item, size_t) {
      const size_t head = item / chunks;
      p.chunk_rows(tile_of(head, 0), item % chunks * kRecurrenceChunk, rows + head * tokens);
    });
  }
  const size_t tasks = ceil_div(p.values, kRecurrenceColumns);
  const bool packs = p.packs() && tokens >= kPackedRun;
  parallel_for(context.pool, p.heads * tasks, [&](size_t item, size_t worker) {
    const size_t head = item / tasks;
    const RecurrenceTile tile = tile_of(head, item % tasks * kRecurrenceColumns);
    RecurrenceTile packed = tile;
    if (packs) {
      packed.state = scratch + p.packed_at + worker * p.keys * kRecurrenceColumns;
      packed.state_stride = kRecurrenceColumns;
      copy_columns(tile, packed);
    }
    if (chunked) {
      p.chunks(packed, rows + head * tokens);
    } else {
      p.kernel(packed);
    }
    if (packs) copy_columns(packed, tile);
  });
  return Status::kOk;
}

RecurrenceKernel pick_kernel(bool reference_only) {
#define OXB_KERNEL(isa, fn) \
  if (may_use(isa, reference_only)) return fn;
#include "ops/recurrence/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

void pick_chunks(bool reference_only, Params* p) {
#define OXB_CHUNKS(isa, name)                     \
  if (may_use(isa, reference_only)) {             \
    p->chunk_rows = recurrence_chunk_rows_##name; \
    p->chunks = recurrence_chunks_##name;         \
    return;                                       \
  }
#include "ops/recurrence/chunks.inc"
#undef OXB_CHUNKS
}

/// Normalisers' sums first, then the rows of chunks, then packed columns.
Status request_scratch(BindContext& context, Params* p) {
  static_assert(sizeof(ChunkRow) % sizeof(float) == 0 && alignof(ChunkRow) == alignof(float));
  const uint64_t sums = p->normaliser == Normaliser::None ? 0 : 2;
  const uint64_t row = p->chunked() ? sizeof(ChunkRow) / sizeof(float) : 0;
  const uint64_t packed = p->packs() ? context.threads() * kRecurrenceColumns : 0;
  uint64_t items = 0, floats = 0, columns = 0, bytes = 0;
  if (!checked_mul(p->rows().rows, uint64_t{p->heads}, &items) ||
      !checked_mul(items, sums + row, &floats) ||
      !checked_mul(packed, uint64_t{p->keys}, &columns) ||
      !checked_add(floats, columns, &columns) || !checked_mul(columns, sizeof(float), &bytes) ||
      bytes > SIZE_MAX / 2) {
    return context.fail("needs more scratch than there is address space");
  }
  p->rows_at = static_cast<size_t>(items * sums);
  p->packed_at = static_cast<size_t>(floats);
  if (bytes != 0) context.request_scratch(static_cast<size_t>(bytes));
  return Status::kOk;
}

using Options = schema::RecurrenceOptions;
const Options& options_of(const schema::Step& step) { return *step.options_as_RecurrenceOptions(); }

Status check_options(BindContext& context) {
  const Options& options = options_of(context.step());
  if (options.heads() == 0 || options.key_heads() == 0 ||
      options.heads() % options.key_heads() != 0) {
    return context.fail("has %u heads and %u key heads, expected a divisor of them",
                        options.heads(), options.key_heads());
  }
  if (!options.reads() && !options.writes()) return context.fail("neither reads nor writes");
  const Normaliser normaliser = options.normaliser();
  if (normaliser > Normaliser::MAX) {
    return context.fail("normaliser is %u, expected at most %u", static_cast<unsigned>(normaliser),
                        static_cast<unsigned>(Normaliser::MAX));
  }
  const bool floored = normaliser == Normaliser::Floored;
  if ((normaliser == Normaliser::Keys || floored) &&
      (!std::isfinite(options.epsilon()) || options.epsilon() <= 0)) {
    return context.fail("epsilon is %g, expected a positive number", double{options.epsilon()});
  }
  if (!options.writes() &&
      (options.has_decay() || options.has_factor() || options.delta() || options.rank_one() ||
       options.read_before() || normaliser == Normaliser::Decays)) {
    return context.fail("only reads, but says how to write");
  }
  if (floored && !(options.reads() && options.writes())) {
    return context.fail("has a floor, expected it to read and write");
  }
  if (options.delta() && (normaliser == Normaliser::Keys || floored)) {
    return context.fail("is a delta rule with normalised keys, expected either");
  }
  return Status::kOk;
}

size_t reads(const schema::Step& step) { return options_of(step).reads(); }
size_t writes(const schema::Step& step) { return options_of(step).writes(); }
size_t has_decay(const schema::Step& step) { return options_of(step).has_decay(); }
size_t has_factor(const schema::Step& step) { return options_of(step).has_factor(); }
size_t has_rank_one(const schema::Step& step) { return options_of(step).rank_one(); }
size_t has_norm(const schema::Step& step) {
  return options_of(step).normaliser() != Normaliser::None;
}
size_t writes_norm(const schema::Step& step) { return writes(step) * has_norm(step); }
size_t has_floor(const schema::Step& step) {
  return options_of(step).normaliser() == Normaliser::Floored;
}

// Lines of inputs. Rows are those of the first input, q or k.
constexpr size_t kRowsLine = 0, kStateLine = 3, kDecayLine = 4, kNormLine = 8;

uint64_t heads(const StepView& view) { return options_of(view.step()).heads(); }
/// Elements of one head's key, at least one.
uint64_t keys(const StepView& view) {
  const uint32_t width = view.input(kRowsLine).width / options_of(view.step()).key_heads();
  return width == 0 ? 1 : width;
}
uint64_t shared_keys(const StepView& view) {
  return options_of(view.step()).key_heads() * keys(view);
}
uint64_t all_keys(const StepView& view) { return heads(view) * keys(view); }
uint64_t all_values(const StepView& view) { return heads(view) * view.input(kStateLine).width; }
/// One decay for each head or each key; one for each head where they are summed up.
uint64_t decays(const StepView& view) {
  const bool per_head = options_of(view.step()).normaliser() == Normaliser::Decays ||
                        view.input(kDecayLine).width == heads(view);
  return per_head ? heads(view) : all_keys(view);
}
bool sums_decays(const StepView& view) {
  return options_of(view.step()).normaliser() == Normaliser::Decays;
}
uint64_t norm_rows(const StepView& view) { return sums_decays(view) ? 1 : heads(view); }
uint64_t norm_width(const StepView& view) { return sums_decays(view) ? heads(view) : keys(view); }

}  // namespace

constexpr OpSignature kRecurrenceSignature = {
    .options = schema::OpOptions::RecurrenceOptions,
    .check_options = check_options,
    .inputs =
        {{.name = "q", .width = Width::told(shared_keys), .count = reads},
         {.name = "k", .width = Width::told(shared_keys), .rows = Rows::of(0), .count = writes},
         {.name = "v", .width = Width::told(all_values), .rows = Rows::of(0), .count = writes},
         {.name = "state", .role = Role::kState, .rows = Rows::told(all_keys)},
         {.name = "decay",
          .width = Width::told(decays),
          .rows = Rows::of_or_one(0),
          .count = has_decay},
         {.name = "factor", .width = Width::told(heads), .rows = Rows::of(0), .count = has_factor},
         {.name = "a", .width = Width::told(all_keys), .rows = Rows::of(0), .count = has_rank_one},
         {.name = "b", .width = Width::told(all_keys), .rows = Rows::of(0), .count = has_rank_one},
         {.name = "norm",
          .role = Role::kState,
          .width = Width::told(norm_width),
          .rows = Rows::told(norm_rows),
          .count = has_norm},
         {.name = "floor", .width = Width::told(heads), .rows = Rows::of(0), .count = has_floor}},
    .outputs =
        {{.name = "y", .width = Width::told(all_values), .rows = Rows::of(0), .count = reads},
         {.name = "state",
          .role = Role::kState,
          .rows = Rows::fixed(),
          .state_of = kStateLine,
          .count = writes},
         {.name = "norm",
          .role = Role::kState,
          .rows = Rows::fixed(),
          .state_of = kNormLine,
          .count = writes_norm}},
};

Status bind_recurrence(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kRecurrenceSignature));
  const auto* options = context.step().options_as_RecurrenceOptions();
  auto& p = context.params<Params>();
  p.heads = options->heads();
  p.key_heads = options->key_heads();
  p.reads = options->reads();
  p.writes = options->writes();
  p.read_before = options->read_before();
  p.delta = options->delta();
  p.rank_one = options->rank_one();
  p.normaliser = options->normaliser();
  p.epsilon = options->epsilon();

  size_t next = 0;
  if (p.reads) p.q = context.input(next++);
  if (p.writes) {
    p.k = context.input(next++);
    p.v = context.input(next++);
  }
  p.state = context.input(next++);
  if (options->has_decay()) p.decay = context.input(next++);
  if (options->has_factor()) p.factor = context.input(next++);
  if (options->rank_one()) {
    p.a = context.input(next++);
    p.b = context.input(next++);
  }
  if (p.normaliser != Normaliser::None) p.norm = context.input(next++);
  if (p.normaliser == Normaliser::Floored) p.floor = context.input(next++);

  p.keys = p.rows().width / p.key_heads;
  p.values = p.state.width;
  p.decay_per_key = options->has_decay() && p.decay.width != p.heads;
  if (p.reads) p.y = context.output(0);

  OXB_TRY(request_scratch(context, &p));
  p.kernel = pick_kernel(context.reference_only());
  pick_chunks(context.reference_only(), &p);
  *run = run_recurrence;
  return Status::kOk;
}

}  // namespace oxbow

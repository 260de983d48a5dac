#include "ops/hash_buckets/hash_buckets.h"

#include <algorithm>
#include <limits>

#include "ops/common/checks.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

/// So that sums of rounds of buckets stay far below 2^31.
constexpr uint64_t kMostBuckets = 1u << 22;

struct Params {
  Tensor x, rotations, mask, buckets;
  bool has_mask;
  uint32_t heads, rounds, above;
  uint32_t factors[kMaxBucketFactors];
  size_t factor_count;
  /// Product of the factors, and columns of a round: half of their sum.
  uint32_t all, columns;
};

/// Products of up to kHashedRows rows of one head, `count` of them, with all its rotations.
void rotate(const Params& p, size_t row, size_t count, size_t head, float* products) {
  const size_t width = p.x.width / p.heads, columns = p.rotations.width;
  std::fill_n(products, count * columns, 0.0f);
  for (size_t d = 0; d < width; ++d) {
    const float* rotation = p.rotations.f32(head * width + d);
    for (size_t i = 0; i < count; ++i) {
      const float x = p.x.f32(row + i)[head * width + d];
      float* sums = products + i * columns;
      for (size_t c = 0; c < columns; ++c) sums[c] = sums[c] + x * rotation[c];
    }
  }
}

/// The place of the greatest of p and -p.
uint32_t greatest(const float* p, uint32_t half) {
  uint32_t best = 0;
  float most = -std::numeric_limits<float>::infinity();
  for (uint32_t i = 0; i < half; ++i) {
    if (p[i] > most) most = p[best = i];
  }
  for (uint32_t i = 0; i < half; ++i) {
    if (-p[i] > most) {
      most = -p[i];
      best = half + i;
    }
  }
  return best;
}

uint32_t bucket(const Params& p, const float* products) {
  uint32_t sum = 0, unit = 1;
  for (size_t f = 0; f < p.factor_count; ++f) {
    sum += unit * greatest(products, p.factors[f] / 2);
    products += p.factors[f] / 2;
    unit *= p.factors[f];
  }
  return sum;
}

Status run_hash_buckets(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor out = p.buckets;
  const size_t rows = context.rows(p.x);
  if (rows <= p.above) return context.set_rows(out, 0);
  const int32_t* mask = p.has_mask ? p.mask.i32() : nullptr;
  const bool has_extra = mask != nullptr && std::find(mask, mask + rows, 0) != mask + rows;
  const uint32_t step = p.all + (has_extra ? 1 : 0);
  const size_t blocks = ceil_div(rows, kHashedRows);
  parallel_for(context.pool, p.heads * blocks, [&](size_t item, size_t worker) {
    const size_t head = item / blocks, first = item % blocks * kHashedRows;
    const size_t count = std::min(kHashedRows, rows - first);
    float* products = reinterpret_cast<float*>(context.scratch) +
                      worker * kHashedRows * size_t{p.rotations.width};
    rotate(p, first, count, head, products);
    for (size_t i = 0; i < count; ++i) {
      const bool hidden = mask != nullptr && mask[first + i] == 0;
      for (size_t round = 0; round < p.rounds; ++round) {
        const float* of_round = products + i * p.rotations.width + round * p.columns;
        const uint32_t found = hidden ? p.all : bucket(p, of_round);
        out.i32()[(head * p.rounds + round) * rows + first + i] =
            static_cast<int32_t>(found + static_cast<uint32_t>(round) * step);
      }
    }
  });
  return context.set_rows(out, static_cast<uint32_t>(p.heads * uint64_t{p.rounds} * rows));
}

const schema::HashBucketsOptions& options_of(const StepView& view) {
  return *view.step().options_as_HashBucketsOptions();
}

Status check_factors(BindContext& context) {
  const auto& options = *context.step().options_as_HashBucketsOptions();
  const size_t count = options.buckets() == nullptr ? 0 : options.buckets()->size();
  if (count == 0 || count > kMaxBucketFactors) {
    return context.fail("has %zu numbers of buckets, expected 1 to %zu", count, kMaxBucketFactors);
  }
  uint64_t all = 1;
  for (const uint32_t factor : *options.buckets()) {
    if (factor == 0 || factor % 2 != 0 || factor > kMostBuckets || (all *= factor) > kMostBuckets) {
      return context.fail("has %u buckets, expected even numbers whose product is at most %llu",
                          factor, static_cast<unsigned long long>(kMostBuckets));
    }
  }
  if (options.heads() == 0 || options.rounds() == 0) {
    return context.fail("has %u heads and %u rounds, expected at least 1 of each", options.heads(),
                        options.rounds());
  }
  // So that rounds of heads of rows fit 64 bits.
  if (uint64_t{options.heads()} * options.rounds() > UINT32_MAX) {
    return context.fail("has %u heads and %u rounds, expected a smaller product", options.heads(),
                        options.rounds());
  }
  return Status::kOk;
}

void read_factors(const schema::HashBucketsOptions& options, Params& p) {
  p.factor_count = 0;
  uint64_t all = 1, sum = 0;
  for (const uint32_t factor : *options.buckets()) {
    p.factors[p.factor_count++] = factor;
    all *= factor;
    sum += factor;
  }
  p.all = static_cast<uint32_t>(all);
  p.columns = static_cast<uint32_t>(sum / 2);
}

/// A column for half of the buckets of each factor, of each round.
uint64_t rotation_columns(const StepView& view) {
  uint64_t sum = 0;
  for (const uint32_t factor : *options_of(view).buckets()) sum += factor;
  return options_of(view).rounds() * (sum / 2);
}
uint64_t width_of_x(const StepView& view) { return view.input(0).width; }
uint64_t all_buckets(const StepView& view) {
  return uint64_t{options_of(view).heads()} * options_of(view).rounds() * view.input(0).rows;
}

}  // namespace

constexpr OpSignature kHashBucketsSignature = {
    .options = schema::OpOptions::HashBucketsOptions,
    .check_options = check_factors,
    .inputs = {{.name = "x"},
               {.name = "rotations",
                .role = Role::kWeight,
                .width = Width::told(rotation_columns),
                .rows = Rows::told(width_of_x)},
               {.name = "mask",
                .role = Role::kIds,
                .types = kI32,
                .width = Width::exactly(1),
                .rows = Rows::of(0),
                .count = [](const schema::Step& step) -> size_t {
                  return step.options_as_HashBucketsOptions()->has_mask();
                }}},
    .outputs = {{.name = "buckets",
                 .role = Role::kIds,
                 .types = kI32,
                 .width = Width::exactly(1),
                 .rows = Rows::counted(0, all_buckets)}},
};

Status bind_hash_buckets(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kHashBucketsSignature));
  const auto* options = context.step().options_as_HashBucketsOptions();
  auto& p = context.params<Params>();
  p.x = context.input(0);
  p.rotations = context.input(1);
  p.buckets = context.output(0);
  p.has_mask = options->has_mask();
  if (p.has_mask) p.mask = context.input(2);
  p.heads = options->heads();
  p.rounds = options->rounds();
  p.above = options->above();
  if (p.x.width % p.heads != 0) {
    return context.fail("has %u heads, expected a divisor of %u", p.heads, p.x.width);
  }
  read_factors(*options, p);
  uint64_t scratch = 0;
  if (!checked_mul(context.threads() * kHashedRows * sizeof(float), p.rotations.width, &scratch) ||
      scratch > SIZE_MAX / 2) {
    return context.fail("%u columns of rotations do not fit", p.rotations.width);
  }
  const Tensor& y = p.buckets;
  if (y.limit < (uint64_t{p.all} + 1) * p.rounds) {
    return context.fail("tensor '%s' has values below %u, expected a limit of %llu", y.name,
                        y.limit, static_cast<unsigned long long>((uint64_t{p.all} + 1) * p.rounds));
  }
  context.request_scratch(static_cast<size_t>(scratch));
  *run = run_hash_buckets;
  return Status::kOk;
}

}  // namespace oxbow

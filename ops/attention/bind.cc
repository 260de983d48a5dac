// Binds attention. The file may hold any step: here is all that run relies on.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ops/attention/attention.h"
#include "ops/attention/params.h"
#include "ops/attention/seen.h"
#include "ops/attention/terms/checks.h"
#include "ops/common/checks.h"
#include "runtime/base/checked.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

template <typename Element>
const AttentionKernel<Element>* pick_kernel([[maybe_unused]] bool reference_only) {
#define OXB_KERNEL(element, isa, name)              \
  if constexpr (std::is_same_v<element, Element>) { \
    if (may_use(isa, reference_only)) return &name; \
  }
#include "ops/attention/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

}  // namespace

Status check_matrix(BindContext& context, const Tensor& tensor, const char* role, DataType type,
                    uint64_t width, uint64_t scale_groups) {
  if (tensor.type != type || tensor.layout != Layout::kRowMajor) {
    return context.fail("%s '%s' must be row-major %s", role, tensor.name, type_name(type));
  }
  if (tensor.width != width || tensor.rows == 0) {
    return context.fail("%s '%s' is [%u, %u], expected width %llu", role, tensor.name, tensor.rows,
                        tensor.width, static_cast<unsigned long long>(width));
  }
  if (type == DataType::kI8 && tensor.scale_groups != scale_groups) {
    return context.fail("%s '%s' has %u scales per row, expected %llu", role, tensor.name,
                        tensor.scale_groups, static_cast<unsigned long long>(scale_groups));
  }
  return Status::kOk;
}

Status check_run_rows(BindContext& context, const Tensor& like, const Tensor& tensor,
                      const char* role) {
  if (tensor.ring >= 0) {
    return context.fail("%s '%s' must not be in a ring", role, tensor.name);
  }
  if (tensor.rows_symbol != like.rows_symbol ||
      (like.rows_symbol < 0 && tensor.rows != like.rows)) {
    return context.fail("%s '%s' must have as many rows as '%s'", role, tensor.name, like.name);
  }
  if (like.rows_symbol >= 0 && context.symbol_max(like.rows_symbol) > tensor.rows) {
    return context.fail("%s '%s' has room for %u rows, up to %u may come", role, tensor.name,
                        tensor.rows, context.symbol_max(like.rows_symbol));
  }
  return Status::kOk;
}

Status check_fixed_rows(BindContext& context, const Tensor& tensor, const char* role,
                        uint32_t rows) {
  if (tensor.ring >= 0 || tensor.rows_symbol >= 0 || tensor.rows != rows) {
    return context.fail("%s '%s' must have exactly %u rows", role, tensor.name, rows);
  }
  return Status::kOk;
}

Status check_weight(BindContext& context, const Tensor& tensor, const char* role, uint32_t rows,
                    uint64_t width) {
  OXB_TRY(check_matrix(context, tensor, role, DataType::kF32, width, 0));
  return check_fixed_rows(context, tensor, role, rows);
}

Status check_row_numbers(const TermBinding& binding, const Tensor& tensor, const char* role) {
  BindContext& context = binding.context;
  if (binding.last_keys.ring >= 0) {
    return context.fail("%s '%s' needs a last source that is not in a ring", role, tensor.name);
  }
  OXB_TRY(check_matrix(context, tensor, role, DataType::kI32, 1, 0));
  return check_run_rows(context, binding.last_keys, tensor, role);
}

Status bind_index_list(const TermBinding& binding, const char* role, IndexList* list) {
  const Tensor tensor = binding.input(0);
  OXB_TRY(check_matrix(binding.context, tensor, role, DataType::kI32, 1, 0));
  *list = {tensor.i32(), tensor.name, tensor.rows_symbol, tensor.rows};
  return check_run_rows(binding.context, tensor, tensor, role);
}

namespace {

/// Rows of a ring, all of it.
Status check_ring_rows(BindContext& context, const Tensor& tensor, const char* role) {
  if (tensor.ring < 0) return context.fail("%s '%s' must be in a ring", role, tensor.name);
  if (tensor.rows_symbol >= 0 || tensor.rows != context.ring_capacity(tensor.ring)) {
    return context.fail("%s '%s' has %u rows, expected the capacity of its ring, %u", role,
                        tensor.name, tensor.rows, context.ring_capacity(tensor.ring));
  }
  if (tensor.pinned >= tensor.rows) {
    return context.fail("%s '%s' has %u pinned rows, expected fewer than its %u", role, tensor.name,
                        tensor.pinned, tensor.rows);
  }
  return Status::kOk;
}

/// Codes of rows, fresh or in a ring.
Status check_codes(BindContext& context, const AttentionParams& params, const Tensor& codes) {
  OXB_TRY(check_matrix(context, codes, "codes", DataType::kI32,
                       params.heads * uint64_t{params.pattern.rounds}, 0));
  const uint64_t most = params.terms.order.buckets() << 2;
  if (most > INT32_MAX || codes.limit < most) {
    return context.fail("codes '%s' are below %u, expected a limit of %llu", codes.name,
                        codes.limit, static_cast<unsigned long long>(most));
  }
  return Status::kOk;
}

Status bind_outputs(BindContext& context, AttentionParams& params) {
  params.out = context.output(0);
  const Tensor& out = params.out;
  OXB_TRY(check_width(context, out, params.heads * size_t{params.shape.value_width}));
  if (out.hadamard != 0 && out.type == DataType::kF32) {
    return context.fail("output '%s' is F32, expected I8 since it is turned", out.name);
  }
  if (context.output_count() == 1) return Status::kOk;
  Tensor log_sums = context.output(1);
  if (is_cached_circle(params)) {
    params.codes = log_sums.i32();
    return check_codes(context, params, log_sums);
  }
  if (log_sums.type != DataType::kF32) {
    return context.fail("output '%s' is not F32", log_sums.name);
  }
  OXB_TRY(check_width(context, log_sums, params.heads));
  params.log_sums = log_sums.f32();
  return Status::kOk;
}

/// The values of the first source tell their width, which all others have, too.
Status bind_value_width(BindContext& context, AttentionParams& params) {
  const Tensor v = context.input(2);
  if (v.width == 0 || v.width % params.kv_heads != 0 || v.width / params.kv_heads > kMaxHeadWidth) {
    return context.fail("values '%s' of width %u do not make %zu heads of 1 to %zu elements",
                        v.name, v.width, params.kv_heads, kMaxHeadWidth);
  }
  params.shape.value_width = v.width / params.kv_heads;
  return Status::kOk;
}

Status bind_source(BindContext& context, AttentionParams& params, size_t index, DataType type) {
  const Tensor k = context.input(1 + 2 * index), v = context.input(2 + 2 * index);
  AttentionShape& shape = params.shape;
  const bool own = params.own && index + 1 == params.sources;
  OXB_TRY(
      check_matrix(context, k, "keys", type, params.kv_heads * shape.head_width, params.kv_heads));
  OXB_TRY(check_matrix(context, v, "values", type, params.kv_heads * shape.value_width,
                       params.kv_heads));
  if (k.hadamard != params.q.hadamard || v.hadamard != 0) {
    return context.fail(
        "keys '%s' and values '%s' are turned in blocks of %u and %u, expected %u, "
        "as q is, and 0",
        k.name, v.name, k.hadamard, v.hadamard, params.q.hadamard);
  }
  if (own || k.ring < 0) {
    const Tensor& rows = own ? params.q : k;
    OXB_TRY(check_run_rows(context, rows, k, "keys"));
    OXB_TRY(check_run_rows(context, rows, v, "values"));
  } else {
    OXB_TRY(check_ring_rows(context, k, "keys"));
    OXB_TRY(check_ring_rows(context, v, "values"));
    if (k.ring != v.ring || k.pinned != v.pinned) {
      return context.fail("keys '%s' and values '%s' must be in the same ring", k.name, v.name);
    }
  }
  AttentionSource& source = params.source[index];
  source.k = k.data;
  source.v = v.data;
  source.k_scales = k.scales;
  source.v_scales = v.scales;
  source.ring = k.ring;
  source.rows_symbol = k.rows_symbol;
  source.rows = k.rows;
  source.pinned = k.ring < 0 ? 0 : k.pinned;
  const bool i8 = type == DataType::kI8;
  shape.key_stride = i8 ? k.stride() : k.width;
  shape.value_stride = i8 ? v.stride() : v.width;
  shape.scale_stride = i8 ? params.kv_heads : 0;
  return Status::kOk;
}

Status bind_terms(BindContext& context, const schema::AttentionOptions& options,
                  const TermList& list, AttentionParams& params, DataType type) {
  params.shape.relative_zero = options.relative_zero();
  using Kind = schema::TermKind;
  for (const Kind kind : {Kind::Relative, Kind::Segments, Kind::PinnedQuery}) {
    // They multiply q with what is not turned.
    if (params.q.hadamard != 0 && list.has(kind)) {
      return context.fail("q '%s' is turned, which the score term %s does not allow", params.q.name,
                          schema::EnumNameTermKind(kind));
    }
  }
  bool pinned_rows = false;
  for (const AttentionSource& source : params.source) pinned_rows |= source.pinned != 0;
  uint32_t kinds = 0;
  for (size_t i = 0; i < list.count; ++i) kinds |= 1u << static_cast<unsigned>(list.terms[i].kind);
  const auto bind = [&](schema::TermKind kind, auto& term) {
    const TermUse* use = list.find(kind);
    if (use == nullptr) return Status::kOk;
    TermBinding binding = {.context = context,
                           .options = options,
                           .use = *use,
                           .relative = list.find(schema::TermKind::Relative),
                           .heads = params.heads,
                           .own = params.own,
                           .type = type,
                           .q = params.q,
                           .last_keys = context.input(2 * params.sources - 1),
                           .pinned_rows = pinned_rows,
                           .kinds = kinds,
                           .shape = params.shape};
    params.terms.kinds |= 1u << static_cast<unsigned>(kind);
    return term.bind(binding);
  };
#define OXB_TERM(number, Kind, Name, member) \
  OXB_TRY(bind(schema::TermKind::Kind, params.terms.member));
#define OXB_CPU_TERM OXB_TERM
#include "ops/attention/terms/terms.inc"
#undef OXB_CPU_TERM
#undef OXB_TERM
  const size_t distances = params.shape.distances;
  if (distances == 0 ? options.relative_zero() != 0 : options.relative_zero() >= distances) {
    return context.fail("relative_zero is %u in a table of %zu rows", options.relative_zero(),
                        distances);
  }
  if ((options.mask_queries() || options.mask_keeps_own()) &&
      !(params.own && list.has(schema::TermKind::KeyMask))) {
    return context.fail("masks queries or keeps own rows without a mask of own rows");
  }
  return Status::kOk;
}

/// What sorted_run.cc relies on.
Status check_sorted(BindContext& context, const AttentionParams& params) {
  using Kind = schema::TermKind;
  for (const Kind kind : {Kind::Relative, Kind::RelativeKeys, Kind::DistanceBias, Kind::Alibi,
                          Kind::Segments, Kind::PinnedQuery, Kind::AdaptiveSpan}) {
    if (params.terms.has(kind)) {
      return context.fail("sorted rows have no term %s", schema::EnumNameTermKind(kind));
    }
  }
  if (params.terms.order.has_kept) return context.fail("codes of earlier rows need a ring");
  if (params.terms.key_mask.masks_queries || params.terms.key_mask.keeps_own) {
    return context.fail("sorted rows mask keys only");
  }
  if (context.output_count() != 1) {
    return context.fail("sorted rows have no second output");
  }
  return Status::kOk;
}

/// What cached_run.cc relies on.
Status check_cached(BindContext& context, const AttentionParams& params, const TermList& list) {
  using Kind = schema::TermKind;
  const PatternParams& pattern = params.pattern;
  const bool hashed = list.has(Kind::Order);
  for (size_t i = 0; i < list.count; ++i) {
    const Kind kind = list.terms[i].kind;
    if (kind != Kind::Order && kind != Kind::OwnScore) {
      return context.fail("a circle behind a ring has no term %s", schema::EnumNameTermKind(kind));
    }
  }
  if (!params.own || params.source[0].ring < 0 || params.source[0].pinned != 0 || !pattern.causal) {
    return context.fail("a circle behind a ring is causal and has a ring without pinned rows");
  }
  if (pattern.block_width == 0 || pattern.block_width % pattern.length != 0 ||
      pattern.full_up_to > pattern.length || (!hashed && pattern.rounds != 1)) {
    return context.fail("chunks of %u, filled up to %u from %u on, in %u rounds", pattern.length,
                        pattern.block_width, pattern.full_up_to, pattern.rounds);
  }
  if (context.output_count() != (hashed ? 2 : 1)) {
    return context.fail("a circle behind a ring has %zu outputs, expected %d",
                        context.output_count(), hashed ? 2 : 1);
  }
  if (!hashed) return Status::kOk;
  if (!params.terms.order.has_kept) return context.fail("has no codes of earlier rows");
  const Tensor kept = context.input(list.find(Kind::Order)->first_input + 1);
  if (kept.ring != params.source[0].ring) {
    return context.fail("codes '%s' must be in the ring of the keys", kept.name);
  }
  return check_codes(context, params, kept);
}

Status request_scratch(BindContext& context, AttentionParams& params) {
  using Kind = schema::TermKind;
  const bool cached = is_cached_circle(params), sorted = cached || params.terms.has(Kind::Order);
  // Sums of at most 32 rows of 2^32 floats and two lists of 2^32 rows: they fit 64 bits.
  uint64_t bytes = 0;
  const auto take = [&bytes](uint64_t count) {
    const uint64_t at = bytes;
    bytes = (at + count * 4 + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
    return static_cast<size_t>(at);
  };
  const uint64_t last_rows = params.source[params.sources - 1].rows;
  if (params.out.type == DataType::kI8) {
    take(uint64_t{sorted ? params.q.rows : float_rows(params, params.q.rows)} * params.out.width);
  }
  if (sorted) params.sums_at = take(uint64_t{params.q.rows} * params.heads * 2);
  if (cached && params.terms.has(Kind::Order)) {
    uint64_t order = 0;
    if (!checked_mul(params.heads * uint64_t{params.pattern.rounds}, uint64_t{params.q.rows},
                     &order) ||
        order > INT32_MAX) {
      return context.fail("rounds of %u rows do not fit", params.q.rows);
    }
    params.orders_at = take(order);
  }
  if (params.terms.has(Kind::KeyMask)) params.turns_at = take(last_rows);
  if (params.terms.has(Kind::Globals)) params.globals_at = take(last_rows);
  params.workers_at = static_cast<size_t>(bytes);
  if (!depends_on_head(params.pattern) && !has_reach(params.terms)) {
    params.heads_at_once = std::min(ceil_div(params.heads, context.threads()), kMaxHeadsAtOnce);
  }
  // At most 24 times four rows of 2^30 floats.
  uint64_t worker_bytes = tasks_at_once(params) * uint64_t{head_scratch_bytes(params)};
  if (sorted) {
    uint64_t chunk = 0;
    if (!(cached ? cached_scratch_bytes(params, &chunk) : sorted_scratch_bytes(params, &chunk))) {
      return context.fail("chunks of %u rows do not fit", params.pattern.length);
    }
    // Short runs are not sorted.
    params.worker_bytes = static_cast<size_t>(worker_bytes = std::max(worker_bytes, chunk));
  }
  uint64_t workers = 0;
  if (!checked_mul(context.threads(), worker_bytes, &workers) ||
      !checked_add(bytes, workers, &bytes) || bytes > SIZE_MAX / 2) {
    return context.fail("scratch for %zu threads does not fit", context.threads());
  }
  context.request_scratch(static_cast<size_t>(bytes));
  return Status::kOk;
}

Status bind_heads(BindContext& context, const schema::AttentionOptions& options,
                  AttentionParams& params) {
  params.heads = options.heads();
  params.kv_heads = options.kv_heads();
  const Tensor& q = params.q;
  if (params.heads == 0 || params.kv_heads == 0 || params.heads % params.kv_heads != 0) {
    return context.fail("has %zu heads for %zu key heads, which must divide them", params.heads,
                        params.kv_heads);
  }
  if (q.width == 0 || q.width % params.heads != 0 || q.width / params.heads > kMaxHeadWidth) {
    return context.fail("q '%s' of width %u does not make %zu heads of 1 to %zu elements", q.name,
                        q.width, params.heads, kMaxHeadWidth);
  }
  params.shape.head_width = q.width / params.heads;
  if (q.hadamard != 0 && params.shape.head_width % q.hadamard != 0) {
    return context.fail("q '%s' is turned in blocks of %u, which do not make heads of %zu", q.name,
                        q.hadamard, params.shape.head_width);
  }
  return check_run_rows(context, q, q, "q");
}

}  // namespace

// Sources and terms are the options', each with checks of its own.
constexpr OpSignature kAttentionSignature = {
    .options = schema::OpOptions::AttentionOptions,
    .inputs = {{.name = "q", .turns = true},
               {.name = "keys, values and terms",
                .types = kF32 | kI8 | kI32,
                .rows = Rows::anywhere(),
                .turns = true,
                .least = 2,
                .most = 64}},
    .outputs =
        {{.name = "y", .types = kF32 | kI8, .rows = Rows::of(0), .turns = true},
         {.name = "log-sum-exps or codes", .types = kF32 | kI32, .rows = Rows::of(0), .least = 0}},
};

Status bind_attention(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kAttentionSignature));
  const auto* options = context.step().options_as_AttentionOptions();
  const uint32_t sources = options->sources();
  if (sources == 0 || sources > kMaxAttentionSources) {
    return context.fail("has %u sources, expected 1 to %zu", sources, kMaxAttentionSources);
  }
  const TermList terms = list_terms(*options);
  if (terms.problem != nullptr) {
    return context.fail("score term %u (%s) %s", terms.refused,
                        schema::EnumNameTermKind(static_cast<schema::TermKind>(terms.refused)),
                        terms.problem);
  }
  OXB_TRY(check_counts(context, 1 + 2 * size_t{sources} + terms.inputs, context.output_count()));
  if (!std::isfinite(options->scale())) return context.fail("scale must be finite");

  AttentionParams& params = context.params<AttentionParams>();
  params.sources = sources;
  params.own = options->own();
  params.shape.scale = options->scale();
  params.q = context.input(0);
  OXB_TRY(bind_heads(context, *options, params));
  const Tensor first_keys = context.input(1);
  const DataType type = first_keys.type;
  if (type != DataType::kF32 && type != DataType::kI8) {
    return context.fail("keys '%s' must be F32 or I8", first_keys.name);
  }
  OXB_TRY(bind_value_width(context, params));
  for (size_t i = 0; i < sources; ++i) OXB_TRY(bind_source(context, params, i, type));
  OXB_TRY(bind_terms(context, *options, terms, params, type));
  params.pattern = read_pattern(options->pattern());
  params.pattern.heads = static_cast<uint32_t>(params.heads);
  OXB_TRY(check_pattern(context, params.pattern, params.own, params.heads));
  const bool cached = is_cached_circle(params);
  if (has_any_order(params.pattern) && !cached) {
    if (sources != 1 || !params.own || terms.has(schema::TermKind::Globals)) {
      return context.fail("pattern %s needs one source, of own rows, without global keys",
                          schema::EnumNamePatternKind(params.pattern.kind));
    }
  }
  if (cached) {
    OXB_TRY(check_cached(context, params, terms));
  } else if (terms.has(schema::TermKind::Order)) {
    OXB_TRY(check_sorted(context, params));
  }
  OXB_TRY(bind_outputs(context, params));
  OXB_TRY(request_scratch(context, params));

  params.quantize = pick_quantize_kernel(context.reference_only());
  params.f32_kernel = pick_kernel<float>(context.reference_only());
  params.i8_kernel = pick_kernel<int8_t>(context.reference_only());
  *run = cached                               ? cached_run_function(type)
         : terms.has(schema::TermKind::Order) ? sorted_run_function(type)
                                              : attention_run_function(type);
  return Status::kOk;
}

}  // namespace oxbow

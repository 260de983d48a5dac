// Binds attention. The file may hold any step: here is all that run relies on.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ops/attention/attention.h"
#include "ops/attention/key_ranges.h"
#include "ops/attention/params.h"
#include "ops/attention/seen.h"
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

/// Codes of rows, fresh or in a ring.
Status check_codes(BindContext& context, const AttentionParams& params, const Tensor& codes) {
  const uint64_t columns = params.heads * uint64_t{params.pattern.rounds};
  const uint64_t most = params.terms.order.buckets() << 2;
  if (codes.type != DataType::kI32 || codes.width != columns || most > INT32_MAX ||
      codes.limit < most) {
    return context.fail("codes '%s' of width %u are below %u, expected I32 of %llu below %llu",
                        codes.name, codes.width, codes.limit,
                        static_cast<unsigned long long>(columns),
                        static_cast<unsigned long long>(most));
  }
  return Status::kOk;
}

Status bind_outputs(BindContext& context, AttentionParams& params) {
  params.out = context.output(0);
  const Tensor& out = params.out;
  if (out.hadamard != 0 && out.type == DataType::kF32) {
    return context.fail("output '%s' is F32, expected I8 since it is turned", out.name);
  }
  if (context.output_count() == 1) return Status::kOk;
  Tensor second = context.output(1);
  if (is_cached_circle(params)) {
    params.codes = second.i32();
    return check_codes(context, params, second);
  }
  if (second.type != DataType::kF32) return context.fail("output '%s' is not F32", second.name);
  params.log_sums = second.f32();
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
  if (k.hadamard != params.q.hadamard) {
    return context.fail("keys '%s' are turned in blocks of %u, expected %u as q is", k.name,
                        k.hadamard, params.q.hadamard);
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
  if (k.type == DataType::kI4Rows || v.type == DataType::kI4Rows) {
    if (k.type != v.type) {
      return context.fail("keys '%s' and values '%s' are of four bits both or neither", k.name,
                          v.name);
    }
    params.packed = true;
    source.packed_k_stride = k.stride();
    source.packed_v_stride = v.stride();
  }
  shape.key_stride = i8 ? row_bytes(type, k.width) : k.width;
  shape.value_stride = i8 ? row_bytes(type, v.width) : v.width;
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
  for (const Kind kind : {Kind::KeyMask, Kind::Globals, Kind::Segments}) {
    if (params.source[params.sources - 1].ring >= 0 && list.has(kind)) {
      return context.fail("the score term %s needs a last source that is not in a ring",
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
Status check_sorted(BindContext& context, const AttentionParams& params, const TermList& list) {
  using Kind = schema::TermKind;
  for (size_t i = 0; i < list.count; ++i) {
    const Kind kind = list.terms[i].kind;
    if (kind != Kind::Order && kind != Kind::OwnScore && kind != Kind::KeyMask) {
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
  uint64_t worker_bytes = worker_task_bytes(params);
  if (params.packed) worker_bytes += unpacked_bytes(params.shape);
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
  if (q.width == 0 || q.width % params.heads != 0 || q.width / params.heads > kMaxHeadWidth) {
    return context.fail("q '%s' of width %u does not make %zu heads of 1 to %zu elements", q.name,
                        q.width, params.heads, kMaxHeadWidth);
  }
  params.shape.head_width = q.width / params.heads;
  if (q.hadamard != 0 && params.shape.head_width % q.hadamard != 0) {
    return context.fail("q '%s' is turned in blocks of %u, which do not make heads of %zu", q.name,
                        q.hadamard, params.shape.head_width);
  }
  return Status::kOk;
}

const schema::AttentionOptions& options_of(const schema::Step& step) {
  return *step.options_as_AttentionOptions();
}

Status check_options(BindContext& context) {
  const schema::AttentionOptions& options = options_of(context.step());
  const uint32_t sources = options.sources();
  if (sources == 0 || sources > kMaxAttentionSources) {
    return context.fail("has %u sources, expected 1 to %zu", sources, kMaxAttentionSources);
  }
  const TermList terms = list_terms(options);
  if (terms.problem != nullptr) {
    return context.fail("score term %u (%s) %s", terms.refused,
                        schema::EnumNameTermKind(static_cast<schema::TermKind>(terms.refused)),
                        terms.problem);
  }
  const uint32_t heads = options.heads(), kv_heads = options.kv_heads();
  if (heads == 0 || kv_heads == 0 || heads % kv_heads != 0) {
    return context.fail("has %u heads for %u key heads, which must divide them", heads, kv_heads);
  }
  if (!std::isfinite(options.scale())) return context.fail("scale must be finite");
  return Status::kOk;
}

size_t count_keys_values_and_terms(const schema::Step& step) {
  const schema::AttentionOptions& options = options_of(step);
  return 2 * size_t{options.sources()} + list_terms(options).inputs;
}

/// As kernels see them: those of four bits are unpacked.
DataType type_of_keys(const Tensor& keys) {
  return keys.type == DataType::kI4Rows ? DataType::kI8 : keys.type;
}

/// Keys and values by turns, source after source, then what each term has.
Place place_behind_q(const StepView& view, size_t index) {
  const schema::AttentionOptions& options = options_of(view.step());
  const uint32_t heads = options.heads(), kv_heads = options.kv_heads();
  const uint32_t sources = options.sources(), q_width = view.at(0).width;
  const DataType type = type_of_keys(view.at(1));
  if (index >= 2 * sources) {
    return term_place(list_terms(options), 1 + index,
                      {.heads = heads,
                       .type = type,
                       .q_width = q_width,
                       .last_keys = static_cast<uint8_t>(2 * sources - 1),
                       .first_input = 0});
  }
  const bool is_keys = index % 2 == 0, own = options.own() && index / 2 + 1 == sources;
  // The values of the first source tell their width, which all others have, too.
  const uint64_t head_width = is_keys ? q_width / heads : view.at(2).width / kv_heads;
  const auto keys = static_cast<uint8_t>(is_keys ? index + 1 : index);
  const bool in_ring = view.at(keys).ring >= 0;
  return {.name = is_keys ? "keys" : "values",
          .types = index == 0               ? kF32 | kI8 | kI4Rows
                   : type == DataType::kF32 ? kF32
                                            : kI8 | kI4Rows,
          .scales = kv_heads,
          .width = Width::exactly(kv_heads * head_width),
          .rows = own        ? Rows::of(0)
                  : !in_ring ? is_keys ? Rows::with_room() : Rows::of(keys)
                  : is_keys ? Rows::pinned_ring()
                             : Rows::same_ring(keys),
          .turns = is_keys};
}

uint64_t all_values(const StepView& view) {
  const schema::AttentionOptions& options = options_of(view.step());
  return uint64_t{options.heads()} * (view.at(2).width / options.kv_heads());
}
/// Log-sum-exps; of a circle behind a ring the codes.
uint64_t second_width(const StepView& view) {
  const schema::AttentionOptions& options = options_of(view.step());
  const schema::Pattern* pattern = options.pattern();
  const bool cached = pattern != nullptr && pattern->kind() == schema::PatternKind::Circle &&
                      options.sources() == 2;
  return uint64_t{options.heads()} * (cached ? pattern->rounds() : 1);
}

}  // namespace

constexpr OpSignature kAttentionSignature = {
    .options = schema::OpOptions::AttentionOptions,
    .check_options = check_options,
    .inputs = {{.name = "q", .rows = Rows::with_room(), .turns = true},
               {.name = "keys, values and terms",
                .types = kF32 | kI8 | kI32 | kI4Rows,
                .rows = Rows::anywhere(),
                .turns = true,
                .least = 2,
                .most = 64,
                .count = count_keys_values_and_terms,
                .each = place_behind_q}},
    .outputs = {{.name = "y",
                 .types = kF32 | kI8,
                 .width = Width::told(all_values),
                 .rows = Rows::of(0),
                 .turns = true},
                {.name = "log-sum-exps or codes",
                 .types = kF32 | kI32,
                 .width = Width::told(second_width),
                 .rows = Rows::of(0),
                 .least = 0}},
};

Status bind_attention(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kAttentionSignature));
  const auto* options = context.step().options_as_AttentionOptions();
  const uint32_t sources = options->sources();
  const TermList terms = list_terms(*options);

  AttentionParams& params = context.params<AttentionParams>();
  params.sources = sources;
  params.own = options->own();
  params.shape.scale = options->scale();
  params.q = context.input(0);
  OXB_TRY(bind_heads(context, *options, params));
  const DataType type = type_of_keys(context.input(1));
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
  params.pattern.visit = visit_of(params.pattern.kind);
  params.filters = terms_filter(params.terms);
  if (params.packed && (cached || terms.has(schema::TermKind::Order))) {
    return context.fail("keys of four bits cannot be sorted");
  }
  if (cached) {
    OXB_TRY(check_cached(context, params, terms));
  } else if (terms.has(schema::TermKind::Order)) {
    OXB_TRY(check_sorted(context, params, terms));
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

// Binds attention. The file may hold any step: here is all that run relies on.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ops/attention/attention.h"
#include "ops/attention/params.h"
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

/// A row-major tensor of this type and width; `scale_groups` counts for I8 only.
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

/// As many rows in every run as `like`, and room for them.
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

/// Rows of a ring, all of it.
Status check_ring_rows(BindContext& context, const Tensor& tensor, const char* role) {
  if (tensor.ring < 0) {
    return context.fail("%s '%s' must be in a ring: only the last source may be another", role,
                        tensor.name);
  }
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

Status check_fixed_rows(BindContext& context, const Tensor& tensor, const char* role,
                        uint32_t rows) {
  if (tensor.ring >= 0 || tensor.rows_symbol >= 0 || tensor.rows != rows) {
    return context.fail("%s '%s' must have exactly %u rows", role, tensor.name, rows);
  }
  return Status::kOk;
}

/// F32 with exactly these rows: what terms are made of.
Status check_weight(BindContext& context, const Tensor& tensor, const char* role, uint32_t rows,
                    uint64_t width) {
  OXB_TRY(check_matrix(context, tensor, role, DataType::kF32, width, 0));
  return check_fixed_rows(context, tensor, role, rows);
}

Status bind_output(BindContext& context, AttentionParams& params) {
  params.out = context.output(0);
  const Tensor& out = params.out;
  if (out.type != DataType::kF32 && out.type != DataType::kI8) {
    return context.fail("output '%s' must be F32 or I8", out.name);
  }
  if (out.type == DataType::kI8 && (out.scale_groups == 0 || out.width % out.scale_groups != 0)) {
    return context.fail("output '%s' has %u scales per row, which do not divide its width %u",
                        out.name, out.scale_groups, out.width);
  }
  OXB_TRY(check_matrix(context, out, "output", out.type, params.q.width, out.scale_groups));
  return check_run_rows(context, params.q, out, "output");
}

Status bind_source(BindContext& context, AttentionParams& params, size_t index, DataType type) {
  const Tensor k = context.input(1 + 2 * index), v = context.input(2 + 2 * index);
  const uint64_t width = params.kv_heads * params.shape.head_width;
  const bool last = index + 1 == params.sources;
  OXB_TRY(check_matrix(context, k, "keys", type, width, params.kv_heads));
  OXB_TRY(check_matrix(context, v, "values", type, width, params.kv_heads));
  if (last && (params.own || k.ring < 0)) {
    const Tensor& rows = params.own ? params.q : k;
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
  if (index == 0) {
    params.shape.key_stride = type == DataType::kF32 ? k.width : k.stride();
    params.shape.key_scale_stride = type == DataType::kF32 ? 0 : params.kv_heads;
  }
  return Status::kOk;
}

/// Hands out the inputs behind the sources, in the order of the flags.
struct TermInputs {
  BindContext& context;
  size_t next;

  Tensor take() { return context.input(next++); }
};

size_t count_term_inputs(const schema::AttentionOptions& options) {
  return size_t{3} * options.relative() + size_t{1} * options.distance_bias() +
         size_t{1} * options.alibi() + size_t{3} * options.segments() +
         size_t{1} * options.key_mask() + size_t{1} * options.globals() +
         size_t{1} * options.pinned_query() +
         std::min<size_t>(options.rooms(), kMaxAttentionRooms + 1);
}

Status bind_relative(TermInputs& inputs, AttentionParams& params, DataType type) {
  BindContext& context = inputs.context;
  AttentionShape& shape = params.shape;
  const Tensor table = inputs.take(), bias = inputs.take(), query_bias = inputs.take();
  OXB_TRY(check_matrix(context, table, "table", type, params.q.width, params.heads));
  OXB_TRY(check_fixed_rows(context, table, "table", table.rows));
  OXB_TRY(check_weight(context, bias, "bias", table.rows, params.heads));
  OXB_TRY(check_weight(context, query_bias, "query bias", 1, params.q.width));
  params.table = table.data;
  params.table_scales = table.scales;
  params.bias = bias.f32();
  params.query_bias = query_bias.f32();
  shape.relative = true;
  shape.distances = table.rows;
  shape.table_stride = type == DataType::kF32 ? table.width : table.stride();
  shape.table_scale_stride = params.heads;
  shape.bias_stride = params.heads;
  return Status::kOk;
}

Status bind_distance_bias(TermInputs& inputs, AttentionParams& params) {
  const Tensor bias = inputs.take();
  OXB_TRY(check_weight(inputs.context, bias, "bias", bias.rows, params.heads));
  params.bias = bias.f32();
  params.shape.distance_bias = true;
  params.shape.distances = bias.rows;
  params.shape.bias_stride = params.heads;
  return Status::kOk;
}

/// A number for each row of the last source, which is not a ring.
Status check_row_numbers(BindContext& context, const AttentionParams& params, const Tensor& tensor,
                         const char* role) {
  const Tensor last = context.input(2 * params.sources - 1);
  if (last.ring >= 0) {
    return context.fail("%s '%s' needs a last source that is not in a ring", role, tensor.name);
  }
  OXB_TRY(check_matrix(context, tensor, role, DataType::kI32, 1, 0));
  return check_run_rows(context, last, tensor, role);
}

Status bind_segments(TermInputs& inputs, AttentionParams& params) {
  BindContext& context = inputs.context;
  const Tensor types = inputs.take(), table = inputs.take(), bias = inputs.take();
  if (!params.own) return context.fail("segments need own rows: a query's type is that of its row");
  OXB_TRY(check_row_numbers(context, params, types, "types"));
  OXB_TRY(check_weight(context, table, "segment table", 2, params.q.width));
  OXB_TRY(check_weight(context, bias, "segment bias", 1, params.q.width));
  params.types = types.i32();
  params.segment_table = table.f32();
  params.segment_bias = bias.f32();
  params.shape.segments = true;
  params.shape.segment_stride = table.width;
  return Status::kOk;
}

Status bind_mask(TermInputs& inputs, const schema::AttentionOptions& options,
                 AttentionParams& params) {
  BindContext& context = inputs.context;
  params.mask_queries = options.mask_queries();
  params.mask_keeps_own = options.mask_keeps_own();
  if ((params.mask_queries || params.mask_keeps_own) && !(options.key_mask() && params.own)) {
    return context.fail("masks queries or keeps own rows without a mask of own rows");
  }
  if (!options.key_mask()) return Status::kOk;
  const Tensor mask = inputs.take();
  OXB_TRY(check_row_numbers(context, params, mask, "mask"));
  params.mask = mask.i32();
  params.has_mask = true;
  return Status::kOk;
}

Status bind_rooms(TermInputs& inputs, const schema::AttentionOptions& options,
                  AttentionParams& params) {
  BindContext& context = inputs.context;
  if (options.rooms() > kMaxAttentionRooms ||
      (options.rooms() != 0 && params.shape.distances == 0)) {
    return context.fail("has %u rings that tables are read by, expected tables and at most %zu",
                        options.rooms(), kMaxAttentionRooms);
  }
  for (uint32_t i = 0; i < options.rooms(); ++i) {
    const Tensor state = inputs.take();
    if (state.ring < 0) {
      return context.fail("state '%s' must be in a ring to have room", state.name);
    }
    params.rooms[i] = state.ring;
    params.shape.relative_zero += context.ring_capacity(state.ring);
  }
  return Status::kOk;
}

Status bind_terms(BindContext& context, const schema::AttentionOptions& options,
                  AttentionParams& params, DataType type) {
  TermInputs inputs{context, 1 + 2 * params.sources};
  if (options.relative() && options.distance_bias()) {
    return context.fail("has both a relative term and a distance bias");
  }
  if (options.relative_keys() && !options.relative()) {
    return context.fail("has relative keys without a relative term");
  }
  params.shape.relative_keys = options.relative_keys();
  if (options.relative()) OXB_TRY(bind_relative(inputs, params, type));
  if (options.distance_bias()) OXB_TRY(bind_distance_bias(inputs, params));
  params.shape.relative_zero = options.relative_zero();
  if (params.shape.distances == 0 ? options.relative_zero() != 0
                                  : options.relative_zero() >= params.shape.distances) {
    return context.fail("relative_zero is %u in a table of %zu rows", options.relative_zero(),
                        params.shape.distances);
  }
  if (options.alibi()) {
    const Tensor slopes = inputs.take();
    OXB_TRY(check_weight(context, slopes, "slopes", 1, params.heads));
    params.slopes = slopes.f32();
    params.shape.alibi = true;
  }
  if (options.segments()) OXB_TRY(bind_segments(inputs, params));
  OXB_TRY(bind_mask(inputs, options, params));
  if (options.globals()) {
    const Tensor globals = inputs.take();
    OXB_TRY(check_row_numbers(context, params, globals, "flags"));
    params.globals = globals.i32();
    params.has_globals = true;
  }
  if (options.pinned_query()) {
    const Tensor pinned = inputs.take();
    OXB_TRY(check_matrix(context, pinned, "pinned query", DataType::kF32, params.q.width, 0));
    OXB_TRY(check_run_rows(context, params.q, pinned, "pinned query"));
    params.pinned_query = pinned.f32();
    params.has_pinned_query = true;
  }
  return bind_rooms(inputs, options, params);
}

Status bind_dilation(BindContext& context, const flatbuffers::Vector<uint32_t>* list,
                     AttentionParams& params) {
  if (list == nullptr || list->size() == 0) return Status::kOk;
  if (list->size() != 1 && list->size() != params.heads) {
    return context.fail("has %u dilations for %zu heads", list->size(), params.heads);
  }
  for (uint32_t i = 0; i < list->size(); ++i) {
    if (list->Get(i) == 0) return context.fail("dilation %u is 0", i);
  }
  params.pattern.dilation = list->data();
  params.pattern.dilations = list->size();
  return Status::kOk;
}

Status bind_pattern(BindContext& context, const schema::Pattern* options, AttentionParams& params) {
  if (options == nullptr) return Status::kOk;
  using Kind = schema::PatternKind;
  PatternParams& p = params.pattern;
  p.kind = options->kind();
  p.before = options->before();
  p.after = options->after();
  p.first = options->first();
  p.length = options->length();
  p.wrap = options->wrap();
  p.causal = options->causal();
  p.summary = options->summary();
  p.summary_sets = options->summary_sets();
  p.image_width = options->image_width();
  p.block_width = options->block_width();
  if (p.kind > Kind::MAX) {
    return context.fail("has an unknown pattern, %u", static_cast<unsigned>(p.kind));
  }
  if (p.kind == Kind::Window) OXB_TRY(bind_dilation(context, options->dilation(), params));
  const bool has_length = p.kind == Kind::Chunked || p.kind == Kind::Strided ||
                          p.kind == Kind::Fixed || p.kind == Kind::Block1D ||
                          p.kind == Kind::Block2D;
  if (has_length && p.length == 0) {
    return context.fail("pattern %s has the length 0", schema::EnumNamePatternKind(p.kind));
  }
  if (p.kind == Kind::Chunked && p.wrap && !params.own) {
    return context.fail("chunks that wrap need own rows");
  }
  if (p.kind == Kind::Fixed &&
      (p.summary_sets == 0 || uint64_t{p.summary} * p.summary_sets > p.length)) {
    return context.fail("%u sets of %u summary slots do not fit groups of %u", p.summary_sets,
                        p.summary, p.length);
  }
  if (p.kind == Kind::Block2D && (p.image_width == 0 || p.block_width == 0)) {
    return context.fail("blocks of %u columns in an image of %u columns", p.block_width,
                        p.image_width);
  }
  return Status::kOk;
}

Status request_scratch(BindContext& context, AttentionParams& params) {
  // Sums of at most 32 rows of 2^30 floats and two lists of 2^31 rows: they fit 64 bits.
  uint64_t bytes = 0;
  const auto take = [&bytes](uint64_t count) {
    const uint64_t at = bytes;
    bytes = (at + count * 4 + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
    return static_cast<size_t>(at);
  };
  const uint64_t last_rows = params.source[params.sources - 1].rows;
  if (params.out.type == DataType::kI8) {
    take(uint64_t{float_rows(params, params.q.rows)} * params.q.width);
  }
  if (params.has_mask) params.turns_at = take(last_rows);
  if (params.has_globals) params.globals_at = take(last_rows);
  params.workers_at = static_cast<size_t>(bytes);
  if (!depends_on_head(params.pattern)) {
    params.heads_at_once = std::min(ceil_div(params.heads, context.threads()), kMaxHeadsAtOnce);
  }
  // Sixteen times four rows of 2^30 floats.
  const uint64_t worker_bytes = params.heads_at_once * uint64_t{head_scratch_bytes(params)};
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
  OXB_TRY(check_matrix(context, q, "q", DataType::kF32, q.width, 0));
  return check_run_rows(context, q, q, "q");
}

}  // namespace

Status bind_attention(BindContext& context, RunFunction* run) {
  const auto* options = context.step().options_as_AttentionOptions();
  if (options == nullptr) return fail_options(context, "AttentionOptions");
  const uint32_t sources = options->sources();
  if (sources == 0 || sources > kMaxAttentionSources) {
    return context.fail("has %u sources, expected 1 to %zu", sources, kMaxAttentionSources);
  }
  OXB_TRY(check_counts(context, 1 + 2 * size_t{sources} + count_term_inputs(*options), 1));
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
  for (size_t i = 0; i < sources; ++i) OXB_TRY(bind_source(context, params, i, type));
  OXB_TRY(bind_terms(context, *options, params, type));
  OXB_TRY(bind_pattern(context, options->pattern(), params));
  OXB_TRY(bind_output(context, params));
  OXB_TRY(request_scratch(context, params));

  params.quantize = pick_quantize_kernel(context.reference_only());
  params.f32_kernel = pick_kernel<float>(context.reference_only());
  params.i8_kernel = pick_kernel<int8_t>(context.reference_only());
  *run = attention_run_function(type);
  return Status::kOk;
}

}  // namespace oxbow

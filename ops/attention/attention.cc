// Binds and runs attention: sources become spans, the pattern clips them for each query, and heads
// and queries are spread over threads. The arithmetic is in the kernels.

#include "ops/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ops/common/checks.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

/// Queries of one head in one work item: enough to outweigh handing it out, and they share their
/// keys.
constexpr size_t kItemQueries = 8;
/// Rows computed in float at a time before they are quantised, when the output is int8.
constexpr size_t kQuantisedRows = 32;
/// A ring comes in at most two pieces.
constexpr size_t kMaxSpans = 2 * kMaxAttentionSources;

size_t float_rows(const AttentionParams& params, size_t rows) {
  return params.out.type == DataType::kI8 ? std::min(rows, kQuantisedRows) : rows;
}

template <typename Element>
const Element* row_of(const Tensor& tensor, size_t row) {
  if constexpr (std::is_same_v<Element, float>) {
    return tensor.f32(row);
  } else {
    return tensor.i8(row);
  }
}

template <typename Element>
AttentionKernel<Element> kernel_of(const AttentionParams& params) {
  if constexpr (std::is_same_v<Element, float>) {
    return params.f32_kernel;
  } else {
    return params.i8_kernel;
  }
}

template <typename Element>
KeySpan<Element> span_of(const AttentionParams& params, size_t source, size_t kv_head, size_t row,
                         size_t count, size_t first_slot) {
  const Tensor& k = params.k[source];
  const Tensor& v = params.v[source];
  const size_t column = kv_head * params.shape.head_width;
  KeySpan<Element> span;
  span.k = row_of<Element>(k, row) + column;
  span.v = row_of<Element>(v, row) + column;
  if constexpr (std::is_same_v<Element, int8_t>) {
    span.k_scales = k.row_scales(row) + kv_head;
    span.v_scales = v.row_scales(row) + kv_head;
  }
  span.count = count;
  span.first_slot = first_slot;
  return span;
}

/// The rings of all memories as spans, oldest first. Returns how many; `slots` gets their keys.
template <typename Element>
size_t memory_spans(const RunContext& context, const AttentionParams& params, size_t kv_head,
                    KeySpan<Element>* spans, size_t* slots) {
  size_t span_count = 0, slot = 0;
  for (size_t source = 0; source + 1 < params.sources; ++source) {
    const Tensor& k = params.k[source];
    const RingPosition ring = context.rings[k.ring];
    const size_t first = std::min<size_t>(ring.count, k.rows - ring.head);
    const size_t second = ring.count - first;
    if (first != 0) {
      spans[span_count++] = span_of<Element>(params, source, kv_head, ring.head, first, slot);
    }
    if (second != 0) {
      spans[span_count++] = span_of<Element>(params, source, kv_head, 0, second, slot + first);
    }
    slot += ring.count;
  }
  *slots = slot;
  return span_count;
}

/// Queries [first, last) of one head; row i of the result goes to out + (i - out_first) * width.
template <typename Element>
void attend(const RunContext& context, const AttentionParams& params, size_t head, size_t first,
            size_t last, std::byte* scratch, float* out, size_t out_first) {
  const AttentionShape& shape = params.shape;
  const size_t column = head * shape.head_width;
  const size_t kv_head = head / (params.heads / params.kv_heads);

  KeySpan<Element> spans[kMaxSpans];
  size_t memory_slots = 0;
  const size_t own = memory_spans(context, params, kv_head, spans, &memory_slots);

  AttentionQuery<Element> query;
  if (shape.distances != 0) {
    query.query_bias = params.query_bias.f32() + column;
    query.table = row_of<Element>(params.table, 0) + column;
    if constexpr (std::is_same_v<Element, int8_t>) query.table_scales = params.table.scales + head;
    query.bias = params.bias.f32() + head;
  }
  for (size_t i = first; i < last; ++i) {
    query.q = params.q.f32(i) + column;
    query.slot = memory_slots + i;
    // The causal pattern: all of the memories, and this run's rows up to the query's own.
    spans[own] = span_of<Element>(params, params.sources - 1, kv_head, 0, i + 1, memory_slots);
    kernel_of<Element>(params)(query, spans, own + 1, shape, scratch,
                               out + (i - out_first) * params.q.width + column);
  }
}

template <typename Element>
Status run_attention(RunContext& context, const void* raw_params) {
  const auto& params = *static_cast<const AttentionParams*>(raw_params);
  const size_t rows = context.rows(params.q);
  const size_t step = float_rows(params, rows);
  const size_t worker_bytes = attention_scratch_bytes(params.shape.head_width);
  const bool quantise = params.out.type == DataType::kI8;
  Tensor out = params.out;
  // Layout of the scratch: rows in float if the output is int8, then a part for each worker.
  auto* float_out = reinterpret_cast<float*>(context.scratch);
  std::byte* workers = context.scratch;
  if (quantise) {
    workers += round_up(float_rows(params, params.q.rows) * params.q.width * sizeof(float),
                        kTensorAlignment);
  }

  for (size_t first = 0; first < rows; first += step) {
    const size_t last = std::min(rows, first + step);
    float* target = quantise ? float_out : out.f32(first);
    const size_t blocks = ceil_div(last - first, kItemQueries);
    parallel_for(context.pool, blocks * params.heads, [&](size_t item, size_t worker) {
      const size_t begin = first + item % blocks * kItemQueries;
      attend<Element>(context, params, item / blocks, begin, std::min(last, begin + kItemQueries),
                      workers + worker * worker_bytes, target, first);
    });
    if (!quantise) continue;
    parallel_for(context.pool, last - first, [&](size_t row, size_t) {
      params.quantize(target + row * out.width, out.width, out.scale_groups, out.i8(first + row),
                      out.row_scales(first + row));
    });
  }
  return Status::kOk;
}

template <typename Element>
AttentionKernel<Element> pick_kernel([[maybe_unused]] bool reference_only) {
#define OXB_KERNEL(element, isa, name)              \
  if constexpr (std::is_same_v<element, Element>) { \
    if (may_use(isa, reference_only)) return name;  \
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

/// As many rows in every run as q, and room for them.
Status check_run_rows(BindContext& context, const Tensor& q, const Tensor& tensor,
                      const char* role) {
  if (tensor.ring >= 0) {
    return context.fail("%s '%s' must not be in a ring", role, tensor.name);
  }
  if (tensor.rows_symbol != q.rows_symbol || (q.rows_symbol < 0 && tensor.rows != q.rows)) {
    return context.fail("%s '%s' must have as many rows as q '%s'", role, tensor.name, q.name);
  }
  if (q.rows_symbol >= 0 && context.symbol_max(q.rows_symbol) > tensor.rows) {
    return context.fail("%s '%s' has room for %u rows, up to %u may come", role, tensor.name,
                        tensor.rows, context.symbol_max(q.rows_symbol));
  }
  return Status::kOk;
}

/// Rows of a ring, all of it.
Status check_ring_rows(BindContext& context, const Tensor& tensor, const char* role) {
  if (tensor.ring < 0) {
    return context.fail("%s '%s' must be in a ring: only the last source is not", role,
                        tensor.name);
  }
  if (tensor.rows_symbol >= 0 || tensor.rows != context.ring_capacity(tensor.ring)) {
    return context.fail("%s '%s' has %u rows, expected the capacity of its ring, %u", role,
                        tensor.name, tensor.rows, context.ring_capacity(tensor.ring));
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

Status bind_sources(BindContext& context, AttentionParams& params) {
  AttentionShape& shape = params.shape;
  const DataType type = context.input(1).type;
  if (type != DataType::kF32 && type != DataType::kI8) {
    return context.fail("keys '%s' must be F32 or I8", context.input(1).name);
  }
  const uint64_t width = params.kv_heads * shape.head_width;
  for (size_t source = 0; source < params.sources; ++source) {
    const bool own = source + 1 == params.sources;
    Tensor& k = params.k[source] = context.input(1 + 2 * source);
    Tensor& v = params.v[source] = context.input(2 + 2 * source);
    OXB_TRY(check_matrix(context, k, "keys", type, width, params.kv_heads));
    OXB_TRY(check_matrix(context, v, "values", type, width, params.kv_heads));
    if (own) {
      OXB_TRY(check_run_rows(context, params.q, k, "keys"));
      OXB_TRY(check_run_rows(context, params.q, v, "values"));
    } else {
      OXB_TRY(check_ring_rows(context, k, "keys"));
      OXB_TRY(check_ring_rows(context, v, "values"));
      if (k.ring != v.ring) {
        return context.fail("keys '%s' and values '%s' must be in the same ring", k.name, v.name);
      }
    }
  }
  const bool is_f32 = type == DataType::kF32;
  shape.key_stride = is_f32 ? width : params.k[0].stride();
  shape.key_scale_stride = is_f32 ? 0 : params.kv_heads;
  return Status::kOk;
}

Status bind_relative(BindContext& context, AttentionParams& params) {
  AttentionShape& shape = params.shape;
  const DataType type = params.k[0].type;
  const size_t first = 1 + 2 * params.sources;
  Tensor& table = params.table = context.input(first);
  Tensor& bias = params.bias = context.input(first + 1);
  Tensor& query_bias = params.query_bias = context.input(first + 2);
  OXB_TRY(check_matrix(context, table, "table", type, params.q.width, params.heads));
  OXB_TRY(check_fixed_rows(context, table, "table", table.rows));
  OXB_TRY(check_matrix(context, bias, "bias", DataType::kF32, params.heads, 0));
  OXB_TRY(check_fixed_rows(context, bias, "bias", table.rows));
  OXB_TRY(check_matrix(context, query_bias, "query bias", DataType::kF32, params.q.width, 0));
  OXB_TRY(check_fixed_rows(context, query_bias, "query bias", 1));
  shape.distances = table.rows;
  shape.table_stride = type == DataType::kF32 ? table.width : table.stride();
  shape.table_scale_stride = params.heads;
  shape.bias_stride = params.heads;
  return Status::kOk;
}

Status request_scratch(BindContext& context, const AttentionParams& params) {
  uint64_t bytes = 0, workers = 0;
  if (params.out.type == DataType::kI8) {
    // At most 32 rows of 2^30 floats.
    bytes = uint64_t{float_rows(params, params.q.rows)} * params.q.width * sizeof(float);
    bytes = (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  }
  if (!checked_mul(context.threads(), attention_scratch_bytes(params.shape.head_width), &workers) ||
      !checked_add(bytes, workers, &bytes) || bytes > SIZE_MAX / 2) {
    return context.fail("scratch for %zu threads does not fit", context.threads());
  }
  context.request_scratch(static_cast<size_t>(bytes));
  return Status::kOk;
}

}  // namespace

Status bind_attention(BindContext& context, RunFunction* run) {
  const auto* options = context.step().options_as_AttentionOptions();
  if (options == nullptr) return context.fail("has no AttentionOptions");
  const uint32_t sources = options->sources();
  if (sources == 0 || sources > kMaxAttentionSources) {
    return context.fail("has %u sources, expected 1 to %zu", sources, kMaxAttentionSources);
  }
  const size_t inputs = 1 + 2 * size_t{sources} + (options->relative() ? 3 : 0);
  if (context.input_count() != inputs || context.output_count() != 1) {
    return context.fail("has %zu inputs and %zu outputs, expected %zu and 1", context.input_count(),
                        context.output_count(), inputs);
  }
  if (!std::isfinite(options->scale())) return context.fail("scale must be finite");

  AttentionParams& params = context.params<AttentionParams>();
  params.sources = sources;
  params.heads = options->heads();
  params.kv_heads = options->kv_heads();
  params.shape.scale = options->scale();
  params.q = context.input(0);
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
  OXB_TRY(check_run_rows(context, q, q, "q"));
  OXB_TRY(bind_sources(context, params));
  if (options->relative()) OXB_TRY(bind_relative(context, params));
  OXB_TRY(bind_output(context, params));
  OXB_TRY(request_scratch(context, params));

  params.quantize = pick_quantize_kernel(context.reference_only());
  if (params.k[0].type == DataType::kF32) {
    params.f32_kernel = pick_kernel<float>(context.reference_only());
    *run = run_attention<float>;
  } else {
    params.i8_kernel = pick_kernel<int8_t>(context.reference_only());
    *run = run_attention<int8_t>;
  }
  return Status::kOk;
}

}  // namespace oxbow

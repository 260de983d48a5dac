// Binds attention to shaders, for what they know: up to three sources, the patterns and terms whose lines in
// patterns.inc and terms.inc say so, a mask of keys with the simplest patterns. Everything else stays on the CPU.

#include <algorithm>
#include <bit>
#include <iterator>

#include "ops/attention/attention.h"
#include "ops/attention/dispatch_values.h"
#include "ops/attention/patterns/pattern.h"
#include "ops/attention/terms/terms.h"
#include "runtime/device/vulkan/vulkan_op.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(attention_f32);
OXB_SHADER(attention_i8);
OXB_SHADER(quantize);
OXB_SHADER(seen_rows);

namespace {

using Kind = schema::TermKind;

/// A group of threads then shares 13.6 KiB in float, of the 16 that every device has.
constexpr uint32_t kMaxVulkanHeadWidth = 256;
/// Of ops/common/vulkan/row_output.glsl.
constexpr uint32_t kMaxScaleGroups = 256;
/// All positions together, and what distances grow by, so that sums of them fit 32 bits.
constexpr uint64_t kMostPositions = uint64_t{1} << 29;

struct Source {
  int32_t ring = -1;
  int32_t rows_symbol = -1;
  uint32_t rows = 0;
};

struct Params {
  Tensor q;
  Source source[OXB_MAX_SOURCES];
  size_t sources = 0;
  uint32_t kv_heads = 1;
  uint32_t group = 1;
  bool aligned = false;
  bool has_mask = false;
  bool quantises = false;
  /// The table's row of d = 0 when the rings with room are empty, and those rings.
  uint32_t relative_zero = 0;
  int32_t rooms[RoomsTerm::kMostInputs] = {-1, -1};
  uint32_t fixed[std::size(DispatchValues().values) - OXB_FIXED] = {};

  /// By its place among the values.
  uint32_t& at(size_t place) { return fixed[place - OXB_FIXED]; }
};

Status prepare_attention(RunContext& context, const void* raw_params,
                         std::span<DispatchValues> dispatches) {
  const auto& p = *static_cast<const Params*>(raw_params);
  const uint32_t rows = context.rows(p.q);
  DispatchValues& dispatch = dispatches[p.has_mask ? 1 : 0];
  uint32_t positions = 0, last_rows = 0, zero = p.relative_zero;
  for (const int32_t ring : p.rooms) {
    if (ring >= 0) zero -= context.rings[ring].count;
  }
  for (size_t s = 0; s < p.sources; ++s) {
    const Source& source = p.source[s];
    RingPosition held;
    if (source.ring >= 0) {
      held = context.rings[source.ring];
    } else {
      held.count = source.rows_symbol < 0 ? source.rows : context.symbols[source.rows_symbol];
    }
    positions += held.count;
    last_rows = source.ring >= 0 ? 0 : held.count;
    dispatch.values[OXB_SOURCE_COUNT + s] = held.count;
    dispatch.values[OXB_SOURCE_HEAD + s] = held.head;
  }
  for (size_t s = p.sources; s < OXB_MAX_SOURCES; ++s) {
    dispatch.values[OXB_SOURCE_COUNT + s] = dispatch.values[OXB_SOURCE_HEAD + s] = 0;
  }
  // Queries of one row at a time, unless all rows number their keys alike.
  const uint64_t blocks = p.aligned ? ceil_div(uint64_t{rows} * p.group, OXB_ITEMS_AT_ONCE)
                                    : uint64_t{rows} * ceil_div(p.group, OXB_ITEMS_AT_ONCE);
  dispatch.values[OXB_QUERY_ROWS] = rows;
  dispatch.values[OXB_LAST_SOURCE] = positions - last_rows;
  dispatch.values[OXB_RELATIVE_ZERO] = zero;
  dispatch.values[OXB_BLOCKS] = static_cast<uint32_t>(blocks);
  std::copy(std::begin(p.fixed), std::end(p.fixed), dispatch.values + OXB_FIXED);
  OXB_TRY(spread_groups(context, blocks * p.kv_heads, &dispatch));
  if (p.has_mask) {
    dispatches[0].values[0] = last_rows;
    OXB_TRY(spread_groups(context, last_rows == 0 ? 0 : 1, &dispatches[0]));
  }
  if (p.quantises) {
    dispatches.back().values[0] = rows;
    OXB_TRY(spread_groups(context, rows, &dispatches.back()));
  }
  return Status::kOk;
}

/// Larger numbers than there are positions mean the same as this.
uint32_t cut(uint32_t number) {
  return static_cast<uint32_t>(std::min<uint64_t>(number, kMostPositions * 2));
}

bool knows_options(const schema::AttentionOptions& options, const TermList& terms,
                   const PatternParams& pattern) {
  if (options.sources() > OXB_MAX_SOURCES) return false;
  if (!shader_knows(terms) || !shader_knows(pattern)) return false;
  // Which keys are left is listed once for all queries.
  return !terms.has(Kind::KeyMask) || (shows_from_start(pattern) && !options.mask_keeps_own());
}

/// Columns that the shaders' arrays are made for.
uint32_t width_room(uint32_t head_width) { return static_cast<uint32_t>(round_up(head_width, 64)); }

bool knows_shapes(const VulkanBindContext& context, const schema::AttentionOptions& options) {
  const Tensor q = context.input(0), out = context.output(0);
  const uint32_t head_width = q.width / options.heads();
  if (head_width > kMaxVulkanHeadWidth || out.scale_groups > kMaxScaleGroups) return false;
  // Values are as wide as keys, and nobody wants the log-sum-exp.
  if (out.width != q.width || context.step().outputs()->size() != 1) return false;
  for (uint32_t s = 0; s + 1 < options.sources(); ++s) {
    if (context.input(1 + 2 * s).rows != context.input(2 + 2 * s).rows) return false;
  }
  uint64_t positions = q.rows;
  for (size_t i = 0; i < context.input_count(); ++i) {
    const Tensor input = context.input(i);
    if (!fits_32_bits(input) || input.type == DataType::kI4Rows) return false;
    positions += input.rows;
  }
  // Every item has a number, and scratch the floats of an int8 output.
  return positions <= kMostPositions && uint64_t{q.rows} * options.heads() <= UINT32_MAX &&
         uint64_t{q.rows} * q.width <= UINT32_MAX / 4;
}

/// Where each input is, and what takes the place of those that are missing: they are never read.
struct Inputs {
  VulkanOperand table, bias, query_bias, slopes, mask, pinned_query;
};

Inputs find_inputs(const VulkanBindContext& context, const schema::AttentionOptions& options,
                   const TermList& terms, Params* params) {
  const auto input = [&](Kind kind, size_t index) {
    const TermUse* use = terms.find(kind);
    return context.in(use == nullptr ? 0 : use->first_input + index);
  };
  Inputs inputs;
  inputs.table = input(Kind::Relative, 0);
  inputs.bias = terms.has(Kind::Relative) ? input(Kind::Relative, 1) : input(Kind::DistanceBias, 0);
  inputs.query_bias = input(Kind::Relative, 2);
  inputs.slopes = input(Kind::Alibi, 0);
  inputs.mask = input(Kind::KeyMask, 0);
  inputs.pinned_query = input(Kind::PinnedQuery, 0);
  params->relative_zero = options.relative_zero();
  if (const TermUse* rooms = terms.find(Kind::Rooms); rooms != nullptr) {
    for (size_t i = 0; i < rooms->inputs; ++i) {
      params->rooms[i] = context.input(rooms->first_input + i).ring;
      params->relative_zero += context.ring_capacity(params->rooms[i]);
    }
  }
  return inputs;
}

uint32_t flags_of(const schema::AttentionOptions& options, const TermList& terms,
                  const Tensor& keys, uint32_t head_width) {
  uint32_t flags = 0;
  for (size_t i = 0; i < terms.count; ++i) {
    flags |= 1u << static_cast<uint32_t>(terms.terms[i].kind);
  }
  const bool odd_heads = keys.type == DataType::kI8 && head_width % 4 != 0;
  return flags | uint32_t{options.mask_queries()} << OXB_MASKS_QUERIES |
         uint32_t{odd_heads} << OXB_ODD_HEADS;
}

void fill_shape(const schema::AttentionOptions& options, const PatternParams& pattern,
                const Tensor& q, uint32_t distances, Params* params) {
  params->at(OXB_HEAD_WIDTH) = q.width / options.heads();
  params->at(OXB_HEADS) = options.heads();
  params->at(OXB_GROUP_HEADS) = options.heads() / options.kv_heads();
  params->at(OXB_SCALE) = std::bit_cast<uint32_t>(options.scale());
  params->at(OXB_DISTANCES) = distances;
  params->at(OXB_PATTERN_FLAGS) = static_cast<uint32_t>(pattern.kind) + OXB_OWN * options.own() +
                                  OXB_ALIGNED * params->aligned + OXB_CAUSAL * pattern.causal +
                                  OXB_WRAP * pattern.wrap;
  params->at(OXB_BEFORE) = cut(pattern.before);
  params->at(OXB_AFTER) = cut(pattern.after);
  params->at(OXB_FIRST) = cut(pattern.first);
  params->at(OXB_LENGTH) = cut(pattern.length);
  if (pattern.kind == schema::PatternKind::Window) {
    params->at(OXB_LENGTH) = pattern.dilations == 0 ? 1 : cut(pattern.dilation[0]);
  }
}

}  // namespace

Status bind_attention_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_AttentionOptions();
  const TermList terms = list_terms(options);
  const PatternParams pattern = read_pattern(options.pattern());
  if (!knows_options(options, terms, pattern) || !knows_shapes(context, options)) {
    return Status::kOk;
  }
  const Tensor q = context.input(0), keys = context.input(1), out = context.output(0);

  auto& params = context.params<Params>();
  params.q = q;
  params.sources = options.sources();
  params.kv_heads = options.kv_heads();
  params.group = options.heads() / options.kv_heads();
  params.aligned = shows_from_start(pattern);
  params.has_mask = terms.has(Kind::KeyMask);
  params.quantises = out.type == DataType::kI8;
  const Inputs inputs = find_inputs(context, options, terms, &params);

  const uint32_t distances = inputs.bias.index == 0 ? 1 : context.input(inputs.bias.index).rows;
  fill_shape(options, pattern, q, distances, &params);
  VulkanOperand operands[kMaxVulkanOperands];
  std::fill(std::begin(operands), std::end(operands), context.in(0));
  for (size_t s = 0; s < params.sources; ++s) {
    const Tensor k = context.input(1 + 2 * s), v = context.input(2 + 2 * s);
    params.source[s] = {k.ring, k.rows_symbol, k.rows};
    params.at(OXB_SOURCE_CAPACITY + s) = k.rows;
    params.at(OXB_SOURCE_PINNED + s) = k.ring < 0 ? 0 : k.pinned;
    params.at(OXB_UNEVEN_SOURCE) = static_cast<uint32_t>(s);
    params.at(OXB_VALUE_CAPACITY) = v.rows;
    operands[2 + 2 * s] = context.in(1 + 2 * s);
    operands[3 + 2 * s] = context.in(2 + 2 * s);
  }
  context.prepare(prepare_attention);

  // Scratch: float rows of an int8 output, then what the mask leaves.
  const uint64_t float_bytes =
      params.quantises ? round_up(uint64_t{q.rows} * q.width * 4, uint64_t{kTensorAlignment}) : 0;
  uint64_t mask_bytes = 0;
  if (params.has_mask) mask_bytes = uint64_t{context.input(inputs.mask.index).rows} * 8;
  if (float_bytes + mask_bytes != 0) context.request_scratch(float_bytes + mask_bytes);
  const VulkanOperand floats = context.scratch(0, float_bytes);
  const VulkanOperand seen = context.scratch(float_bytes, mask_bytes);
  if (params.has_mask) OXB_TRY(context.dispatch(shader_seen_rows, {seen, inputs.mask}, {}));

  operands[1] = params.quantises ? floats : context.out(0);
  operands[8] = inputs.table;
  operands[9] = inputs.bias;
  operands[10] = inputs.query_bias;
  operands[11] = inputs.slopes;
  if (params.has_mask) operands[12] = seen;
  operands[13] = inputs.mask;
  operands[14] = inputs.pinned_query;
  const uint32_t head_width = q.width / options.heads();
  const uint32_t constants[] = {width_room(head_width), flags_of(options, terms, keys, head_width),
                                options.sources()};
  OXB_TRY(context.dispatch(keys.type == DataType::kF32 ? shader_attention_f32 : shader_attention_i8,
                           operands, constants));
  if (!params.quantises) return Status::kOk;
  return context.dispatch(shader_quantize, {context.out(0), floats},
                          {out.width, out.scale_groups, scale_word(out),
                           std::bit_cast<uint32_t>(out.static_scale), out.hadamard});
}

}  // namespace oxbow

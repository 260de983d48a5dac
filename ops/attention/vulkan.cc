// Binds attention to shaders, for what they know: up to three sources, all patterns whose keys are two spans, a mask of
// keys with the simplest of them. Everything else stays on the CPU.

#include <algorithm>
#include <bit>
#include <iterator>

#include "ops/attention/attention.h"
#include "runtime/vulkan_op.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(attention_f32);
OXB_SHADER(attention_i8);
OXB_SHADER(quantize);
OXB_SHADER(seen_rows);

namespace {

using Kind = schema::PatternKind;

// What attention.glsl has room for.
constexpr uint32_t kItemsAtOnce = 4;
constexpr uint32_t kMaxVulkanHeadWidth = 256;
constexpr size_t kMaxSources = 3;
/// Of ops/common/vulkan/row_output.glsl.
constexpr uint32_t kMaxScaleGroups = 256;
/// All slots together, and what distances grow by, so that sums of them fit 32 bits.
constexpr uint64_t kMostSlots = uint64_t{1} << 29;

/// The flags of attention.glsl.
constexpr uint32_t kRelative = 1;
constexpr uint32_t kDistanceBias = 2;
constexpr uint32_t kAlibi = 4;
constexpr uint32_t kKeyMask = 8;
constexpr uint32_t kMaskQueries = 16;
constexpr uint32_t kPinnedQuery = 32;
constexpr uint32_t kOddHeads = 64;
// Of the pattern's number.
constexpr uint32_t kCausal = 256;
constexpr uint32_t kWrap = 512;
constexpr uint32_t kOwn = 1024;
constexpr uint32_t kAligned = 2048;
/// The part of a slot that is the same in every run: values from here on.
constexpr size_t kFixed = 10;

struct Source {
  int32_t ring = -1;
  int32_t rows_symbol = -1;
  uint32_t rows = 0;
};

struct Params {
  Tensor q;
  Source source[kMaxSources];
  size_t sources = 0;
  uint32_t kv_heads = 1;
  uint32_t group = 1;
  bool aligned = false;
  bool has_mask = false;
  bool quantises = false;
  /// The table's row of d = 0 when the rings with room are empty, and those rings.
  uint32_t relative_zero = 0;
  int32_t rooms[kMaxAttentionRooms] = {-1, -1};
  uint32_t fixed[std::size(VulkanSlot().values) - kFixed] = {};
};

Status prepare_attention(RunContext& context, const void* raw_params, std::span<VulkanSlot> slots) {
  const auto& p = *static_cast<const Params*>(raw_params);
  const uint32_t rows = context.rows(p.q);
  VulkanSlot& slot = slots[p.has_mask ? 1 : 0];
  uint32_t memory_slots = 0, last_rows = 0, zero = p.relative_zero;
  for (const int32_t ring : p.rooms) {
    if (ring >= 0) zero -= context.rings[ring].count;
  }
  for (size_t s = 0; s < kMaxSources; ++s) {
    const Source& source = p.source[s];
    uint32_t count = 0, head = 0;
    if (source.ring >= 0) {
      count = context.rings[source.ring].count;
      head = context.rings[source.ring].head;
      memory_slots += count;
    } else if (s < p.sources) {
      count = last_rows =
          source.rows_symbol < 0 ? source.rows : context.symbols[source.rows_symbol];
    }
    slot.values[4 + s] = count;
    slot.values[7 + s] = head;
  }
  // Queries of one row at a time, unless all rows number their keys alike.
  const uint64_t blocks = p.aligned ? ceil_div(uint64_t{rows} * p.group, kItemsAtOnce)
                                    : uint64_t{rows} * ceil_div(p.group, kItemsAtOnce);
  slot.values[0] = rows;
  slot.values[1] = memory_slots;
  slot.values[2] = zero;
  slot.values[3] = static_cast<uint32_t>(blocks);
  std::copy(std::begin(p.fixed), std::end(p.fixed), slot.values + kFixed);
  OXB_TRY(spread_groups(context, blocks * p.kv_heads, &slot));
  if (p.has_mask) {
    slots[0].values[0] = last_rows;
    OXB_TRY(spread_groups(context, last_rows == 0 ? 0 : 1, &slots[0]));
  }
  if (p.quantises) {
    slots.back().values[0] = rows;
    OXB_TRY(spread_groups(context, rows, &slots.back()));
  }
  return Status::kOk;
}

/// Larger numbers than there are slots mean the same as this.
uint32_t cut(uint32_t number) {
  return static_cast<uint32_t>(std::min<uint64_t>(number, kMostSlots * 2));
}

Kind kind_of(const schema::AttentionOptions& options) {
  return options.pattern() == nullptr ? Kind::Causal : options.pattern()->kind();
}

bool is_aligned(Kind kind) {
  return kind == Kind::Causal || kind == Kind::Full || kind == Kind::Prefix;
}

bool knows_options(const schema::AttentionOptions& options) {
  if (options.sources() > kMaxSources) return false;
  if (options.segments() || options.globals() || options.relative_keys()) return false;
  const Kind kind = kind_of(options);
  if (kind == Kind::Fixed || kind == Kind::Block2D) return false;
  if (options.pattern() != nullptr && options.pattern()->dilation() != nullptr &&
      options.pattern()->dilation()->size() > 1) {
    return false;
  }
  // Which keys are left is listed once for all queries.
  return !options.key_mask() ||
         ((kind == Kind::Causal || kind == Kind::Full) && !options.mask_keeps_own());
}

/// Columns that the shaders' arrays are made for.
uint32_t width_room(uint32_t head_width) { return static_cast<uint32_t>(round_up(head_width, 64)); }

/// What a group of threads shares: weights, keys and their places, and three kinds of queries.
uint32_t shared_bytes(DataType keys, uint32_t head_width) {
  const uint32_t both = 1664;
  return keys == DataType::kF32 ? both + 8448 + 48 * width_room(head_width)
                                : both + 4400 + 12 * width_room(head_width);
}

bool knows_shapes(const VulkanBindContext& context, const schema::AttentionOptions& options) {
  const Tensor q = context.input(0), out = context.output(0);
  const uint32_t head_width = q.width / options.heads();
  if (head_width > kMaxVulkanHeadWidth || out.scale_groups > kMaxScaleGroups) return false;
  // Every device has 16 KiB, which is enough for float heads of 128.
  if (shared_bytes(context.input(1).type, head_width) > context.features().shared_bytes)
    return false;
  uint64_t slots = q.rows;
  for (size_t i = 0; i < context.input_count(); ++i) {
    const Tensor input = context.input(i);
    if (!fits_32_bits(input)) return false;
    slots += input.rows;
  }
  // Every item has a number, and scratch the floats of an int8 output.
  return slots <= kMostSlots && uint64_t{q.rows} * options.heads() <= UINT32_MAX &&
         uint64_t{q.rows} * q.width <= UINT32_MAX / 4;
}

/// Where each input is, and what takes the place of those that are missing: they are never read.
struct Inputs {
  VulkanOperand table, bias, query_bias, slopes, mask, pinned_query;
};

Inputs find_inputs(const VulkanBindContext& context, const schema::AttentionOptions& options,
                   Params* params) {
  size_t next = 1 + 2 * size_t{options.sources()};
  const VulkanOperand none = context.in(0);
  const auto take = [&](bool is_there) { return is_there ? context.in(next++) : none; };
  Inputs inputs;
  inputs.table = take(options.relative());
  inputs.bias = take(options.relative() || options.distance_bias());
  inputs.query_bias = take(options.relative());
  inputs.slopes = take(options.alibi());
  inputs.mask = take(options.key_mask());
  inputs.pinned_query = take(options.pinned_query());
  params->relative_zero = options.relative_zero();
  for (uint32_t i = 0; i < options.rooms(); ++i) {
    params->rooms[i] = context.input(next++).ring;
    params->relative_zero += context.ring_capacity(params->rooms[i]);
  }
  return inputs;
}

uint32_t flags_of(const schema::AttentionOptions& options, const Tensor& keys,
                  uint32_t head_width) {
  return kRelative * options.relative() + kDistanceBias * options.distance_bias() +
         kAlibi * options.alibi() + kKeyMask * options.key_mask() +
         kMaskQueries * options.mask_queries() + kPinnedQuery * options.pinned_query() +
         kOddHeads * (keys.type == DataType::kI8 && head_width % 4 != 0);
}

/// Values from 18 on of the slot that attention.glsl describes.
void fill_shape(const schema::AttentionOptions& options, const Tensor& q, uint32_t distances,
                uint32_t* values) {
  const Kind kind = kind_of(options);
  values[0] = q.width / options.heads();
  values[1] = options.heads();
  values[2] = options.heads() / options.kv_heads();
  values[3] = std::bit_cast<uint32_t>(options.scale());
  values[4] = distances;
  values[5] = static_cast<uint32_t>(kind) + kOwn * options.own() + kAligned * is_aligned(kind);
  values[9] = 1;
  const schema::Pattern* pattern = options.pattern();
  if (pattern == nullptr) return;
  values[5] += kCausal * pattern->causal() + kWrap * pattern->wrap();
  values[6] = cut(pattern->before());
  values[7] = cut(pattern->after());
  values[8] = cut(pattern->first());
  if (kind == Kind::Window) {
    const auto* dilation = pattern->dilation();
    if (dilation != nullptr && dilation->size() == 1) values[9] = cut(dilation->Get(0));
  } else {
    values[9] = cut(pattern->length());
  }
}

}  // namespace

Status bind_attention_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_AttentionOptions();
  if (!knows_options(options) || !knows_shapes(context, options)) return Status::kOk;
  const Tensor q = context.input(0), keys = context.input(1), out = context.output(0);

  auto& params = context.params<Params>();
  params.q = q;
  params.sources = options.sources();
  params.kv_heads = options.kv_heads();
  params.group = options.heads() / options.kv_heads();
  params.aligned = is_aligned(kind_of(options));
  params.has_mask = options.key_mask();
  params.quantises = out.type == DataType::kI8;
  const Inputs inputs = find_inputs(context, options, &params);

  const uint32_t distances = inputs.bias.index == 0 ? 1 : context.input(inputs.bias.index).rows;
  fill_shape(options, q, distances, params.fixed + (18 - kFixed));
  VulkanOperand operands[kMaxVulkanOperands];
  std::fill(std::begin(operands), std::end(operands), context.in(0));
  for (size_t s = 0; s < params.sources; ++s) {
    const Tensor k = context.input(1 + 2 * s), v = context.input(2 + 2 * s);
    params.source[s] = {k.ring, k.rows_symbol, k.rows};
    params.fixed[s] = k.rows;
    params.fixed[3 + s] = k.ring < 0 ? 0 : k.pinned;
    params.fixed[6] = static_cast<uint32_t>(s);
    params.fixed[7] = v.rows;
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
  const uint32_t constants[] = {width_room(head_width), flags_of(options, keys, head_width)};
  OXB_TRY(context.dispatch(keys.type == DataType::kF32 ? shader_attention_f32 : shader_attention_i8,
                           operands, constants));
  if (!params.quantises) return Status::kOk;
  return context.dispatch(
      shader_quantize, {context.out(0), floats},
      {out.width, out.scale_groups, scale_word(out), std::bit_cast<uint32_t>(out.static_scale)});
}

}  // namespace oxbow

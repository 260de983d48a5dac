#include "ops/common/vulkan_rows.h"
#include "ops/recurrence/recurrence.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(recurrence);
OXB_SHADER(recurrence_keys);
OXB_SHADER(recurrence_decays);

namespace {

using schema::Normaliser;

struct Params {
  /// Its rows are tokens.
  Tensor rows;
  uint32_t heads, columns;
};

/// What the heads sum up, if they do, goes first.
Status prepare_recurrence(RunContext& context, const void* params,
                          std::span<DispatchValues> dispatches) {
  const auto& p = *static_cast<const Params*>(params);
  for (DispatchValues& dispatch : dispatches) {
    const bool last = &dispatch == &dispatches.back();
    dispatch.values[1] = context.rows(p.rows);
    OXB_TRY(spread_elements(context, last ? p.columns : p.heads, &dispatch));
  }
  return Status::kOk;
}

/// The inputs there are; the first one stands for those that are missing.
struct Inputs {
  size_t q = 0, k = 0, v = 0, state = 0, decay = 0, factor = 0, a = 0, b = 0, norm = 0, floor = 0;

  explicit Inputs(const schema::RecurrenceOptions& options) {
    size_t next = 0;
    if (options.reads()) q = next++;
    if (options.writes()) {
      k = next++;
      v = next++;
    }
    state = next++;
    if (options.has_decay()) decay = next++;
    if (options.has_factor()) factor = next++;
    if (options.rank_one()) {
      a = next++;
      b = next++;
    }
    if (options.normaliser() != Normaliser::None) norm = next++;
    if (options.normaliser() == Normaliser::Floored) floor = next++;
  }
};

}  // namespace

Status bind_recurrence_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_RecurrenceOptions();
  const Inputs in(options);
  for (size_t i = 0; i < context.input_count(); ++i) {
    if (!fits_32_bits(context.input(i))) return Status::kOk;
  }
  const Tensor rows = context.input(options.reads() ? in.q : in.k);
  const Tensor state = context.input(in.state), decay = context.input(in.decay);
  const uint32_t heads = options.heads(), keys = rows.width / options.key_heads();
  const bool sums_decays = options.normaliser() == Normaliser::Decays;
  const bool sums_keys = options.normaliser() != Normaliser::None && !sums_decays;
  const bool per_key = options.has_decay() && decay.width != heads;
  const bool shared = decay.rows_symbol < 0 && decay.rows == 1;
  const uint32_t stride = shared ? 0 : decay.width;
  // One float for each token and head; decays sum up to two of them.
  const uint64_t bytes = round_up(uint64_t{rows.rows} * heads * sizeof(float), 64);
  const VulkanOperand first = context.scratch(0, bytes), second = context.scratch(bytes, bytes);
  const auto at = [&](size_t index) { return context.in(index); };
  const VulkanOperand written =
      options.writes() ? context.out(options.reads() ? 1 : 0) : at(in.state);
  context.params<Params>() = {rows, heads, heads * state.width};
  context.prepare(prepare_recurrence);
  // The CPU takes the tokens of long runs in chunks; a thread here has a column and takes them one by one.
  if (options.reads() && options.writes() && keys > kRecurrenceChunkKeys &&
      rows.rows >= kRecurrenceChunked) {
    context.allow_error(kRecurrenceChunkError);
  }

  if (options.normaliser() != Normaliser::None) {
    context.request_scratch(2 * bytes);
    const VulkanOperand norm =
        options.writes() ? context.out(options.reads() ? 2 : 1) : at(in.norm);
    const bool floored = options.normaliser() == Normaliser::Floored;
    const float epsilon = options.epsilon();
    OXB_TRY(
        sums_decays
            ? context.dispatch(shader_recurrence_decays,
                               {norm, at(in.decay), at(in.factor), first, second},
                               {heads, options.has_decay(), stride, options.has_factor()})
            : context.dispatch(
                  shader_recurrence_keys,
                  {norm, at(in.q), at(in.k), at(in.decay), at(in.factor), at(in.floor), first},
                  {heads, options.key_heads(), keys, options.reads(), options.writes(),
                   options.read_before(), options.has_decay(), per_key, stride,
                   floored && options.has_factor(), floored, std::bit_cast<uint32_t>(epsilon)}));
  }
  return context.dispatch(
      shader_recurrence,
      {written, at(in.q), at(in.k), at(in.v), sums_decays ? first : at(in.decay),
       sums_decays ? second : at(in.factor), at(in.a), at(in.b), sums_keys ? first : at(0),
       options.reads() ? context.out(0) : written},
      {heads, options.key_heads(), keys, state.width, options.reads(), options.writes(),
       options.read_before(), options.delta(), options.has_decay() || sums_decays, per_key,
       sums_decays ? heads : stride, options.has_factor() || sums_decays, options.rank_one(),
       sums_keys && options.reads()});
}

}  // namespace oxbow

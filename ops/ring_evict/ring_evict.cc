// Binds and runs ring_evict.

#include "ops/ring_evict/ring_evict.h"

#include <cstring>

#include "ops/common/checks.h"
#include "runtime/base/ring_rule.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

/// Row `slot` of the memory in float.
void load_row(const Tensor& memory, size_t slot, float* out) {
  if (memory.type == DataType::kF32) {
    std::memcpy(out, memory.f32(slot), memory.width * sizeof(float));
    return;
  }
  const float scale = *memory.row_scales(slot);
  const int8_t* codes = memory.i8(slot);
  for (size_t d = 0; d < memory.width; ++d) out[d] = static_cast<float>(codes[d]) * scale;
}

Status run_ring_evict(RunContext& context, const void* raw_params) {
  const auto& params = *static_cast<const RingEvictParams*>(raw_params);
  const Tensor& memory = params.memory;
  const RingPosition ring = context.rings[memory.ring];
  const EvictedRows step = find_evicted_rows(params, ring.count, context.rows(params.rows));
  OXB_TRY(context.set_rows(params.groups, static_cast<uint32_t>(step.groups)));
  if (step.groups == 0) return Status::kOk;

  // Rows of one group lie side by side, so the output is the leaving rows one after the other.
  Tensor groups = params.groups;
  float* out = groups.f32();
  const size_t width = memory.width;
  for (uint64_t row = 0; row < step.padding; ++row, out += width) {
    std::memset(out, 0, width * sizeof(float));
  }
  for (uint64_t row = 0; row < step.groups * params.group - step.padding; ++row, out += width) {
    if (row < ring.count) {
      load_row(memory, static_cast<size_t>((ring.head + row) % memory.rows), out);
    } else {
      std::memcpy(out, params.rows.f32(static_cast<size_t>(row - ring.count)),
                  width * sizeof(float));
    }
  }
  return Status::kOk;
}

RingEvictParams params_of(const schema::RingEvictOptions& options, const Tensor& rows,
                          const Tensor& memory, const Tensor& groups) {
  return {rows,         memory, groups, options.group(), options.pad_front(), options.only_full(),
          options.all()};
}

/// 64 bits: the product of two numbers from the file.
uint64_t rows_side_by_side(const StepView& view) {
  return uint64_t{view.step().options_as_RingEvictOptions()->group()} * view.input(0).width;
}

Status check_group(BindContext& context) {
  if (context.step().options_as_RingEvictOptions()->group() != 0) return Status::kOk;
  return context.fail("group is 0, expected at least 1");
}

/// What leaves a full ring is what enters it, and what leaves never falls when more enters: with padding q whole groups and
/// s rows give q groups, and one more once 2 s >= group.
uint64_t most_groups(const StepView& view) {
  const auto params = params_of(*view.step().options_as_RingEvictOptions(), view.input(0),
                                view.input(1), view.output());
  const uint64_t added = params.only_full != 0 ? params.only_full : params.rows.rows;
  return added > params.rows.rows ? 0 : find_evicted_rows(params, params.memory.rows, added).groups;
}

}  // namespace

constexpr OpSignature kRingEvictSignature = {
    .options = schema::OpOptions::RingEvictOptions,
    .check_options = check_group,
    .inputs = {{.name = "rows", .rows = Rows::with_room()},
               {.name = "memory",
                .role = Role::kState,
                .types = kF32 | kI8OneScale,
                .width = Width::of(0),
                .rows = Rows::ring()}},
    .outputs = {{.name = "groups",
                 .width = Width::told(rows_side_by_side),
                 .rows = Rows::counted(0, most_groups)}},
};

EvictedRows find_evicted_rows(const RingEvictParams& params, uint64_t held, uint64_t added) {
  if (params.only_full != 0 && added != params.only_full) return {};
  if (params.all) return {held};
  if (!params.pad_front) return {ring_step(held, added, params.memory.rows, params.group).groups};
  const uint64_t excess = ring_step(held, added, params.memory.rows, 1).leaving;
  const uint64_t padding = excess % params.group;
  return {(excess + padding) / params.group, padding};
}

Status bind_ring_evict(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kRingEvictSignature));
  RingEvictParams& params = context.params<RingEvictParams>();
  params = params_of(*context.step().options_as_RingEvictOptions(), context.input(0),
                     context.input(1), context.output(0));
  if (params.all && params.group != 1) {
    return context.fail("gives all rows of '%s' in groups of %u, expected 1", params.memory.name,
                        params.group);
  }
  // With padding no row is asked for that does not leave, so any group will do.
  if (!params.pad_front && !ring_takes_group(params.memory.rows, params.group)) {
    return context.fail("the ring of '%s' holds %u rows, too few for groups of %u",
                        params.memory.name, params.memory.rows, params.group);
  }
  *run = run_ring_evict;
  return Status::kOk;
}

}  // namespace oxbow

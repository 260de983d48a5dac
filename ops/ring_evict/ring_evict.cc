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

Status check_groups(BindContext& context, const RingEvictParams& params) {
  const Tensor& groups = params.groups;
  const Tensor& rows = params.rows;
  const uint32_t group = params.group;
  const uint64_t width = uint64_t{group} * rows.width;  // Both below 2^32.
  if (groups.width != width) {
    return context.fail("tensor '%s' has width %u, expected %u rows of %u side by side",
                        groups.name, groups.width, group, rows.width);
  }
  // What leaves a full ring is what enters it, and what leaves never falls when more enters: with
  // padding q whole groups and s rows give q groups, and one more once 2 s >= group.
  const uint64_t added = params.only_full != 0 ? params.only_full : rows.rows;
  const uint64_t most =
      added > rows.rows ? 0 : find_evicted_rows(params, params.memory.rows, added).groups;
  const uint32_t symbol_max = context.symbol_max(groups.rows_symbol);
  if (symbol_max < most || groups.rows < symbol_max) {
    return context.fail("tensor '%s' has room for %u rows and its symbol for %u, expected %llu",
                        groups.name, groups.rows, symbol_max,
                        static_cast<unsigned long long>(most));
  }
  return Status::kOk;
}

}  // namespace

constexpr OpSignature kRingEvictSignature = {
    .options = schema::OpOptions::RingEvictOptions,
    .inputs = {{.name = "rows"},
               {.name = "memory",
                .role = Role::kState,
                .types = kF32 | kI8OneScale,
                .width = Width::of(0),
                .rows = Rows::ring()}},
    .outputs = {{.name = "groups", .rows = Rows::counted(0)}},
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
  const auto* options = context.step().options_as_RingEvictOptions();
  RingEvictParams& params = context.params<RingEvictParams>();
  params.rows = context.input(0);
  params.memory = context.input(1);
  params.groups = context.output(0);
  params.group = options->group();
  OXB_TRY(check_room(context, params.rows));
  params.pad_front = options->pad_front();
  params.only_full = options->only_full();
  params.all = options->all();
  if (params.all && params.group != 1) {
    return context.fail("gives all rows of '%s' in groups of %u, expected 1", params.memory.name,
                        params.group);
  }
  // With padding no row is asked for that does not leave, so any group will do.
  if (params.pad_front ? params.group == 0 : !ring_takes_group(params.memory.rows, params.group)) {
    return context.fail("the ring of '%s' holds %u rows, too few for groups of %u",
                        params.memory.name, params.memory.rows, params.group);
  }
  OXB_TRY(check_groups(context, params));
  *run = run_ring_evict;
  return Status::kOk;
}

}  // namespace oxbow

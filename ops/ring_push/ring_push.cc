// Binds and runs ring_push.

#include "ops/ring_push/ring_push.h"

#include <algorithm>
#include <cstring>

#include "ops/common/checks.h"
#include "runtime/base/quantize.h"
#include "runtime/base/ring_rule.h"
#include "runtime/model/ring_moves.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

/// int8 rows to four bits; their scales stay.
void pack_row(const Tensor& rows, size_t row, Tensor& state, size_t slot) {
  auto* block = reinterpret_cast<I4RowBlock*>(state.data + slot * state.stride());
  for (size_t i = 0; i < state.width; i += kI4RowColumns) pack_i4_block(rows.i8(row) + i, block++);
  std::memcpy(state.row_scales(slot), rows.row_scales(row), state.scale_groups * sizeof(float));
}

void store_row(const Tensor& rows, size_t row, Tensor& state, size_t slot) {
  if (state.type != DataType::kI8 && state.type != DataType::kI4Rows) {
    std::memcpy(state.data + slot * state.stride(), rows.data + row * rows.stride(),
                state.stride());
  } else if (state.type == DataType::kI4Rows) {
    pack_row(rows, row, state, slot);
  } else if (rows.type == DataType::kF32) {
    quantize_row(rows.f32(row), state.width, state.scale_groups, state.i8(slot),
                 state.row_scales(slot));
  } else {
    std::memcpy(state.i8(slot), rows.i8(row), state.stride());
    std::memcpy(state.row_scales(slot), rows.row_scales(row), state.scale_groups * sizeof(float));
  }
}

Status run_ring_push(RunContext& context, const void* raw_params) {
  const auto& params = *static_cast<const RingPushParams*>(raw_params);
  const RingPushPlan plan = plan_ring_push(context, params);
  const size_t capacity = params.states[0].rows, pinned = params.states[0].pinned;
  parallel_for(context.pool, plan.rows, [&](size_t item, size_t) {
    const size_t row = plan.row(item);
    const size_t slot = ring_slot(plan.before, capacity, pinned, plan.before.count + row);
    for (size_t i = 0; i < params.count; ++i) {
      Tensor state = params.states[i];
      store_row(params.rows[i], row, state, slot);
    }
  });
  return Status::kOk;
}

Status check_pair(BindContext& context, const Tensor& rows, const Tensor& state,
                  const Tensor& first) {
  if (state.ring != first.ring || state.pinned != first.pinned) {
    return context.fail("tensors '%s' and '%s' must be in the same ring", first.name, state.name);
  }
  if (rows.hadamard != state.hadamard) {
    return context.fail(
        "tensors '%s' and '%s' are turned in blocks of %u and %u, expected the same", rows.name,
        state.name, rows.hadamard, state.hadamard);
  }
  const bool same_layout = rows.type == state.type && rows.scale_groups == state.scale_groups;
  const bool quantised = rows.type == DataType::kF32 && state.type == DataType::kI8;
  const bool packed = rows.type == DataType::kI8 && state.type == DataType::kI4Rows &&
                      rows.scale_groups == state.scale_groups;
  if (!same_layout && !quantised && !packed) {
    return context.fail("tensor '%s' is %s, expected F32 or what '%s' is, %s", rows.name,
                        describe(rows).text, state.name, describe(state).text);
  }
  // What later steps are promised of the state.
  if (state.limit != 0 && (rows.limit == 0 || rows.limit > state.limit)) {
    return context.fail("tensor '%s' has the limit %u, that of '%s' is %u", rows.name, rows.limit,
                        state.name, state.limit);
  }
  return check_room(context, rows);
}

}  // namespace

constexpr OpSignature kRingPushSignature = {
    .options = schema::OpOptions::RingPushOptions,
    .inputs = {{.name = "rows",
                .types = kF32 | kI8 | kI32,
                .rows = Rows::of(0),
                .turns = true,
                .most = kMaxRingStates}},
    .outputs = {{.name = "state",
                 .role = Role::kState,
                 .types = kF32 | kI8 | kI32 | kI4Rows,
                 .width = Width::of(0),
                 .rows = Rows::pinned_ring(),
                 .turns = true,
                 .most = kMaxRingStates}},
};

RingPushPlan plan_ring_push(RunContext& context, const RingPushParams& params) {
  RingPosition& ring = context.rings[params.states[0].ring];
  const size_t capacity = params.states[0].rows;
  const size_t pinned = params.states[0].pinned;
  const size_t given = context.rows(params.rows[0]);
  if (params.only_full != 0 && given != params.only_full) return {};
  const size_t added = params.first == 0 ? given : std::min<size_t>(given, params.first);
  if (params.replace || params.clear) ring = {0, 0};
  if (params.clear) return {};
  const RingStep step = ring_step(ring.count, added, capacity, params.group);
  RingPushPlan plan;
  plan.before = ring;
  // New rows that become pinned, then those that leave at once, up to `first`.
  plan.pins = ring.count < pinned ? std::min(pinned - ring.count, added) : 0;
  const size_t gone = step.leaving == 0 ? 0 : pinned + static_cast<size_t>(step.leaving);
  plan.first = std::max(plan.pins, gone > ring.count ? gone - ring.count : 0);
  plan.rows = plan.pins + added - plan.first;
  ring.head = static_cast<uint32_t>((ring.head + step.leaving) % (capacity - pinned));
  ring.count = static_cast<uint32_t>(step.staying);
  return plan;
}

bool ring_move_of(const schema::Step& step, RingMove* move) {
  const auto* options = step.options_as_RingPushOptions();
  if (options == nullptr) return false;
  *move = {options->group(), options->only_full(), options->first(), options->replace(),
           options->clear()};
  return true;
}

Status bind_ring_push(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kRingPushSignature));
  const auto* options = context.step().options_as_RingPushOptions();
  const size_t count = context.output_count();
  // Two outputs that are one tensor are known by their index in the file: pointers are null while
  // the arena is only being counted.
  const auto* outputs = context.step().outputs();
  if (outputs == nullptr || outputs->size() != count) return context.fail("has no list of outputs");
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t j = 0; j < i; ++j) {
      if (outputs->Get(i) == outputs->Get(j)) {
        return context.fail("tensor '%s' is written twice", context.output(i).name);
      }
    }
  }
  RingPushParams& params = context.params<RingPushParams>();
  params.count = count;
  params.group = options->group();
  params.only_full = options->only_full();
  params.first = options->first();
  params.replace = options->replace();
  params.clear = options->clear();
  for (size_t i = 0; i < count; ++i) {
    params.rows[i] = context.input(i);
    params.states[i] = context.output(i);
    OXB_TRY(check_pair(context, params.rows[i], params.states[i], params.states[0]));
  }
  if (!ring_takes_group(params.states[0].rows, params.group)) {
    return context.fail("the ring of '%s' holds %u rows, too few for groups of %u",
                        params.states[0].name, params.states[0].rows, params.group);
  }
  if (params.group != 1 && params.states[0].pinned != 0) {
    return context.fail("the ring of '%s' has pinned rows, which groups of %u cannot pass",
                        params.states[0].name, params.group);
  }
  if ((params.replace || params.clear) && params.states[0].pinned != 0) {
    return context.fail("the ring of '%s' has pinned rows, which cannot be replaced",
                        params.states[0].name);
  }
  *run = run_ring_push;
  return Status::kOk;
}

}  // namespace oxbow

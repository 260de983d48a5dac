// All ops, at the places of their opcodes. The build makes ops.inc of the folders that have a traits.cc: a line
// OXB_OP(layer_norm, LayerNorm) for each, or OXB_LEFT_OUT_OP with the group that OXBOW_OPS leaves out; and device_ops.inc,
// with a line for each device of this build whose name a file of the folder has.

#include <array>

#include "device_headers.inc"
#include "ops/common/left_out.h"
#include "runtime/op.h"
#include "schema/model_generated.h"

namespace oxbow {

#define OXB_OP(op, code) Status bind_##op(BindContext& context, RunFunction* run);
#define OXB_LEFT_OUT_OP(op, code, group)
#include "ops.inc"
#undef OXB_LEFT_OUT_OP
#undef OXB_OP
#define OXB_DEVICE_OP(op, code, device, kind, Context) \
  Status bind_##op##_##device(Context& context);
#include "device_ops.inc"
#undef OXB_DEVICE_OP

namespace {

constexpr size_t kCount = static_cast<size_t>(schema::OpCode::MAX) + 1;

constexpr std::array<OpDef, kCount> make_table() {
  std::array<OpDef, kCount> table{};
#define OXB_OP(op, code) table[static_cast<size_t>(schema::OpCode::code)] = {#code, bind_##op, {}};
#define OXB_LEFT_OUT_OP(op, code, group)                                                   \
  table[static_cast<size_t>(schema::OpCode::code)] = {                                     \
      #code,                                                                               \
      [](BindContext& context, RunFunction*) { return refuse_left_out(context, #group); }, \
      {}};
#include "ops.inc"
#undef OXB_LEFT_OUT_OP
#undef OXB_OP
#define OXB_DEVICE_OP(op, code, device, kind, Context)                                       \
  table[static_cast<size_t>(schema::OpCode::code)]                                           \
      .bind_device[static_cast<size_t>(DeviceKind::kind)] = [](DeviceBindContext& context) { \
    return bind_##op##_##device(static_cast<Context&>(context));                             \
  };
#include "device_ops.inc"
#undef OXB_DEVICE_OP
  return table;
}

constexpr std::array<OpDef, kCount> kTable = make_table();

// By the list, since a function's address is no constant for a sanitizer.
constexpr bool is_complete() {
  std::array<bool, kCount> there{};
#define OXB_OP(op, code) there[static_cast<size_t>(schema::OpCode::code)] = true;
#define OXB_LEFT_OUT_OP(op, code, group) OXB_OP(op, code)
#include "ops.inc"
#undef OXB_LEFT_OUT_OP
#undef OXB_OP
  for (const bool found : there) {
    if (!found) return false;
  }
  return true;
}

static_assert(is_complete(), "an opcode has no op");

}  // namespace

std::span<const OpDef> builtin_ops() { return kTable; }

}  // namespace oxbow

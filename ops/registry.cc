// All ops, at the places of their opcodes. The build makes ops.inc of the folders that have a traits.cc: a line
// OXB_OP(layer_norm, LayerNorm) for each, OXB_VULKAN_OP where there is a vulkan.cc, or OXB_LEFT_OUT_OP with the group that
// OXBOW_OPS leaves out. npu_ops.inc has those with an npu.cc.

#include <array>

#include "ops/common/left_out.h"
#include "runtime/device/npu/npu_op.h"
#include "runtime/device/vulkan/vulkan_op.h"
#include "runtime/op.h"
#include "schema/model_generated.h"

namespace oxbow {

#define OXB_OP(op, code) Status bind_##op(BindContext& context, RunFunction* run);
#define OXB_VULKAN_OP(op, code) \
  OXB_OP(op, code)              \
  Status bind_##op##_vulkan(VulkanBindContext& context);
#define OXB_LEFT_OUT_OP(op, code, group)
#include "ops.inc"
#undef OXB_LEFT_OUT_OP
#undef OXB_VULKAN_OP
#undef OXB_OP
#define OXB_NPU_OP(op, code) Status bind_##op##_npu(NpuBindContext& context);
#include "npu_ops.inc"
#undef OXB_NPU_OP

namespace {

constexpr size_t kCount = static_cast<size_t>(schema::OpCode::MAX) + 1;

using DeviceBinds = std::array<DeviceBind, kDeviceKinds>;

// The half of an op that runs on a Vulkan device; its function exists only in a build with it.
#if OXB_BUILD_VULKAN
template <Status (*bind)(VulkanBindContext&)>
constexpr DeviceBinds on_vulkan() {
  DeviceBinds binds = {};
  binds[static_cast<size_t>(DeviceKind::kVulkan)] = [](DeviceBindContext& context) {
    return bind(static_cast<VulkanBindContext&>(context));
  };
  return binds;
}
#define OXB_VULKAN(function) on_vulkan<function>()
#else
#define OXB_VULKAN(function) DeviceBinds()
#endif

constexpr std::array<OpDef, kCount> make_table() {
  std::array<OpDef, kCount> table{};
#define OXB_OP(op, code) table[static_cast<size_t>(schema::OpCode::code)] = {#code, bind_##op, {}};
#define OXB_VULKAN_OP(op, code)                                         \
  table[static_cast<size_t>(schema::OpCode::code)] = {#code, bind_##op, \
                                                      OXB_VULKAN(bind_##op##_vulkan)};
#define OXB_LEFT_OUT_OP(op, code, group)                                                   \
  table[static_cast<size_t>(schema::OpCode::code)] = {                                     \
      #code,                                                                               \
      [](BindContext& context, RunFunction*) { return refuse_left_out(context, #group); }, \
      {}};
#include "ops.inc"
#undef OXB_LEFT_OUT_OP
#undef OXB_VULKAN_OP
#undef OXB_OP
#if OXB_BUILD_NPU
#define OXB_NPU_OP(op, code)                                                                 \
  table[static_cast<size_t>(schema::OpCode::code)]                                           \
      .bind_device[static_cast<size_t>(DeviceKind::kNpu)] = [](DeviceBindContext& context) { \
    return bind_##op##_npu(static_cast<NpuBindContext&>(context));                           \
  };
#include "npu_ops.inc"
#undef OXB_NPU_OP
#endif
  return table;
}

constexpr std::array<OpDef, kCount> kTable = make_table();

// By the list, since a function's address is no constant for a sanitizer.
constexpr bool is_complete() {
  std::array<bool, kCount> there{};
#define OXB_OP(op, code) there[static_cast<size_t>(schema::OpCode::code)] = true;
#define OXB_VULKAN_OP(op, code) OXB_OP(op, code)
#define OXB_LEFT_OUT_OP(op, code, group) OXB_OP(op, code)
#include "ops.inc"
#undef OXB_LEFT_OUT_OP
#undef OXB_VULKAN_OP
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

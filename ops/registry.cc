// The one list of ops. A new op is a line here, at the place of its opcode.

#include <array>

#include "ops/activate/activate.h"
#include "ops/adaptive_softmax/adaptive_softmax.h"
#include "ops/add/add.h"
#include "ops/attention/attention.h"
#include "ops/concat_columns/concat_columns.h"
#include "ops/convolution/convolution.h"
#include "ops/embedding/embedding.h"
#include "ops/feature_map/feature_map.h"
#include "ops/gru_gate/gru_gate.h"
#include "ops/layer_norm/layer_norm.h"
#include "ops/lerp/lerp.h"
#include "ops/linear/linear.h"
#include "ops/mask_rows/mask_rows.h"
#include "ops/merge_rows/merge_rows.h"
#include "ops/multiply/multiply.h"
#include "ops/pool/pool.h"
#include "ops/positions/positions.h"
#include "ops/quantize/quantize.h"
#include "ops/recurrence/recurrence.h"
#include "ops/retention/retention.h"
#include "ops/ring_evict/ring_evict.h"
#include "ops/ring_push/ring_push.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/rope/rope.h"
#include "ops/rope_angles/rope_angles.h"
#include "ops/scan/scan.h"
#include "ops/select_rows/select_rows.h"
#include "ops/slice_columns/slice_columns.h"
#include "ops/take_rows/take_rows.h"
#include "ops/token_mask/token_mask.h"
#include "runtime/device/vulkan/vulkan_op.h"
#include "runtime/op.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

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

struct Entry {
  schema::OpCode code;
  OpDef def;
};

constexpr Entry kEntries[] = {
    {schema::OpCode::Embedding, {"Embedding", bind_embedding, OXB_VULKAN(bind_embedding_vulkan)}},
    {schema::OpCode::LayerNorm, {"LayerNorm", bind_layer_norm, OXB_VULKAN(bind_layer_norm_vulkan)}},
    {schema::OpCode::Linear, {"Linear", bind_linear, OXB_VULKAN(bind_linear_vulkan)}},
    {schema::OpCode::Activate, {"Activate", bind_activate, OXB_VULKAN(bind_activate_vulkan)}},
    {schema::OpCode::Add, {"Add", bind_add, OXB_VULKAN(bind_add_vulkan)}},
    {schema::OpCode::Quantize, {"Quantize", bind_quantize, OXB_VULKAN(bind_quantize_vulkan)}},
    {schema::OpCode::Attention, {"Attention", bind_attention, OXB_VULKAN(bind_attention_vulkan)}},
    {schema::OpCode::RingEvict, {"RingEvict", bind_ring_evict, OXB_VULKAN(bind_ring_evict_vulkan)}},
    {schema::OpCode::RingPush, {"RingPush", bind_ring_push, OXB_VULKAN(bind_ring_push_vulkan)}},
    {schema::OpCode::Pool, {"Pool", bind_pool, OXB_VULKAN(bind_pool_vulkan)}},
    {schema::OpCode::TakeRows, {"TakeRows", bind_take_rows, OXB_VULKAN(bind_take_rows_vulkan)}},
    {schema::OpCode::RmsNorm, {"RmsNorm", bind_rms_norm, OXB_VULKAN(bind_rms_norm_vulkan)}},
    {schema::OpCode::Multiply, {"Multiply", bind_multiply, OXB_VULKAN(bind_multiply_vulkan)}},
    {schema::OpCode::RopeAngles,
     {"RopeAngles", bind_rope_angles, OXB_VULKAN(bind_rope_angles_vulkan)}},
    {schema::OpCode::Rope, {"Rope", bind_rope, OXB_VULKAN(bind_rope_vulkan)}},
    {schema::OpCode::Positions, {"Positions", bind_positions, OXB_VULKAN(bind_positions_vulkan)}},
    {schema::OpCode::TokenMask, {"TokenMask", bind_token_mask, OXB_VULKAN(bind_token_mask_vulkan)}},
    {schema::OpCode::MaskRows, {"MaskRows", bind_mask_rows, OXB_VULKAN(bind_mask_rows_vulkan)}},
    {schema::OpCode::SelectRows,
     {"SelectRows", bind_select_rows, OXB_VULKAN(bind_select_rows_vulkan)}},
    {schema::OpCode::MergeRows, {"MergeRows", bind_merge_rows}},
    {schema::OpCode::SliceColumns,
     {"SliceColumns", bind_slice_columns, OXB_VULKAN(bind_slice_columns_vulkan)}},
    {schema::OpCode::ConcatColumns,
     {"ConcatColumns", bind_concat_columns, OXB_VULKAN(bind_concat_columns_vulkan)}},
    {schema::OpCode::Convolution,
     {"Convolution", bind_convolution, OXB_VULKAN(bind_convolution_vulkan)}},
    {schema::OpCode::GruGate, {"GruGate", bind_gru_gate}},
    {schema::OpCode::AdaptiveSoftmax, {"AdaptiveSoftmax", bind_adaptive_softmax}},
    {schema::OpCode::Lerp, {"Lerp", bind_lerp, OXB_VULKAN(bind_lerp_vulkan)}},
    {schema::OpCode::Scan, {"Scan", bind_scan, OXB_VULKAN(bind_scan_vulkan)}},
    {schema::OpCode::Recurrence,
     {"Recurrence", bind_recurrence, OXB_VULKAN(bind_recurrence_vulkan)}},
    {schema::OpCode::FeatureMap,
     {"FeatureMap", bind_feature_map, OXB_VULKAN(bind_feature_map_vulkan)}},
    {schema::OpCode::Retention, {"Retention", bind_retention}},
};

constexpr size_t kCount = std::size(kEntries);

constexpr bool in_order() {
  for (size_t i = 0; i < kCount; ++i) {
    if (static_cast<size_t>(kEntries[i].code) != i) return false;
  }
  return true;
}

static_assert(kCount == static_cast<size_t>(schema::OpCode::MAX) + 1, "an opcode has no op");
static_assert(in_order(), "the session indexes this table by opcode");

constexpr std::array<OpDef, kCount> make_table() {
  std::array<OpDef, kCount> table{};
  for (size_t i = 0; i < kCount; ++i) table[i] = kEntries[i].def;
  return table;
}

constexpr std::array<OpDef, kCount> kTable = make_table();

}  // namespace

std::span<const OpDef> builtin_ops() { return kTable; }

}  // namespace oxbow

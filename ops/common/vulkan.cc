// What shaders compute from known numbers: runtime/device/vulkan/wrapper/proof.h.

#include "runtime/device/vulkan/wrapper/proof.h"

namespace oxbow {
namespace {

// Lists may be empty, arrays may not: each has a zero behind its last number, which its span leaves out.
#define OXB_LIST(...) __VA_ARGS__
#define OXB_PROOF(name, constants, groups, values, tensors, operands) \
  constexpr uint32_t k_##name##_constants[] = {constants 0};          \
  constexpr uint32_t k_##name##_groups[] = {groups 0};                \
  constexpr uint32_t k_##name##_values[] = {values 0};                \
  constexpr ProofTensor k_##name##_tensors[] = {tensors};             \
  constexpr uint32_t k_##name##_operands[] = {operands 0};
#include "ops/common/vulkan/proofs.inc"
#undef OXB_PROOF

template <size_t kCount>
constexpr std::span<const uint32_t> all_but_last(const uint32_t (&numbers)[kCount]) {
  return {numbers, kCount - 1};
}

constexpr VulkanProof kProofs[] = {
#define OXB_PROOF(name, constants, groups, values, tensors, operands) \
  {#name,                                                             \
   all_but_last(k_##name##_constants),                                \
   all_but_last(k_##name##_groups),                                   \
   all_but_last(k_##name##_values),                                   \
   k_##name##_tensors,                                                \
   all_but_last(k_##name##_operands)},
#include "ops/common/vulkan/proofs.inc"
#undef OXB_PROOF
};

}  // namespace

std::span<const VulkanProof> vulkan_proofs() { return kProofs; }

}  // namespace oxbow

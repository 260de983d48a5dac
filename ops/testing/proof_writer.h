#pragma once

// Writes ops/common/vulkan/proofs.inc: with OXB_WRITE_PROOFS=FILE the op tests offer every dispatch they make, one of
// each shader is kept, run over the known numbers, and written down with its sums.

#include <cstdint>
#include <vector>

#include "runtime/device/vulkan/wrapper/proof.h"

namespace oxbow::testing {

struct OfferedProof {
  const VulkanShader* shader = nullptr;
  bool allows_error = false;
  bool reads_scratch = false;
  std::vector<uint32_t> constants, groups, values, operands;
  std::vector<ProofTensor> tensors;
};

bool writes_proofs();
void offer_proof(vulkan::Context& context, const OfferedProof& offered);

}  // namespace oxbow::testing

#pragma once

// Whether a shader computes on this device what it computes elsewhere: drivers exist whose packed dot products are wrong.
// Each form of a shader that a session wants is run once over known numbers, and sums over what it wrote are compared with
// those of other devices (ops/common/vulkan/proofs.inc). A form that fails is replaced by the plain one, and that by
// the CPU. Verdicts live as long as the device is open, and are stored with its compiled pipelines.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "runtime/base/status.h"
#include "runtime/device/vulkan/wrapper/array.h"
#include "runtime/device/vulkan/wrapper/step.h"

namespace oxbow {

struct ProofTensor {
  enum Fill : uint8_t {
    kFloats,
    /// `code_words` words of four int8 codes, then scales.
    kCodes,
    /// 0 and 1: rows, tokens, masks.
    kIndices,
  };
  uint32_t words = 0;
  Fill fill = kFloats;
  uint32_t code_words = 0;
  /// Of what is there after the run, each number with a weight of its own; and of magnitudes.
  double sum = 0.0;
  double magnitude = 0.0;
};

struct VulkanProof {
  const char* shader = "";
  std::span<const uint32_t> constants;
  std::span<const uint32_t> groups;
  std::span<const uint32_t> values;
  std::span<const ProofTensor> tensors;
  /// The tensor of each operand.
  std::span<const uint32_t> operands;
};

/// All there are: of the ops.
std::span<const VulkanProof> vulkan_proofs();

enum class ShaderForm : uint8_t {
  /// Neither form is right: its steps are the CPU's.
  kNone,
  kPlain,
  kIntDot,
};

namespace vulkan {

struct Context;

/// Fills, runs, and tells the sums of each tensor into `found`, which has as many.
Status run_proof(Context& context, const VulkanShader& shader, ShaderForm form,
                 const VulkanProof& proof, std::span<ProofTensor> found, Error* error);

class Proofs {
 public:
  /// The best form of a shader that is right on this device; proved now if it was not before.
  Status choose(Context& context, const VulkanShader& shader, ShaderForm* form, Error* error);

  /// Verdicts as bytes. Those that are not of this build's shaders are passed over when they are read.
  struct Stored {
    uint64_t code_hash;
    uint64_t form;
  };
  size_t count();
  /// The first of them, as many as there is room for.
  void copy(std::span<Stored> verdicts);
  bool read(std::span<const Stored> verdicts);

 private:
  Status prove(Context& context, const VulkanShader& shader, ShaderForm form, bool* good,
               Error* error);

  std::mutex mutex_;
  Array<Stored> stored_;
};

}  // namespace vulkan
}  // namespace oxbow

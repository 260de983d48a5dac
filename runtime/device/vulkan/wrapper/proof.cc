#include "runtime/device/vulkan/wrapper/proof.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/base/checked.h"
#include "runtime/base/hash.h"
#include "runtime/device/vulkan/wrapper/hooks.h"
#include "runtime/device/vulkan/wrapper/program.h"

namespace oxbow::vulkan {
namespace {

/// How far a sum may be from the known one, as a part of the sum of magnitudes. Roundings are far below, one wrong product of
/// a thousand is above.
constexpr double kAllowed = 1e-4;
constexpr size_t kMostTensors = 16;

uint32_t mixed(uint32_t seed) {
  uint32_t x = seed * 0x9e3779b9u + 0x7f4a7c15u;
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}

/// Of 1/1024, in [-1, 1): short enough that many products and sums are exact.
float known_float(uint32_t bits) {
  return static_cast<float>(static_cast<int32_t>(bits % 2048) - 1024) / 1024.0f;
}

/// Codes from -127 to 127.
uint32_t known_codes(uint32_t bits) {
  uint32_t word = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const auto code = static_cast<int32_t>((bits >> (8 * i) & 255u) % 255) - 127;
    word |= (static_cast<uint32_t>(code) & 255u) << (8 * i);
  }
  return word;
}

uint32_t known_word(const ProofTensor& tensor, uint32_t index, uint32_t seed) {
  const uint32_t bits = mixed(index + 65536 * seed);
  if (tensor.fill == ProofTensor::kIndices) return bits & 1;
  if (tensor.fill == ProofTensor::kFloats) return std::bit_cast<uint32_t>(known_float(bits));
  if (index < tensor.code_words) return known_codes(bits);
  return std::bit_cast<uint32_t>(static_cast<float>(1 + bits % 63) / 4096.0f);
}

/// Sums over what is in `words`.
void add_up(const uint32_t* words, ProofTensor* tensor) {
  tensor->sum = tensor->magnitude = 0.0;
  const auto add = [&](double value, uint32_t index) {
    const double weight = 0.5 + static_cast<double>(mixed(index) % 1024) / 1024.0;
    tensor->sum += value * weight;
    tensor->magnitude += std::fabs(value) * weight;
  };
  for (uint32_t i = 0; i < tensor->words; ++i) {
    if (tensor->fill == ProofTensor::kIndices) {
      add(words[i], i);
    } else if (tensor->fill == ProofTensor::kCodes && i < tensor->code_words) {
      for (uint32_t j = 0; j < 4; ++j) {
        add(static_cast<int8_t>(words[i] >> (8 * j) & 255u), 4 * i + j);
      }
    } else {
      add(static_cast<double>(std::bit_cast<float>(words[i])), i);
    }
  }
}

bool is_spoiled(const VulkanShader& shader, ShaderForm form) {
  const Hooks& spoiler = hooks();
  return spoiler.spoiled_shader != nullptr &&
         std::strcmp(spoiler.spoiled_shader, shader.name) == 0 &&
         (form == ShaderForm::kIntDot || spoiler.spoil_plain);
}

uint64_t code_hash(const VulkanShader& shader) {
  const auto bytes = std::as_bytes(shader.code), packed = std::as_bytes(shader.int_dot_code);
  return hash_bytes(packed.data(), packed.size(), hash_bytes(bytes.data(), bytes.size()));
}

}  // namespace

Status run_proof(Context& context, const VulkanShader& shader, ShaderForm form,
                 const VulkanProof& proof, std::span<ProofTensor> found, Error* error) {
  size_t offsets[kMostTensors];
  MemorySizes sizes;
  for (size_t t = 0; t < proof.tensors.size(); ++t) {
    offsets[t] = sizes.activations;
    sizes.activations += round_up(size_t{proof.tensors[t].words} * 4, kMaxBindingAlignment);
  }
  sizes.values = sizeof(DispatchValues);
  Step step;
  step.dispatch_count = 1;
  Dispatch dispatch;
  dispatch.shader = &shader;
  dispatch.int_dot = form == ShaderForm::kIntDot;
  dispatch.operand_count = static_cast<uint32_t>(proof.operands.size());
  dispatch.constant_count = static_cast<uint32_t>(proof.constants.size());
  std::copy(proof.constants.begin(), proof.constants.end(), dispatch.constants);
  for (size_t i = 0; i < proof.operands.size(); ++i) {
    const uint32_t tensor = proof.operands[i];
    dispatch.operands[i] = {Region::kActivations, offsets[tensor],
                            uint64_t{proof.tensors[tensor].words} * 4};
  }
  const uint32_t ends[] = {1};
  const Range inputs[] = {{Region::kActivations, 0, sizes.activations}};
  ProgramSpec spec;
  spec.steps = {&step, 1};
  spec.dispatches = {&dispatch, 1};
  spec.entry_ends = ends;
  spec.entry_inputs = inputs;
  spec.entry_input_ends = ends;

  Program program;
  Status status = program.open(context, sizes, error);
  if (status == Status::kOk) status = program.record(spec, error);
  if (status == Status::kOk) {
    auto* words = reinterpret_cast<uint32_t*>(program.memory().host_activations());
    for (size_t t = 0; t < proof.tensors.size(); ++t) {
      for (uint32_t i = 0; i < proof.tensors[t].words; ++i) {
        words[offsets[t] / 4 + i] = known_word(proof.tensors[t], i, static_cast<uint32_t>(t));
      }
    }
    DispatchValues& values = *program.memory().dispatch_values(0);
    std::copy(proof.groups.begin(), proof.groups.end(), values.groups);
    std::copy(proof.values.begin(), proof.values.end(), values.values);
    status = program.run(program.segments(0)[0], false, error);
  }
  if (status == Status::kOk) status = program.download(error);
  if (status == Status::kOk) {
    auto* words = reinterpret_cast<uint32_t*>(program.memory().host_activations());
    if (is_spoiled(shader, form)) {
      for (size_t t = 0; t < proof.tensors.size(); ++t) words[offsets[t] / 4] ^= 0x40000040u;
    }
    for (size_t t = 0; t < proof.tensors.size(); ++t) {
      found[t] = proof.tensors[t];
      add_up(words + offsets[t] / 4, &found[t]);
    }
  }
  program.close();
  return status;
}

Status Proofs::prove(Context& context, const VulkanShader& shader, ShaderForm form, bool* good,
                     Error* error) {
  *good = true;
  const std::span<const VulkanProof> all = vulkan_proofs();
  const auto proof = std::find_if(all.begin(), all.end(), [&](const VulkanProof& one) {
    return std::strcmp(one.shader, shader.name) == 0;
  });
  // What only moves rows by lists that other shaders make, or may differ from device to device, has none.
  if (proof == all.end()) return Status::kOk;
  // A device that binds less than the proof has no step for it either.
  if (proof->operands.size() + 1 > context.device.features.max_bindings) return Status::kOk;
  ++counters().proofs;
  ProofTensor found[kMostTensors];
  OXB_TRY(run_proof(context, shader, form, *proof, found, error));
  for (size_t t = 0; t < proof->tensors.size(); ++t) {
    const ProofTensor& known = proof->tensors[t];
    // NaN is not less.
    *good = *good && std::fabs(found[t].sum - known.sum) <= kAllowed * known.magnitude &&
            std::fabs(found[t].magnitude - known.magnitude) <= kAllowed * known.magnitude;
  }
  return Status::kOk;
}

Status Proofs::choose(Context& context, const VulkanShader& shader, ShaderForm* form,
                      Error* error) {
  const std::lock_guard lock(mutex_);
  const uint64_t hash = code_hash(shader);
  const bool has_int_dot = context.device.features.int_dot && !shader.int_dot_code.empty();
  for (const Stored& verdict : stored_) {
    if (verdict.code_hash != hash) continue;
    *form = static_cast<ShaderForm>(verdict.form);
    // A verdict of another process may know more than this device shows here.
    if (*form != ShaderForm::kIntDot || has_int_dot) return Status::kOk;
  }
  bool good = false;
  *form = ShaderForm::kNone;
  if (has_int_dot) {
    OXB_TRY(prove(context, shader, ShaderForm::kIntDot, &good, error));
    if (good) *form = ShaderForm::kIntDot;
  }
  if (!good) {
    OXB_TRY(prove(context, shader, ShaderForm::kPlain, &good, error));
    if (good) *form = ShaderForm::kPlain;
  }
  if (!stored_.push({hash, static_cast<uint64_t>(*form)})) {
    return fail(error, Status::kOutOfMemory, "no memory for the list of proofs");
  }
  return Status::kOk;
}

size_t Proofs::count() {
  const std::lock_guard lock(mutex_);
  return stored_.size();
}

void Proofs::copy(std::span<Stored> verdicts) {
  const std::lock_guard lock(mutex_);
  std::copy_n(stored_.begin(), std::min(verdicts.size(), stored_.size()), verdicts.begin());
}

bool Proofs::read(std::span<const Stored> verdicts) {
  const std::lock_guard lock(mutex_);
  for (const Stored& verdict : verdicts) {
    if (verdict.form > static_cast<uint64_t>(ShaderForm::kIntDot)) continue;
    const bool known = std::any_of(stored_.begin(), stored_.end(), [&](const Stored& one) {
      return one.code_hash == verdict.code_hash;
    });
    if (!known && !stored_.push(verdict)) return false;
  }
  return true;
}

}  // namespace oxbow::vulkan

#include "ops/testing/proof_writer.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#if OXB_BUILD_VULKAN
namespace oxbow::testing {
namespace {

const char* proofs_file() { return std::getenv("OXB_WRITE_PROOFS"); }

struct Written {
  size_t words = 0;
  std::string text;
};

std::map<std::string, Written>& written() {
  static std::map<std::string, Written> all;
  return all;
}

std::string list_of(const std::vector<uint32_t>& numbers) {
  std::string text = "OXB_LIST(";
  for (const uint32_t number : numbers) text += std::to_string(number) + "u, ";
  return text + ")";
}

std::string text_of(const OfferedProof& offered, const std::vector<ProofTensor>& found) {
  static constexpr const char* kFills[] = {"kFloats", "kCodes", "kIndices"};
  std::string tensors = "OXB_LIST(";
  for (size_t t = 0; t < found.size(); ++t) {
    char line[160];
    std::snprintf(line, sizeof(line), "%s{%u, ProofTensor::%s, %u, %.9g, %.9g}", t == 0 ? "" : ", ",
                  found[t].words, kFills[found[t].fill], found[t].code_words, found[t].sum,
                  found[t].magnitude);
    tensors += line;
  }
  std::vector<uint32_t> values = offered.values;
  while (values.size() > 1 && values.back() == 0) values.pop_back();
  return std::string("OXB_PROOF(") + offered.shader->name + ", " + list_of(offered.constants) +
         ", " + list_of(offered.groups) + ",\n          " + list_of(values) + ",\n          " +
         tensors + "),\n          " + list_of(offered.operands) + ")\n";
}

void write_proofs() {
  std::FILE* file = std::fopen(proofs_file(), "w");
  if (file == nullptr) return;
  std::fputs(
      "// Written by the op tests with OXB_WRITE_PROOFS=FILE; see ops/testing/proof_writer.h.\n"
      "// OXB_PROOF(shader, constants, groups, values, tensors, tensor of each operand)\n\n",
      file);
  for (const auto& [name, best] : written()) {
    if (best.text.empty()) {
      std::fprintf(file, "// %s: none.\n", name.c_str());
    } else {
      std::fputs(best.text.c_str(), file);
    }
  }
  std::fclose(file);
}

}  // namespace

bool writes_proofs() { return proofs_file() != nullptr; }

void offer_proof(vulkan::Context& context, const OfferedProof& offered) {
  // Large enough to go through the loops, small enough to cost nothing.
  constexpr size_t kEnoughWords = 600, kMostWords = 16000;
  size_t words = 0;
  bool has_indices = false;
  for (const ProofTensor& tensor : offered.tensors) {
    words += tensor.words;
    has_indices |= tensor.fill == ProofTensor::kIndices;
  }
  Written& best = written()[offered.shader->name];
  // Lists of rows in scratch are not known numbers: they and what may differ have no proof.
  if (offered.allows_error || (offered.reads_scratch && has_indices)) return;
  if (best.words >= kEnoughWords || words <= best.words || words > kMostWords ||
      offered.groups[0] == 0)
    return;
  const VulkanProof proof = {offered.shader->name, offered.constants, offered.groups,
                             offered.values,       offered.tensors,   offered.operands};
  std::vector<ProofTensor> found(offered.tensors.size());
  if (run_proof(context, *offered.shader, ShaderForm::kPlain, proof, found, nullptr) !=
      Status::kOk) {
    return;
  }
  for (const ProofTensor& tensor : found) {
    if (!std::isfinite(tensor.sum)) return;
  }
  best = {words, text_of(offered, found)};
  write_proofs();
}

}  // namespace oxbow::testing
#endif

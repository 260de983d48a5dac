// Which kernels a core gets. Lists are taken as bind takes them: the first line that the machine may
// use. OXB_TEST_CORE names the core that an emulator stands for (cmake/tests.cmake), so that a probe
// that fails, a line in the wrong place and a file that was not compiled all show.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

#include "runtime/base/cpu.h"

namespace oxbow {
namespace {

/// The first kernel of each list, and of each combination of types in it.
class Picked {
 public:
  explicit Picked(bool reference_only) : reference_only_(reference_only) {
#define OXB_KERNEL(isa, name) add(op, "", isa, #name);
    const char* op = "activate";
#include "ops/activate/kernels.inc"
    op = "adaptive_softmax";
#include "ops/adaptive_softmax/kernels.inc"
    op = "add";
#include "ops/add/kernels.inc"
    op = "convolution";
#include "ops/convolution/kernels.inc"
    op = "gru_gate";
#include "ops/gru_gate/kernels.inc"
    op = "layer_norm";
#include "ops/layer_norm/kernels.inc"
    op = "multiply";
#include "ops/multiply/kernels.inc"
    op = "quantize";
#include "ops/quantize/kernels.inc"
    op = "rms_norm";
#include "ops/rms_norm/kernels.inc"
    op = "rope";
#include "ops/rope/kernels.inc"
#undef OXB_KERNEL
#define OXB_KERNEL(type, isa, name) add(op, " " #type, isa, #name);
    op = "attention";
#include "ops/attention/kernels.inc"
    op = "embedding";
#include "ops/embedding/kernels.inc"
#undef OXB_KERNEL
#define OXB_KERNEL(x, w, isa, name) add(op, " " #x " " #w, isa, #name);
    op = "linear";
#include "ops/linear/kernels.inc"
#undef OXB_KERNEL
  }

  std::string operator[](const std::string& list) const {
    const auto found = kernels_.find(list);
    return found == kernels_.end() ? "none" : found->second;
  }
  const std::map<std::string, std::string>& all() const { return kernels_; }

 private:
  void add(const char* op, const char* types, Isa isa, const char* name) {
    if (may_use(isa, reference_only_)) kernels_.emplace(std::string(op) + types, name);
  }

  bool reference_only_;
  std::map<std::string, std::string> kernels_;
};

TEST(Dispatch, TheReferenceBackendGetsReferencesOnly) {
  const Picked picked(true);
  EXPECT_EQ(picked.all().size(), Picked(false).all().size()) << "a list has no reference";
  for (const auto& [list, kernel] : picked.all()) {
    EXPECT_TRUE(kernel.ends_with("_ref")) << list << ": " << kernel;
  }
}

struct Core {
  std::string_view name;
  bool neon, dotprod, i8mm;
};

constexpr Core kCores[] = {
    {"cortex-a9,neon=off", false, false, false}, {"cortex-a7", true, false, false},
    {"cortex-a53", true, false, false},          {"cortex-a76", true, true, false},
    {"max,sve=off", true, true, true},           {"max", true, true, true}};

TEST(Dispatch, ACoreGetsTheKernelsItsInstructionsAllow) {
  const char* name = std::getenv("OXB_TEST_CORE");
  if (name == nullptr) GTEST_SKIP() << "OXB_TEST_CORE does not say which core this is";
  const Core* core = nullptr;
  for (const Core& known : kCores) core = known.name == name ? &known : core;
  ASSERT_NE(core, nullptr) << name;
  EXPECT_EQ(cpu_supports(Isa::kNeon), core->neon);
  EXPECT_EQ(cpu_supports(Isa::kNeonDotprod), core->dotprod);
  EXPECT_EQ(cpu_supports(Isa::kNeonI8mm), core->i8mm);
  EXPECT_FALSE(cpu_supports(Isa::kAvx2));

  const std::string plain = core->neon ? "_neon" : "_ref";
  const std::string dotprod = core->dotprod ? "_neon_dotprod" : plain;
  const Picked picked(false);
  EXPECT_EQ(picked["linear int8_t int8_t"],
            "linear_i8_i8_f32" + (core->i8mm ? "_neon_i8mm" : dotprod));
  EXPECT_EQ(picked["attention int8_t"], "attention_f32_i8_f32" + dotprod);
  EXPECT_EQ(picked["linear float float"], "linear_f32_f32_f32" + plain);
  EXPECT_EQ(picked["linear float int8_t"], "linear_f32_i8_f32" + plain);
  EXPECT_EQ(picked["attention float"], "attention_f32_f32_f32" + plain);
  EXPECT_EQ(picked["quantize"], "quantize_f32_i8" + plain);
  EXPECT_EQ(picked["rope"], "rope_f32_f32_f32" + plain);
  EXPECT_EQ(picked["add"], "add_f32_f32_f32_ref");
}

#if defined(__x86_64__) && defined(__linux__)
TEST(Dispatch, AnX86MachineGetsTheKernelsItsSystemNames) {
  // What Linux found out by itself.
  std::ifstream file("/proc/cpuinfo");
  std::string line, flags;
  while (flags.empty() && std::getline(file, line)) {
    if (line.starts_with("flags")) flags = line.substr(line.find(':') + 1) + " ";
  }
  ASSERT_FALSE(flags.empty());
  const auto has = [&](const char* flag) {
    return flags.find(" " + std::string(flag) + " ") != std::string::npos;
  };
  const bool avx512_vnni =
      has("avx512f") && has("avx512bw") && has("avx512vl") && has("avx512_vnni");
  EXPECT_EQ(cpu_supports(Isa::kAvx2), has("avx2"));
  EXPECT_EQ(cpu_supports(Isa::kAvxVnni), has("avx2") && has("avx_vnni"));
  EXPECT_EQ(cpu_supports(Isa::kAvx512Vnni), avx512_vnni);
  EXPECT_FALSE(cpu_supports(Isa::kNeon));
  const Picked picked(false);
  const std::string i8 = avx512_vnni                      ? "avx512_vnni"
                         : has("avx2") && has("avx_vnni") ? "avx_vnni"
                         : has("avx2")                    ? "avx2"
                                                          : "ref";
  EXPECT_EQ(picked["linear int8_t int8_t"], "linear_i8_i8_f32_" + i8);
  EXPECT_EQ(picked["attention int8_t"], "attention_f32_i8_f32_" + i8);
  EXPECT_EQ(picked["linear float float"],
            std::string("linear_f32_f32_f32_") + (has("avx2") ? "avx2" : "ref"));
}
#endif

}  // namespace
}  // namespace oxbow

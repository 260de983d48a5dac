#include "runtime/base/cpu.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif (defined(__aarch64__) || defined(__arm__)) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace oxbow {
namespace {

#if defined(__x86_64__) || defined(__i386__)

/// By number: not every compiler's __builtin_cpu_supports knows it.
bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1u << 4)) != 0;
}

bool probe(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      // FMA is not asked for: contraction would change the bits.
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
    case Isa::kAvxVnni:
      // Whether the system saves the registers is part of the compiler's answer for AVX2.
      return probe(Isa::kAvx2) && has_avx_vnni();
    case Isa::kAvx512Vnni:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
    default:
      return false;
  }
}

#elif defined(__aarch64__) && defined(__linux__)

// From Linux' asm/hwcap.h, by number: the NDK's older headers lack the later ones.
constexpr unsigned long kHwcapAsimdDp = 1ul << 20;
constexpr unsigned long kHwcap2I8mm = 1ul << 13;

bool probe(Isa isa) {
  switch (isa) {
    case Isa::kNeon:
      return true;
    case Isa::kNeonDotprod:
      return (getauxval(AT_HWCAP) & kHwcapAsimdDp) != 0;
    case Isa::kNeonI8mm:
      // Files for it are compiled for both.
      return probe(Isa::kNeonDotprod) && (getauxval(AT_HWCAP2) & kHwcap2I8mm) != 0;
    default:
      return false;
  }
}

#elif defined(__arm__) && defined(__linux__)

// From Linux' asm/hwcap.h of this architecture.
constexpr unsigned long kHwcapNeon = 1ul << 12;

bool probe(Isa isa) { return isa == Isa::kNeon && (getauxval(AT_HWCAP) & kHwcapNeon) != 0; }

#else

bool probe(Isa) { return false; }

#endif

}  // namespace

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::kNone:
      return "none";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvxVnni:
      return "avx_vnni";
    case Isa::kAvx512Vnni:
      return "avx512_vnni";
    case Isa::kNeon:
      return "neon";
    case Isa::kNeonDotprod:
      return "neon_dotprod";
    case Isa::kNeonI8mm:
      return "neon_i8mm";
  }
  return "unknown";
}

bool cpu_supports(Isa isa) { return isa == Isa::kNone || probe(isa); }

}  // namespace oxbow

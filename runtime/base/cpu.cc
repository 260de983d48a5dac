#include "runtime/base/cpu.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace oxbow {
namespace {

#if defined(__x86_64__) || defined(__i386__)

bool probe(Isa isa) {
  // FMA is not asked for: contraction would change the bits.
  return isa == Isa::kAvx2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
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

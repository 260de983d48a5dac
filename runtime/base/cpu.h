#pragma once

// Which instruction sets the kernels may be written for, and whether this machine has them. A new
// one is a line in the enum, a name and a probe here, and its compiler flag in ops/CMakeLists.txt.

#include <cstdint>

namespace oxbow {

enum class Isa : uint8_t {
  /// What every machine of the target has: the reference kernels.
  kNone = 0,
  kAvx2,
  kAvxVnni,
  kAvx512Vnni,
  kNeon,
  kNeonDotprod,
  kNeonI8mm,
};

const char* isa_name(Isa isa);

/// Asks the machine; cheap enough for bind, not for run.
bool cpu_supports(Isa isa);

/// What bind asks for each line of a kernel list.
inline bool may_use(Isa isa, bool reference_only) {
  return isa == Isa::kNone || (!reference_only && cpu_supports(isa));
}

}  // namespace oxbow

#pragma once

// y[i] = sin(p f) for all frequencies f, then cos(p f), with p the position of row i in the stream,
// at most `last` if that is not 0. Exact for every 64-bit position but for the rounding to float;
// see runtime/base/sincos.h.

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

extern const OpSignature kRopeAnglesSignature;
Status bind_rope_angles(BindContext& context, RunFunction* run);
Status bind_rope_angles_vulkan(VulkanBindContext& context);

}  // namespace oxbow

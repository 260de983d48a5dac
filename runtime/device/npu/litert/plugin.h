#pragma once

// The plug-in for LiteRT: chains as .tflite graphs, on its CPU or, by vendors' libraries, on the NPU of a phone.

#include "runtime/api/oxbow_npu.h"

namespace oxbow {

/// By libLiteRt.so where the system looks for libraries, or what the setting "library" names.
extern const oxb_npu_plugin kLitertPlugin;

}  // namespace oxbow

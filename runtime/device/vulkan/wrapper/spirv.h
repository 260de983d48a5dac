#pragma once

// What a compiled shader says about its bindings.

#include <cstdint>
#include <span>

namespace oxbow::vulkan {

/// Bit i: the shader may write to what is at binding i. Of code that cannot be read all bits.
uint32_t written_bindings(std::span<const uint32_t> code);

}  // namespace oxbow::vulkan

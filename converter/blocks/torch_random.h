#pragma once

// The numbers that PyTorch's generator for the CPU draws, for models that draw some of their constants by a seed.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace oxbow::convert {

/// What torch.manual_seed(seed); torch.randn(count) gives in float32, but for the last bit of some.
std::vector<float> torch_normals(uint64_t seed, size_t count);

}  // namespace oxbow::convert

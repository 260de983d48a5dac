#pragma once

// Logarithms of the probabilities of all words, from the logits of frequent words and of clusters
// of rare ones, the head, and of the words within each cluster:
//
//   log p(word of the head)    = log_softmax(head)[word]
//   log p(word of cluster i)   = log_softmax(cluster i)[word] + log_softmax(head)[words + i]
//
// Without clusters this is the logarithm of a softmax.

#include <cstddef>

#include "ops/common/signature.h"
#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

inline constexpr size_t kMaxClusters = 8;

/// y_i = ((x_i - m) - log(sum of e^(x - m))) + base, with m the largest x; `count` elements.
using AdaptiveSoftmaxKernel = void (*)(const float* x, size_t count, float base, float* y);

#define OXB_KERNEL(isa, fn) void fn(const float* x, size_t count, float base, float* y);
#include "ops/adaptive_softmax/kernels.inc"
#undef OXB_KERNEL

extern const OpSignature kAdaptiveSoftmaxSignature;
Status bind_adaptive_softmax(BindContext& context, RunFunction* run);
Status bind_adaptive_softmax_vulkan(VulkanBindContext& context);

}  // namespace oxbow

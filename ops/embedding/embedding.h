#pragma once

// y[t] = table[id[t] - first] * scale; an I8 table's element q counts as q * (row scale * scale), F16 and BF16 as floats, what lies
// in blocks of four bits as linear.h tells. Rows that are turned are turned back last. Ids
// that the table does not have give zeros if it is partial; otherwise the run fails.

#include <cstddef>
#include <cstdint>

#include "ops/common/signature.h"
#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

/// One table row to one output row.
template <typename Element>
using EmbeddingKernel = void (*)(const Element* row, size_t width, float scale, float* y);

// The first argument is the table's element type.
#define OXB_KERNEL(element, isa, fn) \
  void fn(const element* row, size_t width, float scale, float* y);
#include "ops/embedding/kernels.inc"
#undef OXB_KERNEL

extern const OpSignature kEmbeddingSignature;
Status bind_embedding(BindContext& context, RunFunction* run);
Status bind_embedding_vulkan(VulkanBindContext& context);

}  // namespace oxbow

#pragma once

// y = the last, or the first, rows(y) rows of x: the tokens whose logits or hidden states the caller
// wants. F32, also straight to the caller's memory, or I8 with the same scales. A run that wants more
// rows than it has fails.

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

extern const OpSignature kTakeRowsSignature;
Status bind_take_rows(BindContext& context, RunFunction* run);
Status bind_take_rows_vulkan(VulkanBindContext& context);

/// What decides which rows are taken.
struct TakenRows {
  Tensor x, y;
  bool from_start = false;
};

bool takes_from_start(const schema::Step& step);

/// The rows of this run: `wanted` of them from row `first` of x on. Fails when there are fewer.
Status find_taken_rows(const RunContext& context, const TakenRows& rows, uint32_t* first,
                       uint32_t* wanted);

}  // namespace oxbow

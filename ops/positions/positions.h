#pragma once

// ids[i] = offset + p modulo wrap, with p the position of token i in the stream; wrap 0 is none.
// With a pad token p counts only the other tokens of this run, and a pad token's id is pad_position.
// Ids stay below the output's limit: bind refuses options that could reach it, and without a wrap
// run fails where the positions end.

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

/// Token `row` of the run is at `position`, and there are only `end`.
Status fail_position(const RunContext& context, uint32_t row, uint64_t position, uint32_t end);

extern const OpSignature kPositionsSignature;
Status bind_positions(BindContext& context, RunFunction* run);
Status bind_positions_vulkan(VulkanBindContext& context);

}  // namespace oxbow

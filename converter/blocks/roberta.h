#pragma once

// RoBERTa (Liu et al. 2019) and what has its layers and names: BERT with positions that are counted over
// tokens that are no padding, and heads of its own.

#include "converter/blocks/encoder.h"

namespace oxbow::convert {

/// Tokens are counted from behind the row of the pad token, which padding has and nothing else. `rows` are
/// those of the table.
uint32_t positions_behind_padding(GraphBuilder& builder, uint32_t pad_token, uint32_t rows);

/// The head that predicts masked tokens: lm_head.
MaskedHead roberta_masked_head();

void import_roberta_model(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph);

}  // namespace oxbow::convert

#pragma once

// What a file may use beyond the first files of format version 1. A reader that did not know one of these would
// not refuse the file but compute something else: so files name those they use (Model.required_features), and a
// library refuses names it does not know. Unknown operators and enum values need no name: their numbers are
// refused.
//
// A field that is appended to the schema and changes results gets a line here and one in converter/features.cc,
// which says when a model uses it.

#include <algorithm>
#include <iterator>
#include <string_view>

namespace oxbow {

inline constexpr std::string_view kFeatures[] = {
    "ring.pinned",
    "ring.initial_rows",
    "ring.shared",
    "state.initial",
    "tensor.static_scale",
    "entry.inputs",
    "entry.own_row_inputs",
    "entry.outputs",
    "entry.starts",
    "entry.capacity",
    "embedding.partial",
    "attention.not_own",
    "attention.pattern",
    "attention.relative_zero",
    "attention.distance_bias",
    "attention.alibi",
    "attention.segments",
    "attention.key_mask",
    "attention.mask_queries",
    "attention.mask_keeps_own",
    "attention.globals",
    "attention.pinned_query",
    "attention.rooms",
    "attention.relative_keys",
    "attention.terms",
    "ring_evict.pad_front",
    "ring_evict.only_full",
    "ring_evict.all",
    "ring_push.only_full",
    "ring_push.first",
    "ring_push.replace",
    "take_rows.from_start",
    "convolution.bias",
    "layer_norm.groups",
    "rms_norm.groups",
    "ring_push.clear",
    "pool.neighbours",
    "rope_angles.last",
    "tokenizer.ordered_marks",
    "tokenizer.space_at_start_only",
    "layer_norm.deviation",
    "positions.divisor",
    "tensor.hadamard",
    "tokenizer.patterns",
    "tokenizer.normalization",
    "tokenizer.space_unless_there",
    "tokenizer.drop_first_space",
    "tokenizer.steps",
    "tokenizer.words",
    "tokenizer.word_suffix",
    "tokenizer.decoding",
    "pattern.of_bytes",
    "route.capacity",
    "generation.first_forbidden",
    "generation.timestamps",
};

constexpr bool knows_feature(std::string_view name) {
  return std::find(std::begin(kFeatures), std::end(kFeatures), name) != std::end(kFeatures);
}

}  // namespace oxbow

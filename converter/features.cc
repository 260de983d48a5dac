#include "converter/features.h"

#include <algorithm>
#include <iterator>

#include "runtime/model/features.h"

namespace oxbow::convert {
namespace {

using schema::ModelT;

template <typename List, typename Predicate>
bool any_of(const List& list, const Predicate& predicate) {
  return std::any_of(list.begin(), list.end(), [&](const auto& item) { return predicate(*item); });
}

bool is_plain_state(const schema::TensorT& tensor) {
  return tensor.kind == schema::TensorKind::State && tensor.ring < 0;
}

/// Inputs whose rows are not those of the tokens.
bool has_own_rows(const ModelT& model, const schema::EntryPointT& entry) {
  return std::any_of(entry.inputs.begin(), entry.inputs.end(), [&](uint32_t input) {
    return model.tensors[input]->rows_symbol != model.tensors[entry.tokens]->rows_symbol;
  });
}

// A predicate over the items of a list of the model.
#define OXB_ANY(list, item, condition)                                      \
  [](const ModelT& model) {                                                 \
    return any_of(model.list, [&](const auto& item) { return condition; }); \
  }

// Some step has this option at another value than the one that a missing field means.
#define OXB_OPTION(Options, field)                                                 \
  [](const ModelT& model) {                                                        \
    return any_of(model.entry_points, [](const auto& entry) {                      \
      return any_of(entry.steps, [](const auto& step) {                            \
        const auto* options = step.options.As##Options();                          \
        return options != nullptr && options->field != schema::Options##T().field; \
      });                                                                          \
    });                                                                            \
  }

bool uses_pattern(const ModelT& model) {
  return any_of(model.entry_points, [](const auto& entry) {
    return any_of(entry.steps, [](const auto& step) {
      const auto* options = step.options.AsAttentionOptions();
      return options != nullptr && options->pattern != nullptr &&
             options->pattern->kind != schema::PatternKind::Causal;
    });
  });
}

constexpr Feature kTable[] = {
    {"ring.pinned", "Ring.pinned", OXB_ANY(rings, ring, ring.pinned != 0)},
    {"ring.initial_rows", "Ring.initial_rows Tensor.initial",
     OXB_ANY(rings, ring, ring.initial_rows != 0)},
    {"ring.shared", "Ring.shared MemoryPlan.shared_states", OXB_ANY(rings, ring, ring.shared)},
    {"state.initial", "Tensor.initial",
     OXB_ANY(tensors, tensor, is_plain_state(tensor) && tensor.initial >= 0)},
    {"tensor.static_scale", "Tensor.static_scale",
     OXB_ANY(tensors, tensor, tensor.static_scale.has_value())},
    {"entry.inputs", "EntryPoint.inputs Tensor.default_value",
     OXB_ANY(entry_points, entry, !entry.inputs.empty())},
    {"entry.own_row_inputs", "", OXB_ANY(entry_points, entry, has_own_rows(model, entry))},
    {"entry.outputs", "EntryPoint.outputs", OXB_ANY(entry_points, entry, !entry.outputs.empty())},
    {"entry.starts", "EntryPoint.starts", OXB_ANY(entry_points, entry, entry.starts)},
    {"entry.capacity", "EntryPoint.capacity", OXB_ANY(entry_points, entry, entry.capacity != 0)},
    {"embedding.partial", "EmbeddingOptions.partial EmbeddingOptions.first",
     OXB_OPTION(EmbeddingOptions, partial)},
    {"attention.not_own", "AttentionOptions.own", OXB_OPTION(AttentionOptions, own)},
    {"attention.pattern", "AttentionOptions.pattern", uses_pattern},
    {"attention.relative_zero", "AttentionOptions.relative_zero",
     OXB_OPTION(AttentionOptions, relative_zero)},
    {"attention.distance_bias", "AttentionOptions.distance_bias",
     OXB_OPTION(AttentionOptions, distance_bias)},
    {"attention.alibi", "AttentionOptions.alibi", OXB_OPTION(AttentionOptions, alibi)},
    {"attention.segments", "AttentionOptions.segments", OXB_OPTION(AttentionOptions, segments)},
    {"attention.key_mask", "AttentionOptions.key_mask", OXB_OPTION(AttentionOptions, key_mask)},
    {"attention.mask_queries", "AttentionOptions.mask_queries",
     OXB_OPTION(AttentionOptions, mask_queries)},
    {"attention.mask_keeps_own", "AttentionOptions.mask_keeps_own",
     OXB_OPTION(AttentionOptions, mask_keeps_own)},
    {"attention.globals", "AttentionOptions.globals", OXB_OPTION(AttentionOptions, globals)},
    {"attention.pinned_query", "AttentionOptions.pinned_query",
     OXB_OPTION(AttentionOptions, pinned_query)},
    {"attention.rooms", "AttentionOptions.rooms", OXB_OPTION(AttentionOptions, rooms)},
    {"attention.relative_keys", "AttentionOptions.relative_keys",
     OXB_OPTION(AttentionOptions, relative_keys)},
    {"attention.terms", "AttentionOptions.terms", OXB_OPTION(AttentionOptions, terms)},
    {"ring_evict.pad_front", "RingEvictOptions.pad_front", OXB_OPTION(RingEvictOptions, pad_front)},
    {"ring_evict.only_full", "RingEvictOptions.only_full", OXB_OPTION(RingEvictOptions, only_full)},
    {"ring_evict.all", "RingEvictOptions.all", OXB_OPTION(RingEvictOptions, all)},
    {"ring_push.only_full", "RingPushOptions.only_full", OXB_OPTION(RingPushOptions, only_full)},
    {"ring_push.first", "RingPushOptions.first", OXB_OPTION(RingPushOptions, first)},
    {"ring_push.replace", "RingPushOptions.replace", OXB_OPTION(RingPushOptions, replace)},
    {"take_rows.from_start", "TakeRowsOptions.from_start", OXB_OPTION(TakeRowsOptions, from_start)},
    {"convolution.bias", "ConvolutionOptions.has_bias", OXB_OPTION(ConvolutionOptions, has_bias)},
    {"layer_norm.groups", "LayerNormOptions.groups", OXB_OPTION(LayerNormOptions, groups)},
    {"rms_norm.groups", "RmsNormOptions.groups", OXB_OPTION(RmsNormOptions, groups)},
    {"ring_push.clear", "RingPushOptions.clear", OXB_OPTION(RingPushOptions, clear)},
    {"pool.neighbours", "PoolOptions.neighbours", OXB_OPTION(PoolOptions, neighbours)},
    {"rope_angles.last", "RopeAnglesOptions.last", OXB_OPTION(RopeAnglesOptions, last)},
    {"tokenizer.ordered_marks", "Tokenizer.ordered_marks",
     [](const ModelT& model) {
       return model.tokenizer && !model.tokenizer->ordered_marks.empty();
     }},
    {"tokenizer.space_at_start_only", "Tokenizer.space_at_start_only",
     [](const ModelT& model) { return model.tokenizer && model.tokenizer->space_at_start_only; }},
    {"layer_norm.deviation", "LayerNormOptions.deviation", OXB_OPTION(LayerNormOptions, deviation)},
    {"positions.divisor", "PositionsOptions.divisor", OXB_OPTION(PositionsOptions, divisor)},
    {"tensor.hadamard", "Tensor.hadamard", OXB_ANY(tensors, tensor, tensor.hadamard != 0)},
    {"tokenizer.patterns",
     "Tokenizer.patterns Tokenizer.pattern_classes Tokenizer.pattern_class_count",
     [](const ModelT& model) { return model.tokenizer && !model.tokenizer->patterns.empty(); }},
    {"tokenizer.normalization", "Tokenizer.normalization",
     [](const ModelT& model) { return model.tokenizer && model.tokenizer->normalization; }},
    {"tokenizer.space_unless_there", "Tokenizer.space_unless_there",
     [](const ModelT& model) { return model.tokenizer && model.tokenizer->space_unless_there; }},
    {"tokenizer.drop_first_space", "Tokenizer.drop_first_space",
     [](const ModelT& model) { return model.tokenizer && model.tokenizer->drop_first_space; }},
    {"tokenizer.steps", "Tokenizer.steps",
     [](const ModelT& model) { return model.tokenizer && !model.tokenizer->steps.empty(); }},
    {"tokenizer.words",
     "Tokenizer.words Tokenizer.word_mark Tokenizer.mark_spaces Tokenizer.unknown_apart "
     "Tokenizer.exact_scores",
     [](const ModelT& model) { return model.tokenizer && model.tokenizer->words; }},
    {"tokenizer.word_suffix", "Tokenizer.word_suffix Tokenizer.last_byte_pieces",
     [](const ModelT& model) { return model.tokenizer && !model.tokenizer->word_suffix.empty(); }},
    {"tokenizer.decoding", "Tokenizer.decoding",
     [](const ModelT& model) {
       return model.tokenizer && model.tokenizer->decoding != schema::TokenDecoding::Kind;
     }},
    {"pattern.of_bytes", "WordPattern.of_bytes",
     [](const ModelT& model) {
       return model.tokenizer && any_of(model.tokenizer->patterns,
                                        [](const auto& pattern) { return pattern.of_bytes; });
     }},
    {"route.capacity", "RouteOptions.capacity", OXB_OPTION(RouteOptions, capacity)},
    {"generation.first_forbidden", "Generation.first_forbidden_tokens",
     [](const ModelT& model) {
       return model.generation && !model.generation->first_forbidden_tokens.empty();
     }},
    {"generation.timestamps",
     "Generation.first_timestamp Generation.no_timestamps_token Generation.last_initial_timestamp",
     [](const ModelT& model) {
       return model.generation && model.generation->first_timestamp >= 0;
     }},
};
#undef OXB_ANY
#undef OXB_OPTION

static_assert(std::equal(std::begin(kTable), std::end(kTable), std::begin(kFeatures),
                         std::end(kFeatures),
                         [](const Feature& a, std::string_view b) { return a.name == b; }),
              "runtime/model/features.h has the same names in the same order");

}  // namespace

std::span<const Feature> features() { return kTable; }

std::vector<std::string> used_features(const ModelT& model) {
  std::vector<std::string> names;
  for (const Feature& feature : kTable) {
    if (feature.is_used(model)) names.emplace_back(feature.name);
  }
  return names;
}

}  // namespace oxbow::convert

#include "converter/features.h"

#include <algorithm>

#include "runtime/model/state_kinds.h"

namespace oxbow::convert {
namespace {

using schema::ModelT;

template <typename List, typename Predicate>
bool any_of(const List& list, const Predicate& predicate) {
  return std::any_of(list.begin(), list.end(), [&](const auto& item) { return predicate(*item); });
}

bool is_plain_state(const schema::TensorT& tensor) {
  return tensor.kind == schema::TensorKind::State && state_kind(tensor).begins_full;
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
#define OXB_FEATURE(name, fields, ...) {name, fields, __VA_ARGS__},
#include "runtime/model/features.inc"
};
#undef OXB_ANY
#undef OXB_OPTION

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

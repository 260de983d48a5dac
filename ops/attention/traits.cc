#include "ops/traits.h"

#include <algorithm>

#include "ops/attention/attention.h"

namespace oxbow {
namespace {

/// Keys and values, fresh or remembered, have a scale for each of their heads, and a table of relative positions as well.
uint32_t remembered_scales(const schema::ModelT&, const schema::StepT& step, size_t input) {
  const schema::AttentionOptionsT& o = *step.options.AsAttentionOptions();
  const size_t table = 1 + 2 * size_t{o.sources};
  if (input == 0) return 0;
  if (input < table) return o.kv_heads;
  return o.relative && input == table ? o.heads : 0;
}

HeadProducts head_products(const schema::StepT& step) {
  const schema::AttentionOptionsT& o = *step.options.AsAttentionOptions();
  const bool has_others = o.relative || o.segments || o.pinned_query ||
                          std::any_of(o.terms.begin(), o.terms.end(), [](const auto& term) {
                            return term->kind == schema::TermKind::Relative ||
                                   term->kind == schema::TermKind::Segments ||
                                   term->kind == schema::TermKind::PinnedQuery;
                          });
  // A score that is given, or sums that are told, would not change with the others; other products with keys would.
  const bool sees_size = o.relative_keys || step.outputs.size() > 1 ||
                         std::any_of(o.terms.begin(), o.terms.end(), [](const auto& term) {
                           return term->kind == schema::TermKind::OwnScore ||
                                  term->kind == schema::TermKind::RelativeKeys;
                         });
  HeadProducts products = {{0}, o.heads, !has_others, !has_others && !sees_size};
  for (size_t source = 0; source < o.sources; ++source) products.inputs.push_back(1 + 2 * source);
  return products;
}

std::vector<std::vector<size_t>> i4_rings(const schema::StepT& step) {
  const schema::AttentionOptionsT& o = *step.options.AsAttentionOptions();
  std::vector<std::vector<size_t>> groups;
  // What is sorted is read where it lies.
  if (o.pattern && o.pattern->kind == schema::PatternKind::Circle) return groups;
  for (size_t source = 0; source < o.sources; ++source) {
    groups.push_back({1 + 2 * source, 2 + 2 * source});
  }
  return groups;
}

void divide_products(schema::StepT& step, float divisor) {
  step.options.AsAttentionOptions()->scale /= divisor;
}

double macs(const schema::ModelT& model, const schema::EntryPointT& entry,
            const schema::StepT& step) {
  const schema::AttentionOptionsT& o = *step.options.AsAttentionOptions();
  double positions = 0;
  for (uint32_t source = 0; source < o.sources; ++source) {
    const schema::TensorT& key = *model.tensors[step.inputs[1 + 2 * source]];
    positions += key.ring >= 0 || key.rows_symbol < 0 || entry.starts ? key.rows : 1;
  }
  // q . k, and q . position, and k . position; weights . v.
  return positions * (model.tensors[step.inputs[0]]->width *
                          (1 + (o.relative ? 1 : 0) + (o.relative_keys ? 1 : 0)) +
                      model.tensors[step.outputs[0]]->width);
}

std::string options(const schema::StepT& step) {
  const schema::AttentionOptionsT& o = *step.options.AsAttentionOptions();
  const bool has_spans = std::any_of(o.terms.begin(), o.terms.end(), [](const auto& term) {
    return term->kind == schema::TermKind::AdaptiveSpan;
  });
  return in_words({counted(o.heads, "heads"),
                   o.kv_heads != o.heads ? counted(o.kv_heads, "for keys and values") : "",
                   counted(o.sources, "sources"), o.relative ? "relative positions" : "",
                   o.distance_bias ? "distance bias" : "", o.alibi ? "alibi" : "",
                   o.segments ? "segments" : "", o.key_mask ? "mask" : "",
                   o.globals ? "global keys" : "", has_spans ? "adaptive spans" : ""});
}

}  // namespace

extern const OpTraits attention_traits;
const OpTraits attention_traits = {
    .code = schema::OpCode::Attention,
    .signature = &kAttentionSignature,
    .category = OpCategory::kAttention,
    .i8_states = true,
    .remembered_scales = remembered_scales,
    .head_products = head_products,
    .divide_products = divide_products,
    .macs = macs,
    .options = options,
    .i4_rings = i4_rings,
};

}  // namespace oxbow

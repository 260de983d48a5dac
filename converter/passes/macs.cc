// Counts the work of one token, from the graph alone.

#include <cmath>

#include "converter/passes/passes.h"

namespace oxbow::convert {
namespace {

/// Rows per token of each symbol: one, but for the groups that leave a full ring.
std::vector<double> rows_per_token(const schema::ModelT& model, const schema::EntryPointT& entry) {
  std::vector<double> rows(model.symbols.size(), 1.0);
  for (const auto& step : entry.steps) {
    if (step->op != schema::OpCode::RingEvict) continue;
    const int32_t symbol = model.tensors[step->outputs[0]]->rows_symbol;
    rows[static_cast<size_t>(symbol)] = 1.0 / step->options.AsRingEvictOptions()->group;
  }
  return rows;
}

double attention_macs(const schema::ModelT& model, const schema::EntryPointT& entry,
                      const schema::StepT& step) {
  const schema::AttentionOptionsT& options = *step.options.AsAttentionOptions();
  const double width = model.tensors[step.inputs[0]]->width;
  double slots = 0;
  for (uint32_t source = 0; source < options.sources; ++source) {
    const schema::TensorT& key = *model.tensors[step.inputs[1 + 2 * source]];
    slots += key.ring >= 0 || entry.starts ? key.rows : 1;
  }
  // q . k, weights . v, and q . position, and k . position.
  return slots * width * (2 + (options.relative ? 1 : 0) + (options.relative_keys ? 1 : 0));
}

}  // namespace

uint64_t macs_per_token(const schema::ModelT& model) {
  const schema::EntryPointT& entry = *model.entry_points.back();
  const std::vector<double> rows = rows_per_token(model, entry);
  double macs = 0;
  for (const auto& step : entry.steps) {
    const schema::TensorT& output = *model.tensors[step->outputs.at(0)];
    const double count = output.rows_symbol < 0 ? output.rows : rows[size_t(output.rows_symbol)];
    if (step->op == schema::OpCode::Linear) {
      const schema::TensorT& weight = *model.tensors[step->inputs[1]];
      macs += count * weight.rows * weight.width;
    } else if (step->op == schema::OpCode::Attention) {
      macs += count * attention_macs(model, entry, *step);
    }
  }
  return static_cast<uint64_t>(std::llround(macs));
}

}  // namespace oxbow::convert

// Counts the work of one token, from the graph alone.

#include "host/macs.h"

#include <cmath>
#include <numeric>

#include "ops/traits.h"

namespace oxbow {
namespace {

/// Rows per token of each symbol: one, unless an op counts them.
std::vector<double> rows_per_token(const schema::ModelT& model, const schema::EntryPointT& entry) {
  std::vector<double> rows(model.symbols.size(), 1.0);
  for (const auto& step : entry.steps) {
    const OpTraits& traits = op_traits(step->op);
    if (traits.rows_per_token == nullptr) continue;
    const int32_t symbol = model.tensors[step->outputs.at(0)]->rows_symbol;
    if (symbol >= 0) rows[static_cast<size_t>(symbol)] = traits.rows_per_token(*step);
  }
  return rows;
}

}  // namespace

std::vector<double> step_macs(const schema::ModelT& model, const schema::EntryPointT& entry) {
  const std::vector<double> rows = rows_per_token(model, entry);
  std::vector<double> macs;
  for (const auto& step : entry.steps) {
    const OpTraits& traits = op_traits(step->op);
    const schema::TensorT& output = *model.tensors[step->outputs.at(0)];
    const double count = output.rows_symbol < 0 ? output.rows : rows[size_t(output.rows_symbol)];
    macs.push_back(traits.macs == nullptr ? 0.0 : count * traits.macs(model, entry, *step));
  }
  return macs;
}

uint64_t macs_per_token(const schema::ModelT& model, const schema::EntryPointT& entry) {
  const std::vector<double> macs = step_macs(model, entry);
  return static_cast<uint64_t>(std::llround(std::accumulate(macs.begin(), macs.end(), 0.0)));
}

uint64_t macs_per_token(const schema::ModelT& model) {
  return macs_per_token(model, *model.entry_points.back());
}

}  // namespace oxbow

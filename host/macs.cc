// Counts the work of one token, from the graph alone.

#include "host/macs.h"

#include <algorithm>
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

std::vector<StepWork> step_work(const schema::ModelT& model, const schema::EntryPointT& entry) {
  const std::vector<double> rows = rows_per_token(model, entry);
  const int32_t tokens = model.tensors[entry.tokens]->rows_symbol;
  std::vector<StepWork> all;
  for (const auto& step : entry.steps) {
    const OpTraits& traits = op_traits(step->op);
    StepWork& work = all.emplace_back();
    const schema::TensorT& output = *model.tensors[step->outputs.at(0)];
    // Steps that run with some tokens only, or with rows of another input: how often is not known.
    const bool with_tokens = output.rows_symbol >= 0 && output.rows_symbol == tokens &&
                             rows[size_t(output.rows_symbol)] == 1.0;
    const bool counted =
        traits.category == OpCategory::kMatrix || traits.category == OpCategory::kAttention;
    if (traits.macs == nullptr || !counted || (output.rows_symbol >= 0 && !with_tokens)) continue;
    const double macs = traits.macs(model, entry, *step);
    (with_tokens ? work.macs_per_token : work.macs_per_run) =
        with_tokens ? macs : macs * output.rows;
    work.needs_full_memories = traits.category == OpCategory::kAttention;
    double elements = 0.0;
    for (const uint32_t index : step->inputs) {
      const schema::TensorT& input = *model.tensors[index];
      const bool weight = input.kind == schema::TensorKind::Weight;
      if (weight || input.kind == schema::TensorKind::State) {
        work.all_bytes += static_cast<double>(input.bytes);
      }
      if (weight) elements = std::max(elements, static_cast<double>(input.rows) * input.width);
      if (!weight && input.type == schema::DataType::I8) work.int8 = true;
    }
    if (!work.needs_full_memories) work.share_per_token = std::min(1.0, macs / elements);
  }
  return all;
}

uint64_t macs_per_token(const schema::ModelT& model, const schema::EntryPointT& entry) {
  const std::vector<double> macs = step_macs(model, entry);
  return static_cast<uint64_t>(std::llround(std::accumulate(macs.begin(), macs.end(), 0.0)));
}

uint64_t macs_per_token(const schema::ModelT& model) {
  return macs_per_token(model, *model.entry_points.back());
}

}  // namespace oxbow

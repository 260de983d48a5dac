#include "converter/measure/budget.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "converter/passes/rounding.h"
#include "host/args.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

/// Bits of a weight's price that are tried, from nothing to all there are.
constexpr int kPrices = 200;

void round_groups(std::span<float> rows, size_t width, PackError& error) {
  for (size_t row = 0; row < rows.size(); row += width) {
    for (size_t at = 0; at < width; at += kI4BlockColumns) {
      const std::span<float> values = rows.subspan(row + at, std::min(kI4BlockColumns, width - at));
      const I4Group group = round_to_i4(values);
      for (size_t i = 0; i < values.size(); ++i) {
        const float rounded = value_of(group, i);
        error.add(rounded, values[i]);
        values[i] = rounded;
      }
    }
  }
}

}  // namespace

MatrixCosts measure_matrices(const Graph& graph, DraftFile& file, const Judge& judge,
                             const std::set<std::string>& names,
                             const std::function<void(size_t done, size_t all)>& progress) {
  MatrixCosts costs;
  for (const auto& [index, weight] : graph.weights) {
    const schema::TensorT& tensor = graph.tensor(index);
    if (!names.contains(tensor.name)) continue;
    progress(costs.size(), names.size());
    const auto write = [&](uint32_t first, const std::vector<float>& rows) {
      file.write(tensor.offset + uint64_t{first} * tensor.width * sizeof(float),
                 std::as_bytes(std::span(rows)));
    };
    PackError error;
    for_each_part(weight, [&](uint32_t first, std::vector<float> rows) {
      round_groups(rows, tensor.width, error);
      write(first, rows);
    });
    MatrixCost& cost = costs[tensor.name];
    cost.loss = std::max(judge.compare(file.path()).loss(), 0.0);
    cost.error = error.energy > 0 ? std::sqrt(error.difference / error.energy) : 0;
    for_each_part(weight, write);
  }
  return costs;
}

std::map<std::string, SpentBits> spend_bits(const Graph& graph, const MatrixCosts& costs,
                                            const std::vector<StoredMatrices>& ways, double bits) {
  std::map<std::string, double> weights;
  double all = 0;
  for (const auto& [index, values] : graph.weights) {
    const schema::TensorT& tensor = graph.tensor(index);
    if (!costs.contains(tensor.name)) continue;
    weights[tensor.name] = static_cast<double>(uint64_t{tensor.rows} * tensor.width);
    all += weights[tensor.name];
  }
  const auto loss_of = [&](const std::string& name, const StoredMatrices& way) {
    const MatrixCost& cost = costs.at(name);
    if (cost.error == 0) return 0.0;
    const double part = way.errors.at(name) / cost.error;
    return cost.loss * part * part;
  };
  // At one price of a bit for all each matrix takes what costs it least.
  std::map<std::string, SpentBits> best;
  double least_loss = std::numeric_limits<double>::infinity();
  double fewest = std::numeric_limits<double>::infinity();
  for (int step = 0; step <= kPrices; ++step) {
    const double price = step == 0 ? 0 : std::exp2(-0.4 * (kPrices - step));
    std::map<std::string, SpentBits> spent;
    double used = 0, loss = 0;
    for (const auto& [name, count] : weights) {
      SpentBits chosen;
      double least = std::numeric_limits<double>::infinity();
      for (const StoredMatrices& way : ways) {
        const double size = 8.0 * static_cast<double>(way.bytes.at(name));
        const double lost = loss_of(name, way);
        if (lost + price * size >= least) continue;
        least = lost + price * size;
        chosen = {way.format, size / count, lost};
      }
      used += chosen.bits * count;
      loss += chosen.loss;
      spent[name] = chosen;
    }
    fewest = std::min(fewest, used / all);
    if (used > bits * all || loss >= least_loss) continue;
    least_loss = loss;
    best = std::move(spent);
  }
  if (best.empty() && !weights.empty()) {
    throw UsageError("--budget is " + formatted(bits, "%g") +
                     " bits for a weight, expected at least " + formatted(fewest, "%.3f") +
                     ", which int4 takes here");
  }
  return best;
}

}  // namespace oxbow::convert

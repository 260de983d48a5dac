#include "tools/verify/outcome.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/common.h"

namespace oxbow::tools {
namespace {

std::optional<Layout::View> find_view(const Layout& layout, const std::vector<uint64_t>& shape,
                                      const Produced& produced) {
  const std::optional<Layout::View> rows = layout.view(shape);
  if (rows && rows->width == produced.width) return rows;
  // One row per stream, or a state that is no list of rows.
  const std::optional<Layout::View> whole = layout.whole(shape, produced.rows, produced.width);
  return whole ? whole : rows;
}

std::vector<double> to_doubles(const Safetensors& io, const std::string& name) {
  if (!is_float(io.at(name).dtype)) {
    const std::vector<int64_t> values = io.integers(name);
    return {values.begin(), values.end()};
  }
  // Rounded to float: far below any tolerance, since the model's own numbers are floats.
  const std::vector<float> values = io.floats(name);
  return {values.begin(), values.end()};
}

void compare(Outcome& outcome, const std::vector<double>& expected, const Tolerance& tolerance) {
  if (expected.size() != outcome.produced.size()) {
    outcome.note = "the two alternatives have different sizes";
    return;
  }
  double dot = 0.0, got_square = 0.0, expected_square = 0.0;
  double worst = -1.0;
  bool within = true, finite = true;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!outcome.covered[i]) continue;
    const double got = static_cast<double>(outcome.produced[i]);
    const double error = std::abs(got - expected[i]);
    if (!std::isfinite(got) || !std::isfinite(expected[i])) {
      if (finite) outcome.max_at = i;
      finite = false;
      continue;
    }
    if (finite && error > worst) {
      worst = error;
      outcome.max_at = i;
    }
    within = within && error <= tolerance.atol + tolerance.rtol * std::abs(expected[i]);
    dot += got * expected[i];
    got_square += got * got;
    expected_square += expected[i] * expected[i];
  }
  outcome.max_error = finite ? std::max(worst, 0.0) : std::numeric_limits<double>::quiet_NaN();
  const double product = std::sqrt(got_square) * std::sqrt(expected_square);
  outcome.cosine = product > 0.0 ? dot / product : got_square == expected_square ? 1.0 : 0.0;
  if (!finite) outcome.note = "not a number";
  outcome.ok = finite && (within || !tolerance.judges_error) &&
               (!tolerance.min_cosine || outcome.cosine >= *tolerance.min_cosine);
}

/// Chosen tokens. Where the two best logits are nearer to each other than twice the error the logits
/// may have, either choice is right.
void judge_ids(Outcome& outcome, const Safetensors& io, double margin) {
  const std::vector<int64_t> expected = io.integers(outcome.name);
  uint64_t agree = 0, tied = 0, wrong = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == static_cast<int64_t>(outcome.produced[i])) {
      ++agree;
      continue;
    }
    const bool near = static_cast<double>(outcome.gaps[i]) <= margin;
    near ? ++tied : ++wrong;
    if (!near && wrong == 1) outcome.max_at = i;
  }
  outcome.max_error = static_cast<double>(wrong);
  outcome.cosine = 1.0;
  outcome.ok = wrong == 0;
  outcome.note =
      format("%llu of %zu agree", static_cast<unsigned long long>(agree), expected.size());
  if (tied != 0) {
    outcome.note += format(", %llu nearly tied", static_cast<unsigned long long>(tied));
  }
  if (!outcome.remark.empty()) outcome.note += " (" + outcome.remark + ")";
}

/// Indices have no direction. Where only cosines are judged they tell how far a model chose what the reference did.
void count_equal(Outcome& outcome, const Safetensors& io) {
  const std::vector<double> expected = to_doubles(io, outcome.name);
  uint64_t equal = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    equal += static_cast<double>(outcome.produced[i]) == expected[i] ? 1 : 0;
  }
  outcome.cosine = 1.0;
  outcome.ok = true;
  outcome.note = format("%llu of %zu equal, not judged", static_cast<unsigned long long>(equal),
                        expected.size());
}

}  // namespace

void place(Outcome& outcome, const Produced& produced, const Placement& placement) {
  if (!outcome.failure.empty()) return;
  std::vector<uint64_t> shape = outcome.shape;
  uint64_t layer_offset = 0;
  if (placement.layers != 0) {
    if (shape.empty() || shape[0] != placement.layers) {
      outcome.failure =
          format("the model has %llu of them", static_cast<unsigned long long>(placement.layers));
      return;
    }
    shape.erase(shape.begin());
    layer_offset = placement.layer;
    for (const uint64_t dimension : shape) layer_offset *= dimension;
  }
  const std::optional<Layout::View> view = find_view(placement.layout, shape, produced);
  if (!view || view->width != produced.width) {
    outcome.failure = format("the model has %llu values per row for each of %llu streams",
                             static_cast<unsigned long long>(produced.width),
                             static_cast<unsigned long long>(placement.layout.batch));
    return;
  }
  const bool fewer = produced.may_be_fewer && produced.rows < view->rows;
  if (placement.rows_at == nullptr && view->rows != produced.rows && !fewer) {
    outcome.failure = format("the model has %llu rows, expected %llu",
                             static_cast<unsigned long long>(produced.rows),
                             static_cast<unsigned long long>(view->rows));
    return;
  }
  if (placement.rows_at != nullptr) {
    for (const uint64_t row : *placement.rows_at) {
      if (row < view->rows && placement.rows_at->size() == produced.rows) continue;
      outcome.failure =
          format("rows of %llu tokens, expected more than %llu",
                 static_cast<unsigned long long>(view->rows), static_cast<unsigned long long>(row));
      return;
    }
  }
  if (placement.rows_at == nullptr && fewer) {
    outcome.note = format("the first %llu rows", static_cast<unsigned long long>(produced.rows));
  }
  uint64_t count = 1;
  for (const uint64_t dimension : outcome.shape) count *= dimension;
  outcome.produced.resize(count);
  outcome.covered.resize(count);
  if (outcome.is_ids) outcome.gaps.resize(count);
  for (uint64_t row = 0; row < produced.rows; ++row) {
    const uint64_t target = placement.rows_at == nullptr ? row : (*placement.rows_at)[row];
    const auto to = static_cast<ptrdiff_t>(layer_offset + view->at(placement.stream, target));
    const auto from = static_cast<ptrdiff_t>(row * produced.width);
    std::copy_n(produced.values.begin() + from, produced.width, outcome.produced.begin() + to);
    for (ptrdiff_t i = 0; i < static_cast<ptrdiff_t>(produced.width); ++i) {
      outcome.covered[static_cast<size_t>(to + i)] =
          produced.covered.empty() || produced.covered[static_cast<size_t>(from + i)];
    }
    if (outcome.is_ids) outcome.gaps[static_cast<size_t>(to)] = produced.gaps[row];
  }
}

void judge(Outcome& outcome, const Safetensors& io, const Tolerance& tolerance, double margin) {
  const bool empty =
      std::find(outcome.shape.begin(), outcome.shape.end(), 0u) != outcome.shape.end();
  if (outcome.failure.empty() && outcome.produced.empty() && !empty) {
    outcome.failure = "the inputs that lead to it are not there";
  }
  if (!outcome.failure.empty()) {
    outcome.note = outcome.failure;
    outcome.max_error = outcome.cosine = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  if (outcome.is_ids) {
    judge_ids(outcome, io, margin);
    return;
  }
  if (!tolerance.judges_error && !is_float(io.at(outcome.name).dtype)) {
    count_equal(outcome, io);
    return;
  }
  bool first = true;
  for (const std::string& name : {outcome.name, outcome.name + ".fp64"}) {
    if (io.find(name) == nullptr) continue;
    Outcome candidate = outcome;
    compare(candidate, to_doubles(io, name), tolerance);
    if (first || (candidate.ok && !outcome.ok)) {
      outcome = candidate;
      if (!first) outcome.note = "matches .fp64";
    }
    first = false;
  }
}

}  // namespace oxbow::tools

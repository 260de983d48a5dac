#include "tools/verify/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "host/describe.h"
#include "tools/common.h"

namespace oxbow::tools {
namespace {

/// The natural order of names: segment2 before segment10, what comes after the other parts last.
bool name_before(const std::string& a, const std::string& b) {
  const auto key = [](const std::string& name) -> std::pair<uint64_t, std::string> {
    for (const char* last : {"greedy.", "masked.", "beam."}) {
      if (name.starts_with(last)) return {UINT64_MAX, name};
    }
    if (!name.starts_with("segment")) return {0, name};
    const size_t dot = std::min(name.find('.'), name.size());
    return {parse_integer(name.substr(7, dot - 7)).value_or(0), name.substr(dot)};
  };
  return key(a) < key(b);
}

nlohmann::json to_json(const Outcome& outcome) {
  nlohmann::json out = {{"name", outcome.name}, {"shape", outcome.shape}, {"ok", outcome.ok}};
  if (std::isfinite(outcome.max_error)) {
    out["max_abs_error"] = outcome.max_error;
    out["at"] = coordinates(outcome.shape, outcome.max_at);
    out["cosine"] = outcome.cosine;
  }
  if (!outcome.note.empty()) out["note"] = outcome.note;
  return out;
}

void print_line(const Outcome& outcome, size_t name_width) {
  std::printf("%-*s  %-14s ", static_cast<int>(name_width), outcome.name.c_str(),
              shape_text(outcome.shape).c_str());
  if (outcome.is_ids && outcome.failure.empty()) {
    std::printf("%-47s", outcome.note.c_str());
  } else if (std::isfinite(outcome.max_error)) {
    std::printf("max error %.2e at %-16s cosine %.6f", outcome.max_error,
                shape_text(coordinates(outcome.shape, outcome.max_at)).c_str(), outcome.cosine);
    if (!outcome.note.empty()) std::printf(" (%s)", outcome.note.c_str());
  } else {
    std::printf("%-47s", outcome.note.c_str());
  }
  std::printf("  %s\n", outcome.ok ? "ok" : "FAIL");
}

}  // namespace

void summarize(Verification& verification) {
  std::sort(verification.outcomes.begin(), verification.outcomes.end(),
            [](const Outcome& a, const Outcome& b) { return name_before(a.name, b.name); });
  std::sort(verification.not_produced.begin(), verification.not_produced.end(), name_before);
  for (const Outcome& outcome : verification.outcomes) {
    verification.failed += !outcome.ok;
    if (outcome.is_ids || !outcome.failure.empty()) continue;
    // Once it is not a number it stays so: no comparison with NaN is true.
    if (std::isnan(outcome.max_error) || outcome.max_error > verification.max_error) {
      verification.max_error = outcome.max_error;
    }
    verification.least_cosine = std::min(verification.least_cosine, outcome.cosine);
  }
  verification.ok = verification.failed == 0 && !verification.outcomes.empty();
}

void print_json(const Verification& verification) {
  const Tolerance& tolerance = verification.tolerance;
  nlohmann::json out = {{"model", verification.model},
                        {"io", verification.io},
                        {"ok", verification.ok},
                        {"checked", verification.outcomes.size()},
                        {"failed", verification.failed},
                        {"atol", tolerance.atol},
                        {"rtol", tolerance.rtol},
                        {"max_abs_error", verification.max_error},
                        {"least_cosine", verification.least_cosine},
                        {"tensors", nlohmann::json::array()},
                        {"not_produced", verification.not_produced}};
  if (tolerance.min_cosine) out["min_cosine"] = *tolerance.min_cosine;
  for (const Outcome& outcome : verification.outcomes) out["tensors"].push_back(to_json(outcome));
  std::fputs(json_text(out).c_str(), stdout);
}

void print_text(const Verification& verification) {
  const Tolerance& tolerance = verification.tolerance;
  size_t name_width = 0;
  for (const Outcome& outcome : verification.outcomes) {
    name_width = std::max(name_width, outcome.name.size());
  }
  for (const Outcome& outcome : verification.outcomes) print_line(outcome, name_width);
  for (const std::string& name : verification.not_produced) {
    std::printf("%-*s  not produced\n", static_cast<int>(name_width), name.c_str());
  }
  std::string limit;
  if (tolerance.min_cosine) limit = format("cosine at least %g", *tolerance.min_cosine);
  if (tolerance.judges_error) {
    limit += format("%serror at most %g + %g |expected|", limit.empty() ? "" : ", ", tolerance.atol,
                    tolerance.rtol);
  }
  std::printf("%s checked, %zu failed, %zu not produced; max error %.2e, least cosine %.6f (%s)\n",
              count_text(verification.outcomes.size(), "tensor").c_str(), verification.failed,
              verification.not_produced.size(), verification.max_error, verification.least_cosine,
              limit.c_str());
}

}  // namespace oxbow::tools

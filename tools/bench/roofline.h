#pragma once

// What each step achieved beside what this machine gives: what is left to gain, and where.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "host/machine_limits.h"
#include "host/macs.h"

namespace oxbow::tools {

struct Profile;

struct RooflineStep {
  uint32_t step = 0;
  std::string op, output;
  double seconds = 0.0;
  /// 0: not known of this step.
  double macs = 0.0, bytes = 0.0;
  bool int8 = false;
  /// What the machine needs at least: for the products, or for reading, whichever is longer. Nothing when the step has no
  /// numbers, or another device runs it.
  std::optional<double> least_seconds;
  bool reading_is_longer = false;
};

/// Of one way of running: the slowest first.
struct RooflineRun {
  uint64_t tokens = 0;
  std::vector<RooflineStep> steps;
  /// Of all steps; of those that have a least time, and that.
  double seconds = 0.0, judged_seconds = 0.0, least_seconds = 0.0;
};

struct Roofline {
  MachineLimits limits;
  /// As Report::other_cores, while steps were timed and the limits were tried.
  std::optional<double> other_cores;
  RooflineRun prefill;
  /// No steps: the model only reads.
  RooflineRun decode;
};

/// Tries the machine, for two seconds, and compares. `model` is the one that was profiled.
Roofline roofline(const schema::ModelT& model, const Profile& profile, uint32_t threads);

std::string roofline_text(const Roofline& roofline);
nlohmann::json roofline_json(const Roofline& roofline);

}  // namespace oxbow::tools

#pragma once

// One expected tensor: what the model made of it, stream by stream, and the judgement at the end.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/safetensors.h"
#include "tools/verify/layout.h"

namespace oxbow::tools {

struct Tolerance {
  double atol = 0.0;
  double rtol = 0.0;
  std::optional<double> min_cosine;
  /// False: only the cosine judges.
  bool judges_error = true;
};

/// What a model gave for one stream under one name.
struct Produced {
  uint64_t rows = 0, width = 0;
  std::vector<float> values;
  /// Chosen tokens only: how much more the model likes its choice than the reference's.
  std::vector<float> gaps;
  /// Which values the model has; empty: all.
  std::vector<bool> covered;
  /// Rows of a kept activation: a reference that pads its input may have more of them.
  bool may_be_fewer = false;
};
using ProducedByName = std::map<std::string, Produced>;

struct Outcome {
  std::string name;
  std::vector<uint64_t> shape;
  /// In the layout of the reference, which has several values for each name of a stacked memory.
  std::vector<float> produced;
  /// Of tokens, see Produced.
  std::vector<float> gaps;
  /// Which values of `produced` the model gave; the others are not compared.
  std::vector<bool> covered;
  /// Why it cannot be compared at all.
  std::string failure;
  bool is_ids = false;
  /// The model cannot produce it after all; it is listed as such and not judged.
  bool given_up = false;
  /// How the model was used, for the report.
  std::string remark;

  // Filled by judge().
  double max_error = 0.0;
  uint64_t max_at = 0;
  double cosine = 0.0;
  bool ok = false;
  std::string note;
};

/// Puts the rows of one stream where the reference has them: row r at `rows_at[r]`, or all rows in
/// order when that is null. Of a memory that the reference stacks, `layer` of `layers`.
struct Placement {
  Layout layout;
  uint64_t stream = 0;
  const std::vector<uint64_t>* rows_at = nullptr;
  uint64_t layer = 0;
  /// 0: it is not stacked.
  uint64_t layers = 0;
};
void place(Outcome& outcome, const Produced& produced, const Placement& placement);

/// Compares with the tensor of that name in `io`, or with its alternative X.fp64. `margin`: tokens
/// whose logits are not further apart are equally good choices.
void judge(Outcome& outcome, const Safetensors& io, const Tolerance& tolerance, double margin);

}  // namespace oxbow::tools

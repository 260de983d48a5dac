#pragma once

// A finished .oxb file, taken apart for people: what is in it, where it lies, what it needs. The
// summary table, `oxbow inspect` and the HTML report all come from here, so they cannot disagree.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/lifetimes.h"
#include "host/number_text.h"
#include "runtime/api/oxbow.h"
#include "schema/model_generated.h"

namespace oxbow {

struct WeightError {
  std::string name;
  /// Relative RMS error after rounding.
  double error = 0;
  /// What the float model loses when this weight alone is rounded so, as --budget has estimated it: mean KL, or what the
  /// cosine lacks.
  std::optional<double> loss = {};
};

struct Description {
  schema::ModelT model;
  uint64_t file_bytes = 0;
  uint64_t graph_bytes = 0;
  uint64_t weight_bytes = 0;
  uint64_t hash = 0;
  uint32_t max_segment = 0;
  uint32_t vocabulary = 0;
  /// Of a session with one thread.
  oxb_plan memory = OXB_PLAN_INIT;
  /// Of each tensor; see passes.h.
  std::vector<Lifetime> lives;
  /// The largest, largest first, as the converter recorded them.
  std::vector<WeightError> worst_weights;
};

/// Opens the file with the runtime, which verifies it. Throws InputError when it is refused.
Description describe_file(const std::string& path);

/// Everything, for programs (describe_json.cc).
nlohmann::json to_json(const Description& description);

/// Indented text; names that are not UTF-8 are made so.
std::string json_text(const nlohmann::json& json);

/// Sixteen hexadecimal digits: JSON's numbers are no place for 64 bits.
std::string hash_text(uint64_t hash);

/// "generate", "translate", ...
const char* task_text(schema::Task task);
/// The tensors a run is given, the main one first.
std::vector<uint32_t> entry_inputs(const schema::EntryPointT& entry);
/// What an entry point takes, gives and promises, in a line.
std::string entry_text(const schema::ModelT& model, const schema::EntryPointT& entry);

/// The value of a metadata entry, or an empty text.
std::string find_value(const std::vector<std::unique_ptr<schema::KeyValueT>>& list,
                       const std::string& key);

/// "F32", "I8 x4" (scales per row), "I32".
std::string type_text(const schema::TensorT& tensor);
/// "[tokens, 96]": a symbol's name, or the number of rows.
std::string shape_text(const schema::ModelT& model, const schema::TensorT& tensor);
/// Options of a step in words: "relu, bias, residual".
std::string options_text(const schema::StepT& step);

/// The prefixes of metadata keys that hold the errors of single weights, and what these alone cost.
inline constexpr const char* kWeightErrorKey = "weight_error.";
inline constexpr const char* kWeightLossKey = "weight_loss.";

}  // namespace oxbow

#pragma once

// The whole way from a checkpoint directory to a finished file.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "converter/graph.h"
#include "converter/offload/offload.h"
#include "converter/passes/passes.h"
#include "converter/passes/transform.h"

namespace oxbow::convert {

struct ConvertOptions {
  std::string directory;
  std::string output;
  QuantizeOptions quantize;
  ImportOptions import_options;
  /// As read_tokenizer() takes it, or "none"; empty: what is found in the checkpoint's folder.
  std::string tokenizer;
  /// A text, or a .safetensors file with tokens (tensors called input_ids), to choose by what int8 keeps most, to
  /// measure quality with and to find static scales; empty: a sample, or random tokens without a tokenizer, and no
  /// static scales.
  std::string calibration_file;
  /// The same, to measure quality with; empty: what the choice was made by.
  std::string quality_file;
  /// What is done so that weights of few bits lose less; missing: what loses least.
  std::optional<Transform> transform;
  /// With int4: bits for a weight of a matrix, on average, that are spent where they are measured to save most; 0: int4 has
  /// them all.
  double budget = 0;
  /// A tensor file that completes or replaces tensors.
  std::string extra_tensors;
  /// Which dictionary of a nested checkpoint holds the tensors; see open_tensor_file().
  std::string key;
  /// Keys of config.json, and patterns of tensors' names, that are taken as not there.
  std::vector<std::string> ignored_keys;
  std::vector<std::string> ignored_tensors;
  /// Accelerators that layers are compiled for too.
  OffloadOptions offload;
  bool debug_outputs = false;
  /// Run what was made, to choose by and to tell what it loses.
  bool measure_quality = true;
  /// Told what is being done, when set, and how many bytes of all have been; of 0 where that cannot be said.
  std::function<void(const std::string& what, uint64_t done, uint64_t all)> progress;
  /// Told what was chosen or left out, when set.
  std::function<void(const std::string&)> note;
};

/// What conversion would give, before there are weights: a config.json is enough. `look` is called with a file that has
/// all of the model but the values of its weights, and that is gone afterwards. Returns what the user should be warned of.
std::vector<std::string> estimate(const ConvertOptions& options,
                                  const std::function<void(const std::string& path)>& look);

/// Writes `options.output` or throws and leaves nothing. Returns what the user should be warned of.
std::vector<std::string> convert(const ConvertOptions& options);

}  // namespace oxbow::convert

#pragma once

// Which files of a checkpoint directory hold the tensors. The first of these that is there:
// model.safetensors, the shards of model.safetensors.index.json, pytorch_model.bin, the shards of
// pytorch_model.bin.index.json, and else the only tensor file of any name; where there is none, model.onnx or
// the only ONNX file.

#include <map>
#include <string>
#include <vector>

namespace oxbow::convert {

struct CheckpointFiles {
  std::vector<std::string> paths;
  /// Of shards: the file that says which tensor is in which shard; empty otherwise.
  std::string index_path;
  std::map<std::string, std::string> weight_map;
  /// What was chosen where there was a choice.
  std::vector<std::string> notes;
};

/// Throws InputError when there is nothing to choose, or too much. `chosen`: a file of the directory that is
/// taken whatever else there is; empty: none.
CheckpointFiles find_checkpoint_files(const std::string& directory, const std::string& chosen);

bool has_tensor_files(const std::string& directory);

/// The names, or the first of many.
std::string list_names(const std::vector<std::string>& names);

/// The name without the directory.
std::string base_name(const std::string& path);

}  // namespace oxbow::convert

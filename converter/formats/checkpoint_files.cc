#include "converter/formats/checkpoint_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <span>
#include <string_view>

#include "host/errors.h"
#include "host/folder.h"
#include "host/io_file.h"
#include "host/json_file.h"

namespace oxbow::convert {
namespace {

constexpr std::string_view kTensorEndings[] = {".safetensors", ".bin", ".pt", ".pth", ".ckpt"};
// Looked at where there is none of the others.
constexpr std::string_view kOnnxEnding[] = {".onnx"};
constexpr std::string_view kOtherStarts[] = {"optimizer.", "scheduler.", "scaler.", "rng_state",
                                             "training_args."};
// Names in a message.
constexpr size_t kListed = 8;

bool ends_with_any(std::string_view name, std::span<const std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

/// Regular files with such an ending that are tensor files of a model, by name.
std::set<std::string> list_tensor_files(const std::string& directory,
                                        std::span<const std::string_view> endings) {
  std::set<std::string> out;
  const std::vector<std::string> names = names_in(directory);
  if (errno != 0) throw InputError("cannot read " + directory + ": " + std::strerror(errno));
  for (const std::string& name : names) {
    const bool is_other =
        std::any_of(std::begin(kOtherStarts), std::end(kOtherStarts),
                    [&](std::string_view start) { return name.starts_with(start); });
    if (!is_other && ends_with_any(name, endings) && is_file(directory + "/" + name)) {
      out.insert(name);
    }
  }
  return out;
}

/// Fills in what the index says. Throws InputError.
void read_index(const std::string& directory, CheckpointFiles& out) {
  const nlohmann::json index = read_json(out.index_path);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    throw InputError(out.index_path + ": key weight_map is missing or not an object");
  }
  std::set<std::string> shards;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos) {
      throw InputError(out.index_path + ": tensor " + printable(tensor) +
                       " does not name a file in the same directory");
    }
    out.weight_map.emplace(tensor, name);
    shards.insert(name);
  }
  for (const std::string& shard : shards) out.paths.push_back(directory + "/" + shard);
}

}  // namespace

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string list_names(const std::vector<std::string>& names) {
  std::string text;
  size_t listed = 0;
  for (const std::string& name : names) {
    if (listed++ == kListed)
      return text + " and " + std::to_string(names.size() - kListed) + " more";
    text += (text.empty() ? "" : ", ") + printable(name);
  }
  return text;
}

bool has_tensor_files(const std::string& directory) {
  return !list_tensor_files(directory, kTensorEndings).empty() ||
         !list_tensor_files(directory, kOnnxEnding).empty();
}

CheckpointFiles find_checkpoint_files(const std::string& directory, const std::string& chosen) {
  CheckpointFiles out;
  if (!chosen.empty()) {
    out.paths = {chosen};
    out.notes.push_back("reading " + printable(base_name(chosen)));
    return out;
  }
  bool only_one = false;
  std::set<std::string> tensor_files = list_tensor_files(directory, kTensorEndings);
  std::vector<const char*> usual = {"model.safetensors", "pytorch_model.bin"};
  if (tensor_files.empty()) {
    tensor_files = list_tensor_files(directory, kOnnxEnding);
    usual.push_back("model.onnx");
  }
  for (const char* single : usual) {
    const std::string path = directory + "/" + single, index = path + ".index.json";
    if (file_exists(path)) {
      out.paths = {path};
    } else if (file_exists(index)) {
      out.index_path = index;
      read_index(directory, out);
    } else {
      continue;
    }
    break;
  }
  if (out.paths.empty() && out.index_path.empty()) {
    if (tensor_files.size() > 1) {
      throw InputError(directory + " has several tensor files: " +
                       list_names({tensor_files.begin(), tensor_files.end()}) +
                       "; keep one of them, or call it model.safetensors or pytorch_model.bin");
    }
    if (tensor_files.empty()) {
      throw InputError(
          directory +
          " has no tensor file; expected model.safetensors, pytorch_model.bin, the "
          "index.json of one of them, or one file *.safetensors, *.bin, *.pt, *.pth, *.ckpt "
          "or *.onnx");
    }
    out.paths = {directory + "/" + *tensor_files.begin()};
    only_one = true;
  }

  // What was left out is told with everything else that is not read.
  if (only_one || tensor_files.size() > out.paths.size()) {
    out.notes.push_back("reading " + (out.index_path.empty()
                                          ? printable(base_name(out.paths[0]))
                                          : std::to_string(out.paths.size()) + " shards"));
  }
  return out;
}

}  // namespace oxbow::convert

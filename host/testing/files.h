#pragma once

// Files for the converter's tests: a directory that goes away, tensor files made by hand, and checkpoints
// with something changed.

#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "converter/safetensors.h"

namespace oxbow::convert::testing {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "oxbow-conv-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  size_t file_count() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      count += entry.exists() ? 1 : 0;
    }
    return count;
  }

 private:
  std::filesystem::path path_;
};

inline void write_text(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

/// A tensor file of any header, true or not.
inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  const uint64_t bytes = header.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &bytes, 8);
  return out + header + data;
}

struct FloatTensor {
  std::vector<uint64_t> shape;
  std::vector<float> values;
};
using FloatTensors = std::map<std::string, FloatTensor>;

inline std::string safetensors_bytes(const FloatTensors& tensors) {
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const size_t begin = data.size(), bytes = tensor.values.size() * sizeof(float);
    data.append(reinterpret_cast<const char*>(tensor.values.data()), bytes);
    header[name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, begin + bytes}}};
  }
  return safetensors_bytes(header.dump(), data);
}

/// A checkpoint in memory, to be changed and written.
struct EditableCheckpoint {
  nlohmann::json config;
  FloatTensors tensors;

  static EditableCheckpoint read(const std::string& directory) {
    EditableCheckpoint out;
    std::ifstream(directory + "/config.json") >> out.config;
    const Safetensors file(directory + "/model.safetensors");
    for (const auto& [name, tensor] : file.tensors()) {
      out.tensors[name] = {tensor.shape, to_floats(tensor)};
    }
    return out;
  }

  void write(const std::string& directory) const {
    write_text(directory + "/config.json", config.dump());
    write_text(directory + "/model.safetensors", safetensors_bytes(tensors));
  }
};

}  // namespace oxbow::convert::testing

#pragma once

// Files for tests: tensor files made by hand, and checkpoints with something changed.

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/safetensors.h"
#include "host/testing/temporary_directory.h"

namespace oxbow::testing {

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

}  // namespace oxbow::testing

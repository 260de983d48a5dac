#pragma once

// A complete Compressive Transformer checkpoint, small enough to damage in every possible place.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace oxbow::testing {

struct TinyTensor {
  std::vector<uint32_t> shape;
  std::vector<float> values;
};

/// Change it, then write it: each hostile test is one edit of a good checkpoint.
struct TinyCheckpoint {
  nlohmann::json config;
  std::map<std::string, TinyTensor> tensors;

  /// One layer, width 8, two heads, five tokens, memories of 4 and 3 rows, rate 2; values from a
  /// fixed seed.
  TinyCheckpoint();

  /// Writes config.json and model.safetensors into `directory`, which is made.
  void write(const std::filesystem::path& directory) const;
};

/// A tiny checkpoint with another vocabulary; its new rows repeat the old ones, a little changed.
TinyCheckpoint with_vocabulary(uint32_t tokens);

/// The converted file of a tiny checkpoint, aligned as oxb_model_open_memory wants it.
struct TinyModel {
  explicit TinyModel(const std::string& weights = "int8",
                     const std::string& activations = "dynamic",
                     const TinyCheckpoint& checkpoint = TinyCheckpoint());
  std::span<std::byte> bytes() { return {data.get(), size}; }

  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte[], Free> data;
  size_t size = 0;
};

/// "f32", "int8" (dynamic) or "static" (int8 with static scales).
inline TinyModel tiny_model(const std::string& kind,
                            const TinyCheckpoint& checkpoint = TinyCheckpoint()) {
  return TinyModel(kind == "f32" ? "f32" : "int8", kind == "int8" ? "dynamic" : kind, checkpoint);
}

}  // namespace oxbow::testing

#pragma once

// Matrices that others have quantised: GPTQ and AWQ checkpoints, and those of compressed-tensors. In the place of a matrix
// X.weight they have integers, scales and zero points of groups of its columns, under names that begin with X. Read as
// floats they are the numbers that the original computes with; --weights int4 finds their codes again
// (converter/passes/groups.cc).

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/tensor_file.h"

namespace oxbow::convert {

class PackedTensors {
 public:
  /// Null when nobody has the tensor.
  using Find = std::function<const StoredTensor*(const std::string& name)>;

  /// True: `quantization_config` says that weights are stored in one of these ways.
  static bool knows(const nlohmann::json& settings);
  /// `names`: of all tensors. `where` is for messages: the place of the settings. Throws InputError for what of a way is not
  /// known.
  PackedTensors(const std::string& where, const nlohmann::json& settings,
                const std::vector<std::string>& names, Find find);

  bool has(const std::string& name) const { return matrices_.contains(name); }
  /// Of a matrix it has: [rows, width]. Throws InputError.
  const std::vector<uint64_t>& shape(const std::string& name) const;
  std::vector<float> floats(const std::string& name) const;
  /// The tensors it is stored in.
  const std::vector<std::string>& parts(const std::string& name) const;
  /// What the user should know of how the matrices are stored.
  std::string note() const;

 private:
  enum class Way : uint8_t { kGptq, kAwq, kPacked, kInt };
  struct Matrix {
    std::vector<uint64_t> shape;
    std::vector<std::string> parts;
  };
  /// Integers in 32 bits, several of them in each.
  struct Codes;

  void read_compressed(const nlohmann::json& settings);
  void add(const std::string& stem, Find find);
  uint32_t number(const nlohmann::json& settings, const char* key) const;
  [[noreturn]] void refuse(const std::string& what) const;
  const StoredTensor& part(const std::string& name, bool is_float) const;
  const StoredTensor& packed_words(const std::string& name) const;
  const StoredTensor* optional(const std::string& name) const { return find_(name); }
  std::vector<float> input_first(const std::string& stem, uint64_t rows, uint64_t width) const;
  std::vector<float> output_first(const std::string& stem, uint64_t rows, uint64_t width) const;

  std::string where_;
  Find find_;
  Way way_ = Way::kGptq;
  uint32_t bits_ = 4;
  bool symmetric_ = true;
  /// What is added to a zero point that GPTQ's first version has stored.
  int32_t zero_offset_ = 0;
  int64_t group_ = -1;
  std::map<std::string, Matrix> matrices_;
};

}  // namespace oxbow::convert

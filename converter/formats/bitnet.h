#pragma once

// Matrices of BitNet b1.58 as Hugging Face's library stores them (quantization_config with quant_method bitnet): codes -1, 0
// and 1, and one scale for all of a matrix.
//
//   offline   U8 [rows / 4, width]: bits 2 i and 2 i + 1 of byte (r, c) are the code of row i * rows / 4 + r, plus 1; beside
//             it weight_scale [1], which divides, or multiplies where linear_class is autobitlinear
//   online    float numbers, which count as the codes nearest to them in steps of their mean magnitude

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "host/tensor_file.h"

namespace oxbow::convert {

struct BitnetFormat {
  bool online = false;
  bool scale_multiplies = false;
  /// Modules that stay float.
  std::vector<std::string> float_modules = {"lm_head"};

  /// Whether a tensor of this name is such a matrix.
  bool is_matrix(const std::string& name) const;
};

/// The codes of a packed matrix with `rows` rows of `width`. Throws InputError, which starts with `where`, when it has
/// another shape or holds something else.
std::vector<float> unpack_bitnet(const std::string& where, const StoredTensor& tensor,
                                 uint64_t rows, uint64_t width);

/// The step of BitNet b1.58: the mean magnitude, at least 1e-5.
float ternary_step(std::span<const float> values);
/// -1, 0 or 1: the nearest, ties to 0.
int ternary_code(float value, float step);
/// Each number becomes the nearest of -a, 0 and a, with a their mean magnitude.
void round_like_bitnet(std::vector<float>& values);

}  // namespace oxbow::convert

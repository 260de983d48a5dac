#pragma once

// How weights can be stored: one row for each choice of --weights, one for each type that floats are packed into. A new
// format is a row here, a type in runtime/base/tensor.h and a storage in ops/common/signature.h, and what the ops that
// take it compute.

#include <span>
#include <string_view>
#include <vector>

#include "converter/passes/fit.h"
#include "ops/common/signature.h"
#include "schema/model_generated.h"

namespace oxbow::convert {

struct WeightFormat {
  /// As --weights and the file's metadata call it.
  const char* name;
  /// How a matrix or table is stored: the first of these that its op takes; none: as float.
  std::vector<TypeSet> storages;
  /// What it may cost on a text before the user is told: mean KL divergence, and how often the first choice is the same.
  double most_kl = 0.01;
  double least_same_top = 0.95;

  /// Rows stay float.
  bool is_float() const;
  /// Matrices have groups of 32 columns.
  bool in_groups() const;
};

inline constexpr const char* kDefaultWeights = "int8";

std::span<const WeightFormat> weight_formats();
/// Throws std::logic_error when there is none of this name.
const WeightFormat& weight_format(std::string_view name);
/// How `format` stores a weight that may be any of `types`; null: as float.
const Storage* choose_storage(const WeightFormat& format, TypeSet types);
/// Sets type, layout and number of scales.
void store_as(const Storage& storage, schema::TensorT& tensor);

/// Whether such weights have a scale for each 32 columns.
bool is_in_groups(schema::DataType type);

/// Whether rows that meet such a weight are int8, whatever was asked for.
bool needs_i8_rows(schema::DataType type);

/// Sums of squares: of what was lost, and of the values.
struct PackError {
  double difference = 0, energy = 0;

  void add(double rounded, double value) {
    difference += (rounded - value) * (rounded - value);
    energy += value * value;
  }
};

/// Whether some rows of such a weight can be packed without the others.
bool packs_in_parts(schema::DataType type);

/// Whether such a weight is rounded by a Fit if it is a matrix and there is one.
bool can_be_fitted(const schema::TensorT& tensor);

/// Writes a weight with its scales, as the tensor says. Throws InputError when the type cannot hold a value.
/// `fit`, if there is one, rounds what may be fitted.
PackError pack_weight(const schema::TensorT& tensor, std::span<const float> values, const Fit* fit,
                      std::byte* out);

}  // namespace oxbow::convert

#pragma once

// What every bind asks about its tensors. A file may hold any step, so each op must know, before it
// keeps a pointer, that the tensors are what its loops assume. Messages say which tensor, what it
// is and what was expected.

#include <cstddef>

#include "runtime/op.h"

namespace oxbow {

/// "F32", ...
const char* type_name(DataType type);

/// A tensor in words, e.g. "F32 [at most 16, 64]"; lives as long as the full expression it is used
/// in.
struct TensorText {
  char text[112];
};
TensorText describe(const Tensor& tensor);

Status check_counts(BindContext& context, size_t inputs, size_t outputs);

/// Row after row and in no ring: row r is where stride() says.
Status check_plain(BindContext& context, const Tensor& tensor);

/// Plain, and of this type.
Status check_type(BindContext& context, const Tensor& tensor, DataType type);
inline Status check_f32(BindContext& context, const Tensor& tensor) {
  return check_type(context, tensor, DataType::kF32);
}

/// Plain, and F32 or I8: what rows of activations may be.
Status check_f32_or_i8(BindContext& context, const Tensor& tensor);

Status check_width(BindContext& context, const Tensor& tensor, size_t width);

/// Both have the same rows in every run, not only the same maximum.
Status check_same_rows(BindContext& context, const Tensor& a, const Tensor& b);

/// F32 [1, width], always one row: a bias, a norm's weight.
Status check_vector(BindContext& context, const Tensor& tensor, size_t width);

/// The step has no options of the kind its op needs.
Status fail_options(BindContext& context, const char* expected);

}  // namespace oxbow

#pragma once

// What a bind asks about its tensors besides their signature (signature.h). A file may hold any step, so each op must
// know, before it keeps a pointer, that the tensors are what its loops assume. Messages say which tensor, what it is and
// what was expected.

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

/// Of this type, row after row and in no ring.
Status check_type(BindContext& context, const Tensor& tensor, DataType type);

Status check_width(BindContext& context, const Tensor& tensor, size_t width);

/// Both have the same rows in every run, not only the same maximum.
Status check_same_rows(BindContext& context, const Tensor& a, const Tensor& b);

/// As many rows as its symbol may tell.
Status check_room(BindContext& context, const Tensor& tensor);

/// State input `state` is output `output` as well: it is written where it is read, and nothing else lies there. Tensors are
/// known by their index in the file: pointers are null while bytes are counted. The step has lists of both.
Status check_in_place(BindContext& context, size_t state, size_t output);

/// The step has no options of the kind its op needs.
Status fail_options(BindContext& context, const char* expected);

}  // namespace oxbow

#pragma once

// What attention's bind asks about tensors.

#include <cstdint>

#include "runtime/op.h"

namespace oxbow {

struct IndexList;
struct TermBinding;

/// A row-major tensor of this type and width; `scale_groups` counts for I8 only.
Status check_matrix(BindContext& context, const Tensor& tensor, const char* role, DataType type,
                    uint64_t width, uint64_t scale_groups);
/// As many rows in every run as `like`, and room for them.
Status check_run_rows(BindContext& context, const Tensor& like, const Tensor& tensor,
                      const char* role);
Status check_fixed_rows(BindContext& context, const Tensor& tensor, const char* role,
                        uint32_t rows);
/// F32 with exactly these rows: what terms are made of.
Status check_weight(BindContext& context, const Tensor& tensor, const char* role, uint32_t rows,
                    uint64_t width);
/// A number for each row of the last source, which is not a ring.
Status check_row_numbers(const TermBinding& binding, const Tensor& tensor, const char* role);
/// The only input of a term: indices.
Status bind_index_list(const TermBinding& binding, const char* role, IndexList* list);

}  // namespace oxbow

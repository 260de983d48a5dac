#pragma once

// Locality-sensitive hashing by random rotations (Andoni et al. 2015): rows that point in nearly the same direction
// likely get the same bucket. Of a head's part x of a row, and the columns r of its rotations that belong to a round and
// a factor,
//
//   p_i = ((0 + x_0 R[0][i]) + x_1 R[1][i]) + ...     bucket = argmax [p_0, p_1, ..., -p_0, -p_1, ...]
//
// with the first of equals; several factors are digits of one bucket, the first the lowest. NaN is never the greatest.

#include <cstddef>
#include <cstdint>

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

inline constexpr size_t kMaxBucketFactors = 8;
/// Rows that share what is read of the rotations.
inline constexpr size_t kHashedRows = 4;

extern const OpSignature kHashBucketsSignature;
Status bind_hash_buckets(BindContext& context, RunFunction* run);

}  // namespace oxbow

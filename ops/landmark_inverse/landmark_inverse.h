#pragma once

// The middle of Nystrom attention (Xiong et al. 2021): with queries and keys of L landmarks, and values x that the
// landmarks gathered, Z x for each head, where Z is an iterative inverse of A = softmax(scale * q k^T):
//
//   Z = A^T / divisor, then several times Z <- Z (13 I - A Z (15 I - A Z (7 I - A Z))) / 4
//
// The divisor is one for all heads, the largest sum of a column of any A. What has not converged after these steps
// depends on it. The original takes it over all texts of a batch; a caller who must repeat its numbers hands in the
// batch's.

#include <cstddef>

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

/// q, k, x and y belong to one head; rows are `stride` and `value_stride` floats apart.
struct LandmarkHead {
  size_t landmarks = 0, keys = 0, values = 0;
  size_t stride = 0, value_stride = 0;
  float scale = 1;
  size_t iterations = 0;
  const float* q = nullptr;
  const float* k = nullptr;
  const float* x = nullptr;
  float* y = nullptr;
};

/// a = softmax(scale * q k^T), [landmarks, landmarks]; returns its largest sum of a column.
float landmark_scores_ref(const LandmarkHead& head, float* a);

/// y = Z x. `room` has landmark_room_floats.
void landmark_inverse_ref(const LandmarkHead& head, const float* a, float divisor, float* room);

constexpr size_t landmark_room_floats(size_t landmarks) { return 4 * landmarks * landmarks; }

extern const OpSignature kLandmarkInverseSignature;
Status bind_landmark_inverse(BindContext& context, RunFunction* run);

}  // namespace oxbow

#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/math.glsl"

// The logarithm of a softmax of one part of a row, head or cluster: a group of threads for each row, in the CPU's order of
// sums. Values: rows.

const uint threads = 64u, lane_count = 8u, staged_columns = 512u;
layout(local_size_x = 64) in;
// Columns of x. Of them the first `kept` go to y, from column `first` of its rows on; the others, in the head the clusters'
// own logarithms, to `bases`.
layout(constant_id = 0) const uint width = 1;
layout(constant_id = 1) const uint kept = 1;
layout(constant_id = 2) const uint y_width = 1;
layout(constant_id = 3) const uint first = 0;
// Columns of `bases`, and which of them is added to all of x; beyond the last: none.
layout(constant_id = 4) const uint base_count = 0;
layout(constant_id = 5) const uint base = 0;
layout(std430, binding = 1) readonly buffer X { float x[]; };
layout(std430, binding = 2) writeonly buffer Y { float y[]; };
layout(std430, binding = 3) buffer Bases { float bases[]; };

shared float staged[staged_columns];
shared float parts[threads];

float row_max(uint row) {
  const uint thread = gl_LocalInvocationID.x;
  float most = uintBitsToFloat(0xff800000u);
  for (uint i = thread; i < width; i += threads) {
    const float value = x[word_at(1u, row * width + i)];
    if (!is_nan(value)) most = value > most ? value : most;
  }
  parts[thread] = most;
  barrier();
  for (uint i = 0u; i < threads; ++i) most = parts[i] > most ? parts[i] : most;
  barrier();
  return most;
}

// As sum_f32() of runtime/base/math.h: eight threads have a lane each.
float sum_of_exponentials(uint row, float most) {
  const uint thread = gl_LocalInvocationID.x;
  precise float sum = 0.0;
  for (uint begin = 0u; begin < width; begin += staged_columns) {
    const uint count = min(staged_columns, width - begin);
    for (uint i = thread; i < count; i += threads) {
      precise float difference = x[word_at(1u, row * width + begin + i)] - most;
      staged[i] = exp_f32(difference);
    }
    barrier();
    if (thread < lane_count) {
      for (uint i = thread; i < count; i += lane_count) sum = sum + staged[i];
    }
    barrier();
  }
  if (thread < lane_count) parts[thread] = sum;
  barrier();
  return combine_sums(
      float[8](parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6], parts[7]));
}

void main() {
  const uint row = group_index();
  if (row >= dispatch.values[0]) return;
  const float most = row_max(row), log_sum = log_f32(sum_of_exponentials(row, most));
  const float added = base < base_count ? bases[word_at(3u, row * base_count + base)] : 0.0;
  for (uint i = gl_LocalInvocationID.x; i < width; i += threads) {
    precise float value = ((x[word_at(1u, row * width + i)] - most) - log_sum) + added;
    if (i < kept) {
      y[word_at(2u, row * y_width + first + i)] = value;
    } else {
      bases[word_at(3u, row * base_count + i - kept)] = value;
    }
  }
}

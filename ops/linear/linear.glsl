// What the shaders of linear share: tensors, constants, and what happens to a dot product once it is there.
//
// There are two shaders for each pair of types: *_row, for few rows, reads each weight once in wide words and folds the
// parts of a sum that threads hold; *_tile, for many rows, works on tiles in shared memory. Both add in the CPU's order.
// 64 threads a group and a few KiB of shared memory, and no assumption about subgroups: every device has that.

#include "ops/common/vulkan/math.glsl"
#include "ops/activate/activate.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint depth = 1;
layout(constant_id = 1) const uint channels = 1;
layout(constant_id = 2) const bool has_bias = false;
layout(constant_id = 3) const bool has_residual = false;
layout(constant_id = 4) const uint activation = 0;
layout(constant_id = 5) const float limit = 0;
// Words from one row of x to the next; where the scales of x and of the weight begin.
layout(constant_id = 6) const uint x_stride = 1;
layout(constant_id = 7) const uint x_scales = 0;
layout(constant_id = 8) const uint weight_scales = 0;

layout(std430, binding = 1) readonly buffer X { float x[]; };
layout(std430, binding = 1) readonly buffer XFours { vec4 x_fours[]; };
layout(std430, binding = 1) readonly buffer XWords { uint x_words[]; };
layout(std430, binding = 2) readonly buffer Weight { float weight[]; };
layout(std430, binding = 2) readonly buffer WeightFours { vec4 weight_fours[]; };
layout(std430, binding = 2) readonly buffer WeightWords { uint weight_words[]; };
layout(std430, binding = 2) readonly buffer WeightWideWords { uvec4 weight_wide_words[]; };
layout(std430, binding = 3) writeonly buffer Y { float y[]; };
layout(std430, binding = 4) readonly buffer Bias { float bias[]; };
layout(std430, binding = 5) readonly buffer Residual { float residual[]; };

const uint thread_count = 64u;

// Of columns, four each.
uint group_count() { return (depth + 3u) / 4u; }

// Where the codes of a channel are, in the file's blocks of 8 channels by 4 columns.
uint weight_word_index(uint channel, uint group) {
  return ((channel / 8u) * group_count() + group) * 8u + channel % 8u;
}

void finish(uint row, uint channel, float dot) {
  precise float sum = dot + (has_bias ? bias[word_at(4u, channel)] : 0.0);
  sum = activate(activation, limit, sum);
  const uint at = row * channels + channel;
  if (has_residual) sum = sum + residual[word_at(5u, at)];
  y[word_at(3u, at)] = sum;
}

// What the shaders of linear share: one thread for each channel of a row, in the CPU's order of additions.
// The includer defines `float dot_of(uint row, uint channel)`: x W^T with the scales.

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint depth = 1;
layout(constant_id = 1) const uint channels = 1;
layout(constant_id = 2) const bool has_bias = false;
layout(constant_id = 3) const bool has_residual = false;
// 0: none, 1: relu.
layout(constant_id = 4) const uint activation = 0;
// Words from one row of x to the next; where the scales of x and of the weight begin.
layout(constant_id = 5) const uint x_stride = 1;
layout(constant_id = 6) const uint x_scales = 0;
layout(constant_id = 7) const uint weight_scales = 0;

layout(std430, binding = 1) readonly buffer X { float x[]; };
layout(std430, binding = 1) readonly buffer XWords { uint x_words[]; };
layout(std430, binding = 2) readonly buffer Weight { float weight[]; };
layout(std430, binding = 2) readonly buffer WeightWords { uint weight_words[]; };
layout(std430, binding = 3) writeonly buffer Y { float y[]; };
layout(std430, binding = 4) readonly buffer Bias { float bias[]; };
layout(std430, binding = 5) readonly buffer Residual { float residual[]; };

// The four codes at columns 4 * group of a channel, in the file's blocks of 8 channels by 4 columns.
uint weight_word(uint channel, uint group) {
  const uint groups = (depth + 3u) / 4u;
  return weight_words[((channel / 8u) * groups + group) * 8u + channel % 8u];
}

float dot_of(uint row, uint channel);

void main() {
  const uint channel_groups = (channels + 63u) / 64u;
  const uint row = group_index() / channel_groups;
  const uint channel = group_index() % channel_groups * 64u + gl_LocalInvocationID.x;
  if (row >= slot.values[0] || channel >= channels) return;
  precise float sum = dot_of(row, channel) + (has_bias ? bias[channel] : 0.0);
  if (activation == 1u) sum = sum > 0.0 ? sum : 0.0;
  const uint at = row * channels + channel;
  if (has_residual) sum = sum + residual[at];
  y[at] = sum;
}

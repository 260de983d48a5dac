// One row by 32 channels: two threads for each channel, one with the even groups of columns and one with the odd. Values:
// rows.

shared vec4 parts[thread_count];

void main() {
  const uint channel_groups = (channels + 31u) / 32u;
  const uint row = group_index() / channel_groups;
  if (row >= dispatch.values[0]) return;
  const uint first = group_index() % channel_groups * 32u;
  // 8 even threads, 8 odd ones, for 8 channels, and so on: they read a block of int8 weights side by side.
  const uint thread = gl_LocalInvocationID.x;
  const uint channel = first + thread / 16u * 8u + thread % 8u;
  precise vec4 sums = vec4(0);
  if (channel < channels) {
    for (uint group = thread / 8u % 2u; group < group_count(); group += 2u) {
      precise vec4 products = x_at(row, group) * weight_at(channel, group);
      sums = sums + products;
    }
  }
  parts[thread] = sums;
  barrier();
  if (thread / 8u % 2u == 0u && channel < channels) {
    finish(row, channel, scaled(channel, fold(parts[thread], parts[thread + 8u])));
  }
}

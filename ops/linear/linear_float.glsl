// Float rows, in the 8 lanes of dot_f32() of runtime/base/math.h: columns k, k + 8, ... are a lane, so of the groups of
// four columns even ones make lanes 0 to 3 and odd ones lanes 4 to 7. Zeros behind the last column change no bit.
// The includer defines what a weight is:

// Columns 4 * group to 4 * group + 3 of a channel, zeros behind the last.
vec4 weight_at(uint channel, uint group);
// What remains to be done to a sum of products.
float scaled(uint channel, float sum);

vec4 x_at(uint row, uint group) {
  if (depth % 4u == 0u) return x_fours[four_at(1u, row * (depth / 4u) + group)];
  vec4 four = vec4(0);
  for (uint j = 0u; j < 4u; ++j) {
    if (group * 4u + j < depth) four[j] = x[word_at(1u, row * x_stride + group * 4u + j)];
  }
  return four;
}

// As combine_sums().
float fold(vec4 low, vec4 high) {
  precise vec4 sums = low + high;
  precise float sum = (sums.x + sums.z) + (sums.y + sums.w);
  return sum;
}

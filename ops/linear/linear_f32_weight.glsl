// Float weights.

vec4 weight_at(uint channel, uint group) {
  if (depth % 4u == 0u) return weight_fours[four_at(2u, channel * (depth / 4u) + group)];
  vec4 four = vec4(0);
  for (uint j = 0u; j < 4u; ++j) {
    if (group * 4u + j < depth) four[j] = weight[word_at(2u, channel * depth + group * 4u + j)];
  }
  return four;
}

float scaled(uint channel, float sum) { return sum; }

// int8 weights for float rows.

vec4 weight_at(uint channel, uint group) { return codes_of(weight_words[word_at(2u, weight_word_index(channel, group))]); }

float scaled(uint channel, float sum) {
  precise float result = sum * weight[word_at(2u, weight_scales + channel)];
  return result;
}

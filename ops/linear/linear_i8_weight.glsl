// int8 weights for float rows.

vec4 weight_at(uint channel, uint group) { return codes_of(weight_words[weight_word_index(channel, group)]); }

float scaled(uint channel, float sum) {
  precise float result = sum * weight[weight_scales + channel];
  return result;
}

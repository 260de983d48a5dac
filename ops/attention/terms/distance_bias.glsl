float DistanceBiasTerm(uint stage, float score, Key key, uint item, uint row) {
  if (stage != OXB_AFTER_SCALE) return score;
  precise float sum = score + bias[word_at(10u, row * heads + head_of(item))];
  return sum;
}

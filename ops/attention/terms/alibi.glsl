float AlibiTerm(uint stage, float score, Key key, uint item, uint row) {
  if (stage != OXB_AFTER_SCALE) return score;
  const int d = int(min(position_of_query(row_of(item)), key.reach)) - int(key.position);
  precise float term = slopes[word_at(12u, head_of(item))] * float(d);
  precise float sum = score - term;
  return sum;
}

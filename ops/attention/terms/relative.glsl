// By the type of the keys: the query's product with a row of the table.
float table_product(uint item, uint row);

float RelativeTerm(uint stage, float score, Key key, uint item, uint row) {
  if (stage != OXB_BEFORE_SCALE) return score;
  precise float sum = score + table_product(item, row);
  sum = sum + bias[word_at(10u, row * heads + head_of(item))];
  return sum;
}

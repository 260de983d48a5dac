void Block1DPattern(uint query, uint positions) {
  const uint block = query / length * length;
  add_range(0u, block - min(before, block), min(query + 1u, positions));
}

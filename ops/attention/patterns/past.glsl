void PastPattern(uint query, uint positions) {
  const uint kept = min(first_positions, positions);
  add_range(0u, 0u, kept);
  add_range(1u, max(query - min(before, query), kept), query);
}

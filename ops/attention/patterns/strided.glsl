void StridedPattern(uint query, uint positions) {
  const uint window = query - min(before, query), start = query % length;
  if (start < window) {
    span_first[0] = start;
    span_count[0] = (window - start + length - 1u) / length;
    span_step[0] = length;
  }
  add_range(1u, window, min(query + 1u, positions));
}

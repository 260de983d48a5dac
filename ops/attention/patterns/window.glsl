void WindowPattern(uint query, uint positions) {
  const uint dilation = length;
  const uint end = causal ? min(query + 1u, positions) : positions;
  const uint kept = min(first_positions, end);
  add_range(0u, 0u, kept);
  uint key = query - min(before, query / dilation) * dilation;
  if (key < kept) key += (kept - key + dilation - 1u) / dilation * dilation;
  uint newest = query;
  if (query + 1u < end) newest += min(after, (end - 1u - query) / dilation) * dilation;
  if (newest >= end) {
    if (newest < dilation) return;
    newest -= dilation;
  }
  if (key > newest) return;
  span_first[1] = key;
  span_count[1] = (newest - key) / dilation + 1u;
  span_step[1] = dilation;
}

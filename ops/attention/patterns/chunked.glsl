void ChunkedPattern(uint query, uint positions) {
  const uint end = causal ? min(query + 1u, positions) : positions;
  const uint chunk = query / length;
  const uint chunks = max((positions + length - 1u) / length, chunk + 1u);
  if (wrap && before + after + 1u >= chunks) {
    add_range(0u, 0u, end);
  } else if (wrap && chunk < before) {
    add_range(0u, 0u, min((chunk + after + 1u) * length, end));
    add_range(1u, (chunks - (before - chunk)) * length, min(chunks * length, end));
  } else if (wrap && chunk + after >= chunks) {
    add_range(0u, 0u, min((chunk + after + 1u - chunks) * length, end));
    add_range(1u, (chunk - before) * length, min(chunks * length, end));
  } else {
    add_range(0u, (chunk - min(before, chunk)) * length, min(min(chunk + after + 1u, chunks) * length, end));
  }
}

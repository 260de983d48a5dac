void PrefixPattern(uint query, uint positions) { add_range(0u, 0u, min(max(query + 1u, length), positions)); }

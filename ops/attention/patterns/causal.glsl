void CausalPattern(uint query, uint positions) { add_range(0u, 0u, min(query + 1u, positions)); }

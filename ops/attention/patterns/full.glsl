void FullPattern(uint query, uint positions) { add_range(0u, 0u, positions); }

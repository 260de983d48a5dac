// Its products are those with keys: see query_value().
float PinnedQueryTerm(uint stage, float score, Key key, uint item, uint row) { return score; }

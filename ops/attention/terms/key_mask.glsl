// Its keys are passed over before there are scores: see keys_seen().
float KeyMaskTerm(uint stage, float score, Key key, uint item, uint row) { return score; }

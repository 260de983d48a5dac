// beam.*: the likeliest texts that a beam search found (beam.sequences, one after another for each
// stream) and their scores (beam.scores).

#include "tools/verify/verifier.h"

namespace oxbow::tools {

void Verifier::run_beam() { give_up(parts_.at("beam.")); }

}  // namespace oxbow::tools

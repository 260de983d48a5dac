// A segment that grows token by token behind the stream, as generation does with a memory of segments:
//   decode.INPUT    a prompt, given to the entry point that continues a segment
//   decode.tokens   what the model chose after it, each fed in turn; the last that is fed ends the segment
//   decode.OUTPUT   of every token fed, the prompt's first; decode.NAME the states at the end

#include "tools/verify/verifier.h"

namespace oxbow::tools {

void Verifier::decode(uint64_t stream) {
  const Part& part = parts_.at("decode.");
  const size_t main = runner_.main_entry();
  const std::vector<InputRows> prompt = inputs_of(part, 0, stream);
  if (main == 0 || prompt.empty() || !part.expected.contains("tokens")) return give_up(part);
  const Layout layout = layout_of(part);
  ProducedByName produced;
  runner_.run(0, prompt, SIZE_MAX, wanted(part), prompt[0].name, produced);
  const std::string output = runner_.entries()[main].info.output;
  const std::vector<int64_t> tokens = integer_rows("decode.tokens", layout, stream);
  Produced chosen;
  for (size_t i = 0; i < tokens.size(); ++i) {
    choose(produced.at(output), tokens[i], {}, chosen);
    if (i + 1 == tokens.size()) break;
    const size_t entry = i + 2 == tokens.size() ? main : 0;
    InputRows input;
    input.name = runner_.entries()[entry].inputs[0].name;
    input.rows = 1;
    input.integers = {static_cast<int32_t>(tokens[i])};
    runner_.run(entry, {input}, SIZE_MAX, wanted(part), input.name, produced);
  }
  produced["tokens"] = chosen;
  runner_.read_states(wanted(part), produced);
  place_all(part, layout, stream, produced);
}

}  // namespace oxbow::tools

// Translates by following several texts at a time; prints the best, or the best few with their scores.

#include <algorithm>

#include "tools/run/run.h"

namespace oxbow::tools {
namespace {

/// A whole text: ids, or words up to the first of --stop.
std::string shown(const Request& request, std::span<const int32_t> tokens) {
  std::string out;
  if (request.as_ids) {
    for (const int32_t id : tokens) out += (out.empty() ? "" : " ") + std::to_string(id);
    return out;
  }
  oxb::Decoder decoder = open_decoder(request.model);
  out = decode(decoder, tokens);
  for (const std::string& stop : request.args.texts("stop"))
    out.resize(std::min(out.find(stop), out.size()));
  return out;
}

}  // namespace

oxb::BeamOptions beam_options(const Args& args, const schema::GenerationT& advised) {
  oxb::BeamOptions options;
  const uint32_t beams = std::clamp(advised.beams.value_or(1), 1u, 64u);
  options.beams = static_cast<uint32_t>(args.integer("beams", beams, 1, 64));
  options.n_best = static_cast<uint32_t>(args.integer("n-best", 1, 1, 64));
  if (options.n_best > options.beams) {
    throw UsageError(
        format("--n-best %u: there are only --beams %u", options.n_best, options.beams));
  }
  options.length_penalty =
      args.number("length-penalty", advised.length_penalty.value_or(1.0f), -10.0, 10.0);
  return options;
}

int run_beams(const Request& request, oxb::BeamOptions options, oxb::Session& session,
              uint64_t most, Speed speed) {
  // With the start token.
  options.max_tokens = static_cast<uint32_t>(std::min<uint64_t>(most + 1, UINT32_MAX));
  if (request.info.capacity != 0 && options.max_tokens > request.info.capacity) {
    options.max_tokens = 0;  // As many as the stream has.
  }
  oxb::Expected<oxb::BeamSearch> search = oxb::BeamSearch::create(session, options);
  check(search.status(), request.path);
  const Stopwatch time;
  check(search->run(), request.path);
  speed.decode_seconds = time.seconds();
  for (size_t i = 0; i < search->count(); ++i) {
    const oxb::Expected<oxb::BeamSearch::Text> text = search->result(i);
    check(text.status(), request.path);
    if (options.n_best > 1) request.out.write(format("%.6f  ", static_cast<double>(text->score)));
    // The first token is the start, and an end is told apart from the text.
    std::span<const int32_t> tokens = text->tokens.subspan(1);
    const auto end = std::find_if(tokens.begin(), tokens.end(),
                                  [&](int32_t id) { return request.model.ends_text(id); });
    tokens = tokens.first(static_cast<size_t>(end - tokens.begin()));
    if (i == 0) speed.generated = tokens.size();
    request.out.write(shown(request, tokens) + "\n");
  }
  print_speed(speed);
  return stop_wanted() ? kExitInterrupted : kExitGood;
}

}  // namespace oxbow::tools

// Encodes a text and generates its translation, or a recording and generates its text.

#include <algorithm>
#include <limits>

#include "host/describe.h"
#include "tools/run/run.h"

namespace oxbow::tools {
namespace {

/// The text to translate. Ids are taken as they are; a text ends with the model's end token, which
/// the tokenizer adds if it knows that.
std::vector<int32_t> source_text(const Request& request) {
  const oxb::Expected<oxb_entry_info> encoder = request.model.entry_info(0);
  check(encoder.status(), request.path);
  std::vector<int32_t> ids = read_prompt(request, encoder->max_rows);
  const bool ends =
      request.as_ids || request.info.end_token < 0 || !template_of(request.model).after.empty();
  if (!ends && ids.size() < encoder->max_rows) ids.push_back(request.info.end_token);
  return ids;
}

}  // namespace

int run_translate(const Request& request) {
  const std::unique_ptr<schema::GenerationT> given =
      std::move(describe_file(request.path).model.generation);
  const schema::GenerationT rules = given == nullptr ? schema::GenerationT() : *given;
  const oxb::BeamOptions beams = beam_options(request.args, rules);
  std::vector<int32_t> source;
  if (!request.takes_numbers()) source = source_text(request);
  oxb::SamplerOptions sampling = request.sampling;
  if (!request.args.has("temperature")) sampling.temperature = 0.0f;
  oxb::Session session = open_session(request.model, request.path, request.common);
  oxb::Expected<oxb::Sampler> sampler = oxb::Sampler::create(request.info.output_width, sampling);
  check(sampler.status(), request.path);

  stop_on_interrupt();
  Speed speed;
  speed.prompt_tokens = source.size();
  speed.arena_bytes = session.arena_bytes();
  const Stopwatch encode_time;
  if (request.takes_numbers()) {
    run_numbers(request, session, false);
  } else {
    check(session.encode(source), request.path);
  }
  speed.prompt_seconds = encode_time.seconds();

  // The start token takes a place too.
  uint64_t most = request.tokens;
  if (request.info.capacity != 0) most = std::min(most, request.info.capacity);
  if (beams.beams > 1) return run_beams(request, beams, session, most, speed);
  std::vector<float> logits(request.info.output_width);
  Printer printer(request);
  int32_t token = std::max(rules.start_token, 0);
  const Stopwatch decode_time;
  while (speed.generated < most && !stop_wanted()) {
    sampler->accept(token);
    check(session.run({&token, 1}, logits), request.path);
    for (const int32_t forbidden : rules.forbidden_tokens) {
      if (forbidden >= 0 && static_cast<size_t>(forbidden) < logits.size()) {
        logits[static_cast<size_t>(forbidden)] = -std::numeric_limits<float>::infinity();
      }
    }
    const oxb::Expected<int32_t> picked = sampler->pick(logits);
    check(picked.status(), request.path);
    token = *picked;
    if (request.model.ends_text(token)) break;
    ++speed.generated;
    if (!printer.add(token)) break;
  }
  speed.decode_seconds = decode_time.seconds();
  printer.finish();
  print_speed(speed);
  return kExitGood;
}

}  // namespace oxbow::tools

// Encodes a text and generates its translation, or a recording and generates its text.

#include <algorithm>

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
  oxb::Session session = open_session(request.model, request.path, request.common);

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
  oxb::Generator generator = open_generator(request, session, most);
  const Speed decoded = print_text(request, generator, most);
  speed.generated = decoded.generated;
  speed.decode_seconds = decoded.decode_seconds;
  print_speed(speed);
  return stop_wanted() ? kExitInterrupted : kExitGood;
}

}  // namespace oxbow::tools

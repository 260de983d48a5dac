// Feeds a prompt and prints what the model continues it with, as it comes.

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "host/describe.h"
#include "tools/run/run.h"

namespace oxbow::tools {
namespace {

void feed_prompt(const Request& request, oxb::Generator& generator) {
  const Args& args = request.args;
  if (request.as_ids) {
    const std::vector<int32_t> ids = parse_ids(*args.text("ids"), request.info.vocabulary, "--ids");
    if (args.has("echo")) {
      for (const int32_t id : ids) request.out.write(std::to_string(id) + " ");
    }
    check(generator.add(ids), request.path);
    return;
  }
  // A text that is resumed needs no prompt, and gets what one begins with only once.
  if (args.has("resume") && !request.has_prompt()) return;
  TextReader reader = open_prompt(request);
  std::vector<int32_t> ids(4096);
  Progress progress;
  for (size_t count; (count = reader.read(ids)) > 0 && !stop_wanted();) {
    check(generator.add(std::span(ids).first(count)), request.path);
    // On a terminal the text that is echoed shows how far it is.
    if (!args.has("echo")) progress.show("prompt: byte", reader.bytes(), reader.size());
  }
}

}  // namespace

oxb::Generator open_generator(const Request& request, oxb::Session& session, uint64_t most) {
  const std::vector<std::string> texts = request.args.texts("stop");
  std::vector<const char*> stops;
  for (const std::string& stop : texts) stops.push_back(stop.c_str());
  oxb::GeneratorOptions options;
  options.sampling = &request.sampling;
  options.stop_texts = stops.data();
  options.stop_text_count = stops.size();
  options.max_tokens = most;
  oxb::Expected<oxb::Generator> generator = oxb::Generator::create(session, options);
  check(generator.status(), request.path);
  return std::move(*generator);
}

Speed print_text(const Request& request, oxb::Generator& generator, uint64_t most, Written* kept) {
  Printer printer(request);
  Speed speed;
  bool more = true;
  for (uint64_t i = 0; i < most && more && !stop_wanted(); ++i) {
    const oxb::Expected<oxb::Piece> piece = generator.next();
    check(piece.status(), request.path);
    more = !piece->last();
    if (piece->token >= 0) ++speed.generated;
    if (kept == nullptr) {
      more = printer.add(*piece) && more;
    } else {
      kept->text += piece->view();
      if (piece->token >= 0) kept->tokens.push_back(piece->token);
    }
  }
  printer.finish();
  const oxb::Generation progress = generator.progress();
  if (kept != nullptr) kept->end = progress.end;
  if (progress.end == OXB_END_STREAM_FULL && request.info.task == OXB_TASK_GENERATE) {
    std::fprintf(stderr,
                 "the stream is full: the model takes %llu tokens; convert with --ring for an "
                 "endless one\n",
                 static_cast<unsigned long long>(request.info.capacity));
  }
  // What was read and written before a state was saved is not this program's work.
  if (progress.prompt_nanoseconds > 0) speed.prompt_tokens = progress.prompt_tokens;
  speed.prompt_seconds = static_cast<double>(progress.prompt_nanoseconds) * 1e-9;
  speed.decode_seconds = static_cast<double>(progress.token_nanoseconds) * 1e-9;
  return speed;
}

/// Why a text ended, as --json says it.
static const char* end_text(oxb_end end) {
  switch (end) {
    case OXB_END_OF_TEXT:
      return "end_of_text";
    case OXB_END_STOP_TEXT:
      return "stop";
    case OXB_END_STREAM_FULL:
      return "stream_full";
    default:
      return stop_wanted() ? "interrupted" : "tokens";
  }
}

static void print_json(const Request& request, const Written& written, const Speed& speed) {
  nlohmann::json out = {
      {"format", 1},
      {"model", request.path},
      {"text", written.text},
      {"tokens", written.tokens},
      {"end", end_text(written.end)},
      {"prompt_tokens", speed.prompt_tokens},
      {"prompt_seconds", speed.prompt_seconds},
      {"decode_seconds", speed.decode_seconds},
      {"arena_bytes", speed.arena_bytes},
      {"resident_bytes", resident_memory().bytes},
      {"seed", request.sampling.seed},
      // As it was given: a float has seven digits.
      {"temperature", std::round(static_cast<double>(request.sampling.temperature) * 1e6) / 1e6},
  };
  if (request.words) out["prompt"] = *request.words;
  std::fputs(json_text(out).c_str(), stdout);
}

int run_generate(const Request& request) {
  const Args& args = request.args;
  oxb::Session session = open_session(request.model, request.path, request.common);
  // What is saved goes on later, and what is resumed has tokens already, which a limit would count: no limit ends such
  // a text, it is only not asked for more.
  const bool open_ended = args.has("save") || args.has("resume");
  oxb::Generator generator = open_generator(request, session, open_ended ? 0 : request.tokens);
  if (args.has("resume")) {
    const std::string path = *args.text("resume");
    check(generator.load(read_state_file(path)), path);
  }
  stop_on_interrupt();
  feed_prompt(request, generator);
  Written written;
  const bool json = args.has("json");
  Speed speed = print_text(request, generator, request.tokens, json ? &written : nullptr);
  if (args.has("save")) {
    std::vector<std::byte> state(generator.state_bytes());
    check(generator.save(state), request.path);
    write_state_file(*args.text("save"), state);
  }
  speed.arena_bytes = session.arena_bytes();
  if (json) {
    print_json(request, written, speed);
  } else {
    print_speed(speed);
  }
  report_npu(session);
  return stop_wanted() ? kExitInterrupted : kExitGood;
}

}  // namespace oxbow::tools

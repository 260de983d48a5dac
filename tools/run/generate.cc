// Feeds a prompt and prints what the model continues it with, as it comes.

#include <cstdio>
#include <string>
#include <vector>

#include "tools/run/run.h"

namespace oxbow::tools {
namespace {

/// Feeds a prompt of any length in segments, the last of which gives the logits.
class Feeder {
 public:
  Feeder(oxb::Session& session, oxb::Sampler& sampler, const Request& request)
      : session_(session),
        sampler_(sampler),
        path_(request.path),
        segment_(request.info.max_segment),
        logits_(request.info.output_width) {}

  std::span<float> logits() { return logits_; }

  void add(int32_t id) {
    // A full segment waits until something follows: the last one must give logits.
    if (count_ == segment_.size()) run({});
    segment_[count_++] = id;
    sampler_.accept(id);
    ++total_;
  }
  /// The logits after the last token.
  void finish() { run(logits_); }
  uint64_t total() const { return total_; }

 private:
  void run(std::span<float> logits) {
    check(session_.run(std::span(segment_).first(count_), logits), path_);
    count_ = 0;
  }

  oxb::Session& session_;
  oxb::Sampler& sampler_;
  const std::string& path_;
  std::vector<int32_t> segment_;
  std::vector<float> logits_;
  size_t count_ = 0;
  uint64_t total_ = 0;
};

/// Where a text without a prompt begins: at the model's start token, after a line break, or else at
/// the first token.
int32_t first_token(const Request& request) {
  if (request.info.start_token >= 0) return request.info.start_token;
  if (request.info.tokenizer == OXB_TOKENIZER_NONE) return 0;
  int32_t ids[2] = {};
  oxb::Encoded encoded;
  const oxb::Status status = open_encoder(request.model).run("\n", true, ids, &encoded);
  return status.ok() && encoded.count == 1 ? ids[0] : 0;
}

void feed_prompt(const Request& request, Feeder& feeder) {
  const Args& args = request.args;
  if (request.as_ids) {
    for (const int32_t id : parse_ids(*args.text("ids"), request.info.vocabulary, "--ids")) {
      feeder.add(id);
    }
    return;
  }
  TextReader reader = open_prompt(request);
  std::vector<int32_t> ids(4096);
  Progress progress;
  for (size_t count; (count = reader.read(ids)) > 0 && !stop_wanted();) {
    for (size_t i = 0; i < count && !stop_wanted(); ++i) feeder.add(ids[i]);
    progress.show("prompt: byte", reader.bytes(), reader.size());
  }
}

}  // namespace

int run_generate(const Request& request) {
  oxb::Session session = open_session(request.model, request.path, request.common);
  oxb::Expected<oxb::Sampler> sampler =
      oxb::Sampler::create(request.info.output_width, request.sampling);
  check(sampler.status(), request.path);

  stop_on_interrupt();
  Feeder feeder(session, *sampler, request);
  const Stopwatch prompt_time;
  feed_prompt(request, feeder);
  if (feeder.total() == 0) feeder.add(first_token(request));
  feeder.finish();
  Speed speed;
  speed.prompt_tokens = feeder.total();
  speed.prompt_seconds = prompt_time.seconds();
  speed.arena_bytes = session.arena_bytes();

  Printer printer(request);
  bool full = false;
  const Stopwatch decode_time;
  while (speed.generated < request.tokens && !stop_wanted() && !full) {
    const oxb::Expected<int32_t> token = sampler->pick(feeder.logits());
    check(token.status(), request.path);
    if (request.model.ends_text(*token)) break;
    ++speed.generated;
    if (!printer.add(*token) || speed.generated == request.tokens) break;
    sampler->accept(*token);
    const oxb::Status status = session.run({&*token, 1}, feeder.logits());
    full = status.code() == OXB_STREAM_FULL;
    if (!full) check(status, request.path);
  }
  speed.decode_seconds = decode_time.seconds();
  printer.finish();
  if (full) {
    std::fprintf(stderr,
                 "the stream is full: the model takes %llu tokens; convert with --ring for an "
                 "endless one\n",
                 static_cast<unsigned long long>(request.info.capacity));
  }
  print_speed(speed);
  return kExitGood;
}

}  // namespace oxbow::tools

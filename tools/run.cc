// oxbow run: feeds a prompt and prints what the model continues it with, as it comes.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tools/commands.h"
#include "tools/common.h"
#include "tools/utf8.h"

namespace oxbow::tools {
namespace {

volatile sig_atomic_t stop_wanted = 0;

/// The first Ctrl-C ends the text after the current token; the second ends the program.
void stop_on_interrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { stop_wanted = 1; };
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
}

/// Feeds a prompt of any length in segments, the last of which gives the logits.
class Feeder {
 public:
  Feeder(oxb::Session& session, oxb::Sampler& sampler, const oxb_model_info& info,
         const std::string& path)
      : session_(session),
        sampler_(sampler),
        path_(path),
        segment_(info.max_segment),
        logits_(info.output_width) {}

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

std::vector<int32_t> parse_ids(const std::string& text, uint32_t vocabulary) {
  std::vector<int32_t> ids;
  for (size_t begin = 0; begin <= text.size() && !text.empty();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const std::optional<uint64_t> value = convert::parse_integer(word);
    if (!value || *value >= vocabulary) {
      throw UsageError(
          format("--ids: '%s' is no token; expected numbers from 0 to %u with commas between",
                 convert::printable(word, 40).c_str(), vocabulary - 1));
    }
    ids.push_back(static_cast<int32_t>(*value));
    begin = end + 1;
  }
  return ids;
}

/// Where a text without a prompt begins: after a line break, or else the first token.
int32_t first_token(const oxb::Model& model) {
  int32_t id = 0;
  oxb::Encoded encoded;
  if (model.info().tokenizer != OXB_TOKENIZER_NONE && model.encode("\n", {&id, 1}, &encoded).ok() &&
      encoded.count == 1) {
    return id;
  }
  return 0;
}

oxb::SamplerOptions sampler_options(const Args& args) {
  oxb::SamplerOptions options;
  options.temperature = static_cast<float>(
      args.number("temperature", static_cast<double>(options.temperature), 0.0, 1e6));
  options.top_k = static_cast<uint32_t>(args.integer("top-k", options.top_k, 0, UINT32_MAX));
  options.top_p = static_cast<float>(args.number("top-p", 1.0, 1e-6, 1.0));
  options.repetition_penalty =
      static_cast<float>(args.number("repetition-penalty", 1.0, 1e-3, 1e3));
  options.seed = args.integer("seed", 0, 0, UINT64_MAX);
  return options;
}

double rate(uint64_t tokens, double seconds) {
  return seconds > 0.0 ? static_cast<double>(tokens) / seconds : 0.0;
}

}  // namespace

int run_command(int argc, char** argv) {
  Args args("oxbow run", "continues a text");
  args.positional("model.oxb", "the model file");
  args.option("prompt", "TEXT", "what to continue; --prompt=TEXT when it begins with --");
  args.option("file", "FILE", "the same from a file of any length; - reads standard input");
  args.option("ids", "1,2,3", "the same as token ids; ids are then printed");
  args.option("tokens", "N", "how many tokens to generate (default 200)");
  args.option("temperature", "X", "0 always takes the most likely token (default 0.8)");
  args.option("top-k", "K", "choose among the K most likely tokens; 0 means all (default 0)");
  args.option("top-p", "P", "choose among the most likely that reach this probability (default 1)");
  args.option("repetition-penalty", "X",
              "makes the last 64 tokens less likely when above 1 (default 1)");
  args.option("seed", "S", "same seed, same text (default 0)");
  add_common_options(args);
  args.parse(argc, argv, 2);
  if (args.help_wanted()) {
    std::fputs(args.help().c_str(), stdout);
    return convert::kExitGood;
  }
  const CommonOptions common = read_common_options(args);
  const uint64_t wanted = args.integer("tokens", 200, 0, UINT64_MAX);
  const oxb::SamplerOptions sampling = sampler_options(args);
  if (args.has("prompt") + args.has("file") + args.has("ids") > 1) {
    throw UsageError("give one of --prompt, --file and --ids");
  }

  const std::string path = *args.text("model.oxb");
  const oxb::Model model = open_model(path);
  const oxb_model_info info = model.info();
  const bool as_ids = args.has("ids");
  if (!as_ids) need_tokenizer(model, path, ", or give and get ids with --ids 1,2,3");
  oxb::Session session = open_session(model, path, common);
  oxb::Expected<oxb::Sampler> sampler = oxb::Sampler::create(info.output_width, sampling);
  check(sampler.status(), path);

  stop_on_interrupt();
  Feeder feeder(session, *sampler, info, path);
  const Stopwatch prompt_time;
  if (as_ids) {
    for (const int32_t id : parse_ids(*args.text("ids"), info.vocabulary)) feeder.add(id);
  } else {
    const std::string prompt = args.text("prompt", "");
    std::optional<TextSource> file;
    if (args.has("file")) file.emplace(*args.text("file"));
    TextReader reader(model, file ? *args.text("file") : "the prompt",
                      file ? file->text() : prompt);
    std::vector<int32_t> ids(4096);
    Progress progress;
    for (size_t count; (count = reader.read(ids)) > 0 && !stop_wanted;) {
      for (size_t i = 0; i < count && !stop_wanted; ++i) feeder.add(ids[i]);
      progress.show("prompt: byte", reader.consumed(), file ? file->text().size() : prompt.size());
    }
  }
  if (feeder.total() == 0) feeder.add(first_token(model));
  feeder.finish();
  const double prompt_seconds = prompt_time.seconds();

  // The first token comes from the prompt's logits, so a run of n tokens decodes n - 1 steps.
  Utf8Stream text;
  uint64_t generated = 0;
  bool line_open = false;
  const Stopwatch decode_time;
  while (generated < wanted && !stop_wanted) {
    const oxb::Expected<int32_t> token = sampler->pick(feeder.logits());
    check(token.status(), path);
    ++generated;
    std::string piece;
    if (as_ids) {
      piece = (generated > 1 ? " " : "") + std::to_string(*token);
    } else {
      const oxb::Expected<oxb::TokenBytes> bytes = model.decode(*token);
      check(bytes.status(), path);
      piece = text.add(bytes->view());
    }
    if (!piece.empty()) {
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      if (std::fflush(stdout) != 0) break;
      line_open = piece.back() != '\n';
    }
    if (generated == wanted) break;
    sampler->accept(*token);
    check(session.run({&*token, 1}, feeder.logits()), path);
  }
  const double decode_seconds = decode_time.seconds();
  if (line_open && (as_ids || ::isatty(STDOUT_FILENO) == 1)) std::fputc('\n', stdout);
  std::fflush(stdout);

  const uint64_t steps = generated > 0 ? generated - 1 : 0;
  std::fprintf(
      stderr,
      "prompt %llu tokens, %.1f tokens/s; generated %llu tokens, %.1f tokens/s; arena %zu bytes; "
      "resident %llu bytes\n",
      static_cast<unsigned long long>(feeder.total()), rate(feeder.total(), prompt_seconds),
      static_cast<unsigned long long>(generated), rate(steps, decode_seconds),
      session.arena_bytes(), static_cast<unsigned long long>(resident_memory().bytes));
  return convert::kExitGood;
}

}  // namespace oxbow::tools

// oxbow chat: a question for each line of standard input, and the model's answers.

#include <unistd.h>

#include <cstdio>

#include "tools/commands.h"
#include "tools/run/run.h"

namespace oxbow::tools {
namespace {

void add_options(Args& args) {
  args.positional("model.oxb", "the model file; /undo, /reset and /quit are taken as commands");
  args.option("system", "TEXT", "what the model is told before the first question");
  args.option("tokens", "N", "tokens of an answer at most (default 1000)");
  args.option("undo", "N", "turns that /undo can take back (default 1)");
  add_sampling_options(args);
  add_common_options(args);
}

class Talk {
 public:
  Talk(const Args& args, const std::string& path, oxb::Generator& generator)
      : args_(args), path_(path), generator_(generator) {
    begin();
  }

  /// False: no more lines are wanted.
  bool take(const std::string& line) {
    if (line == "/quit") return false;
    if (line == "/reset") {
      generator_.reset();
      begin();
    } else if (line == "/undo") {
      const oxb::Status status = generator_.undo();
      if (!status.ok()) std::fprintf(stderr, "%s\n", status.text());
    } else if (!line.empty()) {
      answer(line);
    }
    return true;
  }

 private:
  void begin() {
    if (!args_.has("system")) return;
    check(generator_.add_message(OXB_ROLE_SYSTEM, *args_.text("system")), path_);
  }

  void answer(const std::string& question) {
    check(generator_.add_message(OXB_ROLE_USER, question), path_);
    bool line_open = true;
    const oxb::Expected<int32_t> end = generator_.run([&](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      if (!text.empty()) line_open = text.back() != '\n';
      return std::fflush(stdout) == 0 && !stop_wanted();
    });
    check(end.status(), path_);
    if (line_open) std::fputc('\n', stdout);
    std::fflush(stdout);
  }

  const Args& args_;
  const std::string& path_;
  oxb::Generator& generator_;
};

}  // namespace

int chat_command(int argc, char** argv) {
  Args args("oxbow chat", "asks a model that was trained to answer: each line is a question");
  add_options(args);
  args.parse(argc, argv, 2);
  if (args.help_wanted()) {
    std::fputs(args.help().c_str(), stdout);
    return kExitGood;
  }
  const CommonOptions common = read_common_options(args);
  const std::string path = *args.text("model.oxb");
  const oxb::Model model = open_model(path, &common);
  need_tokenizer(model, path, "");
  if (oxb_model_chat_before(model.get()) == nullptr &&
      oxb_model_chat_after(model.get()) == nullptr) {
    throw InputError(path +
                     ": the file does not say how to ask the model: it was not trained to answer, "
                     "or was converted without its chat template");
  }
  const oxb::SamplerOptions sampling = sampler_options(args, model);
  oxb::Session session = open_session(model, path, common);
  oxb::GeneratorOptions options;
  options.sampling = &sampling;
  options.max_tokens = args.integer("tokens", 1000, 1, UINT64_MAX);
  options.undo_turns = static_cast<uint32_t>(args.integer("undo", 1, 0, 1000));
  oxb::Expected<oxb::Generator> generator = oxb::Generator::create(session, options);
  check(generator.status(), path);

  Talk talk(args, path, *generator);
  TextSource lines = TextSource::file("-");
  const bool terminal = ::isatty(STDIN_FILENO) == 1;
  stop_on_interrupt();
  for (std::string line;;) {
    if (terminal) std::fputs("> ", stderr);
    if (!lines.read_line(&line) || !talk.take(line) || stop_wanted()) break;
  }
  return kExitGood;
}

}  // namespace oxbow::tools

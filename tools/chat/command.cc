// oxbow chat: a question for each line of standard input, and the model's answers.

#include <cstdio>

#include "tools/chat/talk.h"
#include "tools/commands.h"
#include "tools/run/run.h"

namespace oxbow::tools {

void declare_chat(Args& args) {
  args.positional("model.oxb", "the model file; lines that begin with / are commands, see /help");
  args.option("system", "TEXT", "what the model is told before the first question");
  args.option("tokens", "N", "tokens of an answer at most (default 1000)", 'n');
  args.option("undo", "N", "turns that /undo can take back (default 8)");
  add_sampling_options(args);
  add_common_options(args);
}

int chat_command(const Args& args) {
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
  oxb::Expected<oxb::Generator> generator = oxb::Generator::create(session, options);
  check(generator.status(), path);

  TalkOptions how;
  how.system = args.text("system", "");
  how.undo_turns = static_cast<uint32_t>(args.integer("undo", how.undo_turns, 0, 1000));
  return Talk(path, session, *generator, how).run();
}

}  // namespace oxbow::tools
